"""A turn: one run from a message to its end."""

from enum import StrEnum

from rune.records.record import Record
from rune.records.usage import Usage


class StopReason(StrEnum):
    """Why a turn ended. Every turn has exactly one (architecture.md, The way of one turn)."""

    ANSWERED = "answered"
    LENGTH = "length"
    INCOMPLETE = "incomplete"
    PAUSED = "paused"
    STEP_LIMIT = "step_limit"
    LOOP = "loop"
    CONTEXT_EXHAUSTED = "context_exhausted"
    FAILED = "failed"
    BUG = "bug"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


class TurnRecord(Record, frozen=True, kw_only=True):
    """Body of `turn.started` (`stop_reason` None) and `turn.finished`.

    `message_id` is the user message it answers, `resumes` the turn that it goes on with, `degraded`
    the subsystems that it did without.
    """

    schema_version: int = 1
    id: str
    conversation_id: str
    task_id: str
    message_id: str
    resumes: str | None = None
    model: str
    stop_reason: StopReason | None = None
    usage: Usage | None = None
    degraded: tuple[str, ...] = ()
    trace_id: str | None = None
