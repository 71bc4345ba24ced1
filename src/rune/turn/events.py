"""What a running turn shows. Free to change, unlike what is stored; documented as `stream-json`."""

import msgspec

from rune.records.models import Thinking
from rune.records.tools import Outcome
from rune.records.turns import StopReason
from rune.records.usage import Usage


class TurnOpened(msgspec.Struct, frozen=True, kw_only=True, tag="turn_opened"):
    """The turn and the person's message are durable; nothing was sent to a model yet. `thinking` is how much the
    model thinks as the person chose (`auto`: it is left to the model).
    """

    turn_id: str
    conversation_id: str
    task_id: str
    message_id: str
    model: str
    provider: str
    remote: bool
    thinking: Thinking = "auto"


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


class ToolPrepared(msgspec.Struct, frozen=True, kw_only=True, tag="tool_prepared"):
    """A call was checked; `effect` is what it would do."""

    turn_id: str
    call_id: str
    name: str
    effect: str


class ToolStarted(msgspec.Struct, frozen=True, kw_only=True, tag="tool_started"):
    """It runs."""

    turn_id: str
    call_id: str
    name: str


class ToolOutput(msgspec.Struct, frozen=True, kw_only=True, tag="tool_output"):
    """A piece of its output."""

    turn_id: str
    call_id: str
    text: str


class ToolFinished(msgspec.Struct, frozen=True, kw_only=True, tag="tool_finished"):
    """It ended."""

    turn_id: str
    call_id: str
    name: str
    outcome: Outcome
    milliseconds: int | None


class ApprovalAsked(msgspec.Struct, frozen=True, kw_only=True, tag="approval_asked"):
    """The turn pauses for the person."""

    turn_id: str
    approval_id: str
    summary: str


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
    `error` and `hint` are empty unless it failed.
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


TurnEvent = (
    TurnOpened
    | Progress
    | TextDelta
    | ThinkingDelta
    | ToolPrepared
    | ToolStarted
    | ToolOutput
    | ToolFinished
    | ApprovalAsked
    | Notice
    | TurnClosed
)
