"""Calls that a model makes, what was prepared for them, and what came of them."""

from typing import Any, Literal

from rune.records.record import Record

CallSource = Literal["native", "constrained", "repaired"]
Outcome = Literal["ok", "failed", "denied", "cancelled", "unknown"]
ChecklistState = Literal["open", "doing", "done"]


class ToolCall(Record, frozen=True, kw_only=True):
    """One call as the model asked for it. `id` is unique within its message."""

    id: str
    name: str
    arguments: dict[str, Any]
    source: CallSource = "native"


class ToolSchema(Record, frozen=True, kw_only=True):
    """One tool as it is offered: `parameters` is a JSON schema object."""

    name: str
    description: str
    parameters: dict[str, Any]


class FileTouch(Record, frozen=True, kw_only=True):
    """A file that a call read or changed: its real path as `host.paths.storable_path` writes it, and the sha256 (64 hex
    digits) of what it held before and after; None where there is no file. Both the same: it was read.
    """

    path: str
    before: str | None
    after: str | None

    @property
    def changed(self) -> bool:
        """Whether it holds something else since."""
        return self.before != self.after


class PreparedCall(Record, frozen=True, kw_only=True):
    """A checked call with its computed effect (tools.md, Prepare); body of `tool.intent`. `id` is its own in all of
    Rune, unlike that of `call`. `digest` covers tool, canonical arguments and preconditions. `detail` is what a person
    needs to decide, exactly what would happen; `why` says why they are asked, "" for a call that was allowed; `rule` is
    what "always" would allow, "" where that is not offered.
    """

    schema_version: int = 1
    id: str
    turn_id: str
    call: ToolCall
    effect: str
    detail: str
    preconditions: dict[str, str]
    digest: str
    confinement: str
    why: str
    rule: str


class ToolResult(Record, frozen=True, kw_only=True):
    """What a call came to, and its receipt; body of `tool.result`. `id` is that of its PreparedCall; who allowed it
    stands in the envelope. `output` is an evidence id when there was more than the model was given; `message_id` is the
    message in which the model was told, "" where there is none.
    """

    schema_version: int = 1
    id: str
    turn_id: str
    tool: str
    digest: str
    outcome: Outcome
    summary: str
    output: str | None
    milliseconds: int | None
    confinement: str
    exit_code: int | None
    files: tuple[FileTouch, ...]
    message_id: str = ""


class CommandRun(Record, frozen=True, kw_only=True):
    """A shell command that the person ran themselves; body of `command.run`. `id` is a `cal_`, `command` the line as
    they typed it, masked. `exit_code` is None where there is none (a signal, it did not start); `output` is an evidence
    id, None when it said nothing.
    """

    schema_version: int = 1
    id: str
    conversation_id: str
    command: str
    exit_code: int | None
    milliseconds: int
    output: str | None
    summary: str
