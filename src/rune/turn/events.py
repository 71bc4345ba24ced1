"""What a running turn shows. Free to change, unlike what is stored; documented as `stream-json`."""

import msgspec

from rune.records.models import Thinking
from rune.records.permissions import PermissionMode
from rune.records.tools import ChecklistState, Outcome
from rune.records.turns import StopReason
from rune.records.usage import Usage


class TurnOpened(msgspec.Struct, frozen=True, kw_only=True, tag="turn_opened"):
    """The turn and the person's message are durable; nothing was sent to a model yet. `thinking` is how much the
    model thinks as the person chose (`auto`: it is left to the model), `permission` what tools may do without asking.
    `resumes` is the turn that it goes on with, after an approval was answered; `message_id` is then that turn's.
    """

    turn_id: str
    conversation_id: str
    task_id: str
    message_id: str
    model: str
    provider: str
    remote: bool
    thinking: Thinking = "auto"
    permission: PermissionMode = "ask"
    resumes: str | None = None


class Progress(msgspec.Struct, frozen=True, kw_only=True, tag="progress"):
    """The model loads, or reads `total` tokens (None: unknown)."""

    turn_id: str
    phase: str
    done: int
    total: int | None


class TextDelta(msgspec.Struct, frozen=True, kw_only=True, tag="text_delta"):
    """A piece of the answer. `pieces` counts the model's own that were joined in it, about a token each."""

    turn_id: str
    text: str
    pieces: int = 1


class ThinkingDelta(msgspec.Struct, frozen=True, kw_only=True, tag="thinking_delta"):
    """A piece of the model's thinking; `pieces` as in TextDelta."""

    turn_id: str
    text: str
    pieces: int = 1


class StepTaken(msgspec.Struct, frozen=True, kw_only=True, tag="step_taken"):
    """A model call begins: the `used`th of at most `budget` in this turn, those before a pause included. A turn that
    goes on after a pause begins with how far it had come.
    """

    turn_id: str
    used: int
    budget: int


class ToolPrepared(msgspec.Struct, frozen=True, kw_only=True, tag="tool_prepared"):
    """A call was checked; `effect` is what it would do in one line, `detail` all of it (a diff; a command with its
    folder), "" where there is no more to say. `call_id` is unique in all of Rune.
    """

    turn_id: str
    call_id: str
    name: str
    effect: str
    detail: str = ""


class ToolStarted(msgspec.Struct, frozen=True, kw_only=True, tag="tool_started"):
    """It runs."""

    turn_id: str
    call_id: str
    name: str


class ToolOutput(msgspec.Struct, frozen=True, kw_only=True, tag="tool_output"):
    """The last lines of its output as they stand by now: they take the place of those shown before."""

    turn_id: str
    call_id: str
    text: str


class ToolFinished(msgspec.Struct, frozen=True, kw_only=True, tag="tool_finished"):
    """It ended. `summary` is one line; `text` is what the model is given of it; `output` is the evidence id of all of
    it where that is more. `allowed_by` is None for a call that needs no leave, else `owner`, `rule:<id>` or
    `approval:<id>`. A call of which nothing was prepared (no such tool, arguments that do not fit) ends like this too.
    """

    turn_id: str
    call_id: str
    name: str
    outcome: Outcome
    milliseconds: int | None
    summary: str = ""
    text: str = ""
    output: str | None = None
    exit_code: int | None = None
    allowed_by: str | None = None


class AskedCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call that waits for the person: what a ToolPrepared says of it, why it asks, and what "always" would allow
    ("" where that is not offered).
    """

    call_id: str
    name: str
    effect: str
    detail: str
    why: str
    rule: str


class ApprovalAsked(msgspec.Struct, frozen=True, kw_only=True, tag="approval_asked"):
    """The turn pauses for the person: all of `calls` are answered together. It is stored, and can be answered at any
    time and from another process; what is allowed is bound to the digests of what is shown.
    """

    turn_id: str
    approval_id: str
    summary: str
    calls: tuple[AskedCall, ...] = ()


class ChecklistItem(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the model's own checklist."""

    text: str
    state: ChecklistState


class ChecklistChanged(msgspec.Struct, frozen=True, kw_only=True, tag="checklist_changed"):
    """The model's visible checklist, whole, as it stands now."""

    turn_id: str
    items: tuple[ChecklistItem, ...]


class Notice(msgspec.Struct, frozen=True, kw_only=True, tag="notice"):
    """Something a person should know. `tier` is 0, 1 or 2 for a failure, None for plain news. `about` names what a
    surface may have on its screen anyway (`trust`: files that are not read; `stand_in`: that the small model answers
    for want of another), "" for all else.
    """

    turn_id: str | None
    text: str
    hint: str = ""
    tier: int | None = None
    about: str = ""


class TurnClosed(msgspec.Struct, frozen=True, kw_only=True, tag="turn_closed"):
    """The last event of every turn. `answer` is the whole text, `complete` False when it broke off;
    `error` and `hint` are empty unless it failed. `pending_approval` is the question that it waits for (`paused`).
    """

    turn_id: str
    conversation_id: str
    task_id: str
    stop_reason: StopReason
    model: str
    answer: str
    complete: bool
    usage: Usage | None
    degraded: tuple[str, ...]
    trace_id: str | None
    error: str = ""
    error_type: str = ""
    hint: str = ""
    iterations_used: int = 0
    iteration_budget: int = 0
    pending_approval: str | None = None


TurnEvent = (
    TurnOpened
    | Progress
    | TextDelta
    | ThinkingDelta
    | StepTaken
    | ToolPrepared
    | ToolStarted
    | ToolOutput
    | ToolFinished
    | ApprovalAsked
    | ChecklistChanged
    | Notice
    | TurnClosed
)
