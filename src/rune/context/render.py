"""From records to the bytes that are sent: one array of messages, in the transport's dialect.

Every function here is pure, and the same record always gives the same bytes, in every process:

- JSON as UTF-8 without blanks, not escaped to ASCII: half the size for most scripts, and the one form
  that each server reads alike. A lone surrogate has no UTF-8; it becomes U+FFFD, as in the journal.
- The arguments of a call have their keys sorted, because the journal gives them back sorted: an order
  that only lived in memory would break the prefix after a restart.
- A message is rendered by itself, so that an array only ever grows at its end.
- What a tool found is data, and stands in a fence that it cannot close.
- In the dialect `constrained` nothing but text is sent: calls and answers as the JSON that the model writes
  under its schema, results as messages that name the tool, tools as a text of the prefix. Thinking is not sent.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence

from rune.models.text_tools.constrained import answer_text, call_text, fenced, result_text
from rune.records.messages import ConversationMessageRecord
from rune.records.tools import ToolCall, ToolSchema
from rune.records.traces import Dialect
from rune.text.storable import storable

TAIL_OPEN = "<recalled>"
TAIL_CLOSE = "</recalled>"
CUT_OFF = "[cut off]"

_TAIL_MARKS = re.compile(r"<(/?)(?=recalled>)")


def evidence_id(content: bytes) -> str:
    """Return the id under which evidence with that content is kept: `sha256:` and 64 hex digits."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def system_text(contents: Iterable[str]) -> str:
    """Return the one system message's text: the prefix blocks with a blank line between them."""
    return "\n\n".join(contents)


def tail_text(contents: Iterable[str]) -> str:
    """Return what is recalled for a message as one text, as its record keeps it."""
    return "\n\n".join(contents)


def message_text(message: ConversationMessageRecord) -> str:
    """Return a message's text as the model reads it: a tail between marks before the person's words, a
    broken-off answer with a line that says so. Marks inside a tail are disarmed.
    """
    text = storable(message.content)
    if message.role == "assistant" and not message.complete:
        return f"{text}\n{CUT_OFF}"
    if message.role == "user" and message.tail:
        tail = _TAIL_MARKS.sub(r"<\\\1", storable(message.tail))
        return f"{TAIL_OPEN}\n{tail}\n{TAIL_CLOSE}\n\n{text}"
    return text


def constrained_text(message: ConversationMessageRecord) -> str:
    """Return a message's whole content in the dialect `constrained`. Raises ValueError as `arguments_json`.

    What stood beside calls was written under another protocol, and stays before them as it was.
    """
    text = message_text(message)
    if message.role == "tool":
        return result_text(message.tool_name, text)
    if message.role != "assistant":
        return text
    if not message.tool_calls:
        return answer_text(text)
    beside = [text] if text.strip() else []
    return "\n".join([*beside, *(call_text(call) for call in message.tool_calls)])


def arguments_json(call: ToolCall) -> str:
    """Return a call's arguments as JSON with sorted keys. Raises ValueError for a number that JSON lacks."""
    return storable(_dumps(call.arguments, sort_keys=True))


def message_json(message: ConversationMessageRecord, dialect: Dialect) -> bytes:
    """Return one message as a JSON object. `tool_calls` are rendered as they stand in the record; which
    of them may be sent is decided in `history`.
    """
    if dialect == "constrained":
        role = "user" if message.role == "tool" else message.role
        return f'{{"role":{_dumps(role)},"content":{_dumps(constrained_text(message))}}}'.encode()
    text = message_text(message)
    text = fenced(text) if message.role == "tool" else text
    members = [f'"role":{_dumps(message.role)}', f'"content":{_dumps(text)}']
    if message.role == "assistant":
        if message.thinking:
            key = "thinking" if dialect == "ollama" else "reasoning_content"
            members.append(f'"{key}":{_dumps(storable(message.thinking))}')
        if message.tool_calls:
            calls = (_call_json(call, index, dialect) for index, call in enumerate(message.tool_calls))
            members.append(f'"tool_calls":[{",".join(calls)}]')
    elif message.role == "tool":
        if dialect == "ollama":
            members.append(f'"tool_name":{_dumps(storable(message.tool_name))}')
        members.append(f'"tool_call_id":{_dumps(storable(message.tool_call_id))}')
    return f"{{{','.join(members)}}}".encode()


def system_json(text: str) -> bytes:
    """Return the system message as a JSON object; all dialects write it alike."""
    return f'{{"role":"system","content":{_dumps(storable(text))}}}'.encode()


def tools_json(tools: Sequence[ToolSchema]) -> str:
    """Return the tools on offer as a JSON array, `[]` for none; both dialects with native calls write them alike.

    A schema's own order is kept: it says what matters first, and it comes from code, never from the journal.
    """
    functions = (
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in tools
    )
    return f"[{','.join(storable(_dumps(function)) for function in functions)}]"


def array_json(messages: Iterable[bytes]) -> bytes:
    """Return rendered messages as a JSON array."""
    return b"[" + b",".join(messages) + b"]"


def grown(array: bytes, messages: Sequence[bytes]) -> bytes:
    """Return the array with messages added at its end; all bytes but its closing bracket stay."""
    return b",".join((array[:-1], *messages)) + b"]"


def extends(array: bytes, earlier: bytes) -> bool:
    """Say whether `array` begins with all of `earlier` but its closing bracket."""
    return array.startswith(earlier[:-1]) if earlier else True


def prefix_reuse(array: bytes, earlier: bytes) -> float | None:
    """Return which share of the earlier request's bytes this one begins with, both without the closing
    bracket (context.md, What was sent stays as sent); None when there was no earlier one.
    """
    if not earlier:
        return None
    last = earlier[:-1]
    return _common_prefix(array[:-1], last) / len(last)


def _common_prefix(left: bytes, right: bytes) -> int:
    # Halving compares slices in C; a loop over a megabyte of bytes would take longer than all the rest.
    low, high = 0, min(len(left), len(right))
    if left[:high] == right[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle
    return low


def _call_json(call: ToolCall, index: int, dialect: Dialect) -> str:
    arguments = arguments_json(call)
    call_id, name = _dumps(storable(call.id)), _dumps(storable(call.name))
    if dialect == "ollama":
        return f'{{"id":{call_id},"function":{{"index":{index},"name":{name},"arguments":{arguments}}}}}'
    # OpenAI's protocol wants the arguments as text that holds JSON.
    return f'{{"id":{call_id},"type":"function","function":{{"name":{name},"arguments":{_dumps(arguments)}}}}}'


def _dumps(value: object, *, sort_keys: bool = False) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=sort_keys, separators=(",", ":"))
