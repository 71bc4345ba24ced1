"""How a turn's work ended, as data: the one place where an exception becomes a reason."""

import asyncio
from typing import Final

import msgspec

from rune.errors import (
    BusyError,
    CallCancelledError,
    ContextOverflowError,
    ContextTruncatedError,
    ModelError,
    ProtocolError,
    RuneError,
    ServerError,
    StreamBrokenError,
)
from rune.records.turns import StopReason
from rune.text.storable import storable
from rune.turn.flight import Ended, Flight

_ADVICE: Final[dict[type[RuneError], str]] = {
    BusyError: "It was asked three times. Wait a moment, then send it again.",
    StreamBrokenError: 'The server\'s log may say why. To go on from what came, say so: "go on".',
    CallCancelledError: "Send it again.",
    ServerError: "The server's log says more. Send it again, or choose another model: /model NAME, -m NAME.",
    ProtocolError: "Something else than a model server may answer at that address.",
}


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The reason, and for a failure what a person reads: `error`, its class, what to do."""

    reason: StopReason
    error: str = ""
    error_type: str = ""
    hint: str = ""
    exception: BaseException | None = None


async def land(work: asyncio.Task[Ended], flight: Flight) -> Outcome:
    """Wait for the turn's work, however it ends. Being cancelled from outside cancels the turn, and the
    wait goes on until the work has let go.
    """
    while not work.done():
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError:
            flight.cancel.cancel()
    if work.cancelled():
        # What the model had finished is an answer, though the cancel came before the turn could say so.
        whole = flight.answer is not None and flight.answer.complete and not flight.answer.calls
        return Outcome(reason=StopReason.ANSWERED if whole else StopReason.CANCELLED)
    failure = work.exception()
    if failure is None:
        ended = work.result()
        return Outcome(reason=ended.reason, error=ended.text, hint=ended.hint)
    return failed(failure, partial=flight.answer is not None and bool(flight.answer.text))


def failed(error: BaseException, *, partial: bool) -> Outcome:
    """Name the reason for an exception. `partial`: some of the answer had come."""
    match error:
        case ContextOverflowError() | ContextTruncatedError():
            reason = StopReason.CONTEXT_EXHAUSTED
        case ModelError() if partial:
            reason = StopReason.INCOMPLETE
        case RuneError():
            reason = StopReason.FAILED
        case _:
            reason = StopReason.BUG
    message = error.message if isinstance(error, RuneError) else f"unexpected {type(error).__name__}: {error}"
    hint = _advice(error)
    return Outcome(
        reason=reason, error=storable(message), error_type=type(error).__name__, hint=storable(hint), exception=error
    )


def _advice(error: BaseException) -> str:
    """Return what a person can do: the error's own hint, else what helps with its kind (docs/models.md)."""
    if not isinstance(error, RuneError):
        return "This is a defect of Rune; the log holds its traceback."
    kinds = (kind for kind in _ADVICE if isinstance(error, kind))
    return error.hint or next((_ADVICE[kind] for kind in kinds), "")
