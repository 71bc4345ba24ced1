"""What a turn shows at its beginning and at its end, out of what is known of it then."""

from typing import Final

from rune.errors import RuneError
from rune.records.turns import StopReason
from rune.turn.events import TurnClosed, TurnOpened
from rune.turn.flight import Flight
from rune.turn.outcome import Outcome, failed

# How the end of a turn begins that is not stored: nor is what came of its answer.
UNSAVED: Final = "this turn could not be saved"


def unsaved(error: RuneError) -> Outcome:
    """Return the end of a turn whose own end could not be written."""
    outcome = failed(error, partial=False)
    return Outcome(
        reason=StopReason.FAILED,
        error=f"{UNSAVED}: {outcome.error}",
        error_type=outcome.error_type,
        hint=outcome.hint,
        exception=error,
    )


def opened(flight: Flight) -> TurnOpened:
    """Return the first event of a turn that the recorder has opened."""
    if flight.conversation is None or flight.task is None or flight.message is None:
        raise RuntimeError("the recorder opened a turn without its records")
    info = flight.model.info if flight.model else None
    return TurnOpened(
        turn_id=flight.turn_id,
        conversation_id=flight.conversation.id,
        task_id=flight.task.id,
        message_id=flight.message.id,
        model=flight.model_name,
        provider=info.provider if info else "",
        remote=info.remote if info else False,
        thinking=flight.thinking,
        permission=flight.permission,
        resumes=flight.resumption.approval.turn_id if flight.resumption else None,
    )


def closed(flight: Flight, outcome: Outcome, *, conversation_id: str, trace_id: str | None) -> TurnClosed:
    """Return the last event of a turn."""
    answer = flight.answer
    return TurnClosed(
        turn_id=flight.turn_id,
        conversation_id=conversation_id,
        task_id=flight.task.id if flight.task else "",
        stop_reason=outcome.reason,
        model=flight.model_name,
        answer=answer.content if answer else "",
        complete=answer.complete if answer else False,
        usage=flight.model.usage if flight.model else None,
        degraded=tuple(flight.degraded),
        trace_id=trace_id,
        error=outcome.error,
        error_type=outcome.error_type,
        hint=outcome.hint,
        iterations_used=flight.counters.iterations_used,
        iteration_budget=flight.counters.iteration_budget,
        pending_approval=flight.pending.id if flight.pending else None,
    )
