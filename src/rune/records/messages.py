"""Messages and the conversations they belong to."""

from typing import Literal

from rune.records.record import Record
from rune.records.tools import ToolCall
from rune.records.usage import Usage

Role = Literal["system", "user", "assistant", "tool"]
Channel = Literal["task", "chat"]
Provenance = Literal["owner", "piped", "model", "tool", "file", "web", "imported"]


class ConversationMessageRecord(Record, frozen=True, kw_only=True):
    """One message; body of `user.message`, `response.generated`, `tool.message`.

    `tail` is what was recalled for a user message and is sent before the person's words, kept byte
    for byte. `attachments` are evidence ids. `complete` is False for an answer that broke off.
    `token_estimate` is the estimator's, not the server's.
    """

    schema_version: int = 1
    id: str
    ts: str
    role: Role
    content: str
    conversation_id: str
    task_id: str
    turn_id: str
    token_estimate: int
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    tool_name: str = ""
    thinking: str = ""
    attachments: tuple[str, ...] = ()
    tail: str = ""
    provenance: Provenance
    complete: bool = True
    model: str = ""
    usage: Usage | None = None


class ConversationRecord(Record, frozen=True, kw_only=True):
    """A conversation; body of `conversation.created`. `prefix` is the evidence id of the frozen prefix;
    `folder` where it was started, as `host.paths.storable_path` writes it; `title` the first line of its
    first message.
    """

    schema_version: int = 1
    id: str
    channel: Channel
    folder: str
    title: str
    model: str
    private: bool = False
    forked_from: str | None = None
    fork_msg_id: str | None = None
    prefix: str | None = None
    created_at: str
