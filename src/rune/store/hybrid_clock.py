"""The `hlc` of events: wall milliseconds that never go back (spine.md, Order)."""

import threading

from rune.host.clock import Clock


class HybridClock:
    """Gives max(wall milliseconds, last seen + 1). Shared by the writer and all readers of a store."""

    def __init__(self, clock: Clock, last: int = 0) -> None:
        self._clock = clock
        self._last = last
        self._lock = threading.Lock()

    def tick(self) -> int:
        """Return the next value, greater than every value given or seen so far."""
        with self._lock:
            self._last = max(self._clock.now_ms(), self._last + 1)
            return self._last

    def see(self, hlc: int) -> None:
        """Take notice of another writer's value."""
        if hlc > self._last:  # reading old events, nearly all, needs no lock: the value only grows
            with self._lock:
                self._last = max(self._last, hlc)
