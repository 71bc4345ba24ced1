"""Whether the model can be had and answers, as health shows it."""

from typing import Final

from rune.errors import CapabilityMissingError, ModelError, ModelNotFoundError, RemoteRefusedError
from rune.records.turns import StopReason
from rune.turn.failures import TurnFailures
from rune.turn.flight import Flight
from rune.turn.outcome import Outcome

SUBSYSTEM: Final = "model"

# A name that a person gave just now and that cannot be taken is theirs to mend: nothing has failed.
_REFUSALS: Final = (ModelNotFoundError, RemoteRefusedError, CapabilityMissingError)
_ANSWERED: Final = frozenset({StopReason.ANSWERED, StopReason.LENGTH})


class ModelHealth:
    """Counts each failure once, as T0: without a model there is no answer.

    A failed answer is mended by the next one that succeeds, a model that could not be chosen by one that can.
    """

    def __init__(self, failures: TurnFailures) -> None:
        self._failures = failures
        self._missing = ""
        self._unanswered = False

    def missing(self, error: ModelError, *, named: bool) -> None:
        """Note that no model could be chosen; `named`: for a name that the person gave with this very request.

        Looking again and finding the same is no second failure.
        """
        if error.message != self._missing and not (named and isinstance(error, _REFUSALS)):
            self._missing = error.message
            self._failures.answer(SUBSYSTEM, error, "choosing a model")

    def found(self) -> None:
        """Note that a model could be chosen; that it answers is not known yet."""
        if self._missing:
            self._missing = ""
            self._mend()

    def landed(self, flight: Flight, outcome: Outcome) -> None:
        """Take in how a turn's work ended. One that the person stopped, and a prompt that did not fit, say
        nothing about the model.
        """
        error = outcome.exception
        if outcome.reason in _ANSWERED:
            self._missing, self._unanswered = "", False
            self._mend()
        elif not isinstance(error, ModelError) or outcome.reason is StopReason.CONTEXT_EXHAUSTED:
            return
        elif flight.model is not None:
            if not flight.cancel.cancelled:
                self._unanswered = True
                self._failures.answer(SUBSYSTEM, error, flight.turn_id)
        elif not ((flight.request.model or flight.request.thinking) and isinstance(error, _REFUSALS)):
            self._missing = error.message
            self._failures.answer(SUBSYSTEM, error, flight.turn_id)

    def _mend(self) -> None:
        if not self._unanswered:
            self._failures.works(SUBSYSTEM)
