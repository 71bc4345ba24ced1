"""A clock that stands still until it is told."""


class CountedClock:
    """Wall and monotonic time in one; `advance` moves both, `step` only the wall."""

    def __init__(self, now_ms: int = 1_796_047_200_000) -> None:
        self._now_ms = now_ms
        self._monotonic = 0.0

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        self._now_ms += round(seconds * 1000)
        self._monotonic += seconds

    def step(self, seconds: float) -> None:
        self._now_ms += round(seconds * 1000)
