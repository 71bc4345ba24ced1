"""The few tries that a call has, all before any byte of its answer (models.md, rule 14)."""

from typing import Final

from rune.errors import BusyError, ModelError, ModelUnavailableError, StreamBrokenError

_REFUSED: Final = (0.2,)
_BUSY: Final = (0.5, 1.5)
_LONGEST: Final = 10.0


class Retries:
    """Says how long to wait before a call is sent again: once for a connection refused or cut, twice for a server that
    is busy, as long as it says where that is short. One for each call.
    """

    def __init__(self) -> None:
        self._refused = iter(_REFUSED)
        self._busy = iter(_BUSY)

    def pause_after(self, error: ModelError) -> float | None:
        """Return seconds; None: not again."""
        match error:
            case ModelUnavailableError() | StreamBrokenError():
                return next(self._refused, None)
            case BusyError(retry_after=asked):
                usual = next(self._busy, None)
                if usual is None or asked is None:
                    return usual
                return asked if asked <= _LONGEST else None
            case _:
                return None
