"""Failures that do not end a turn: recorded, and said to the person once where they should know."""

from collections.abc import Callable
from typing import Literal

from rune.errors import RuneError

RecordFailure = Callable[[str, BaseException, Literal[0, 1, 2], str], bool]


class TurnFailures:
    """Records what a turn went on without (T1) and what failed in the background (T2).

    `record` and `recovered` (given a subsystem's name) are the health registry's. What a person should be told
    waits until the turn shows it.
    """

    def __init__(self, record: RecordFailure, recovered: Callable[[str], None]) -> None:
        self._record = record
        self._recovered = recovered
        self._untold: list[str] = []

    def degraded(self, subsystem: str, error: BaseException) -> None:
        """Record that a contribution failed and the turn goes on without it."""
        if self._record(subsystem, error, 1, ""):
            message = error.message if isinstance(error, RuneError) else f"{type(error).__name__}: {error}"
            self._untold.append(f"{subsystem} failed, going on without it: {message}")

    def background(self, subsystem: str, error: BaseException) -> None:
        """Record that background work failed; `/health` shows it."""
        self._record(subsystem, error, 2, "")

    def answer(self, subsystem: str, error: BaseException, context: str) -> None:
        """Record that the answer itself failed; the turn's end tells the person."""
        self._record(subsystem, error, 0, context)

    def works(self, subsystem: str) -> None:
        """Note that it works, whether or not it had failed."""
        self._recovered(subsystem)

    def untold(self) -> list[str]:
        """Return what the person was not told yet, and take it as told."""
        told, self._untold = self._untold, []
        return told
