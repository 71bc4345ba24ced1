"""Gathers what comes in bursts and passes it on so often that it looks immediate, and no more often."""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

A_SECOND = 30


class Flushes(Generic[T]):
    """Hands over all that came since the last time, at most 30 times a second; the first at once.

    `deliver` is called on the event loop, never from within `put`.
    """

    def __init__(self, deliver: Callable[[list[T]], None]) -> None:
        self._deliver = deliver
        self._gathered: list[T] = []
        self._due: asyncio.TimerHandle | None = None
        self._last = float("-inf")

    def put(self, item: T) -> None:
        """Take one more."""
        self._gathered.append(item)
        if self._due is None:
            loop = asyncio.get_running_loop()
            self._due = loop.call_at(max(loop.time(), self._last + 1 / A_SECOND), self.flush)

    def at_once(self, item: T) -> None:
        """Take one that is none of a burst, and hand over what there is: the next burst begins at once after it."""
        self._gathered.append(item)
        self.flush()
        self._last = float("-inf")

    def flush(self) -> None:
        """Hand over what there is now."""
        if self._due is not None:
            self._due.cancel()
            self._due = None
        if self._gathered:
            self._last = asyncio.get_running_loop().time()
            gathered, self._gathered = self._gathered, []
            self._deliver(gathered)
