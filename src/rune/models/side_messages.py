"""What a side call says, and its bytes. Conversations are rendered by `context`, and by nothing here."""

import hashlib
import json
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from rune.records.tools import ToolCall
from rune.records.traces import Dialect
from rune.text.storable import storable

# What a template puts around each message, and around a prompt; rounded up, in tokens.
_PER_MESSAGE: Final = 8
_PER_PROMPT: Final = 16


class SideMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a side call. `calls` are those of an assistant's; a tool's names the call that it answers."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str = ""
    calls: tuple[ToolCall, ...] = ()
    tool_name: str = ""
    call_id: str = ""


def rendered(messages: Sequence[SideMessage], dialect: Dialect) -> bytes:
    """Return the messages as a JSON array; the same messages give the same bytes. Raises ValueError for a number in a
    call's arguments that JSON lacks.
    """
    return storable(_dumps([_rendered(message, dialect) for message in messages])).encode()


def template_tokens(messages: Sequence[SideMessage]) -> int:
    """Return what the chat template may add to them, in tokens."""
    return _PER_PROMPT + _PER_MESSAGE * len(messages)


def evidence_id(content: bytes) -> str:
    """Return the id under which evidence with that content is kept."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _rendered(message: SideMessage, dialect: Dialect) -> dict[str, object]:
    said: dict[str, object] = {"role": message.role, "content": message.content}
    if message.calls:
        said["tool_calls"] = [_call(call, index, dialect) for index, call in enumerate(message.calls)]
    if message.role == "tool":
        if dialect == "ollama":
            said["tool_name"] = message.tool_name
        said["tool_call_id"] = message.call_id
    return said


def _call(call: ToolCall, index: int, dialect: Dialect) -> dict[str, object]:
    if dialect == "ollama":
        return {"id": call.id, "function": {"index": index, "name": call.name, "arguments": call.arguments}}
    # OpenAI's protocol wants the arguments as text that holds JSON.
    function = {"name": call.name, "arguments": _dumps(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
