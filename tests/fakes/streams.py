"""Streams that keep what they are given."""

from collections.abc import Callable


class KeptStream:
    """A stdout or stderr in memory; `fail` makes it one that takes nothing any more. `looks` counts who looked."""

    def __init__(self, *, is_terminal: bool = False) -> None:
        self.is_terminal = is_terminal
        self.lost: OSError | None = None
        self.on_lost: Callable[[], None] | None = None
        self.unwritten = 0
        self.looks = 0
        self.kept = b""

    @property
    def text(self) -> str:
        return self.kept.decode()

    def write(self, data: bytes) -> None:
        if self.lost is None:
            self.kept += data

    def look(self) -> None:
        self.looks += 1

    def fail(self, failure: OSError) -> None:
        self.lost = failure
        if self.on_lost is not None:
            self.on_lost()
