"""Time, as a port: real in the product, counted in tests."""

import time
from typing import Protocol


class Clock(Protocol):
    """Two clocks: one to date things with, one to measure with."""

    def now_ms(self) -> int:
        """Return wall milliseconds since 1970 (may step)."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go back; only differences mean something."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now_ms(self) -> int:
        """Return wall milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Return seconds of the monotonic clock."""
        return time.monotonic()
