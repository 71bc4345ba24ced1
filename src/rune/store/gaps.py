"""Reading a file of which a part cannot be read: up to a bad sector, and past it."""

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from rune.host.files import open_regular
from rune.store.failures import why_unreadable

# What a disk and the system's cache read at once: one bad sector spoils so much.
_PAGE: Final = 4096
# Each failure may take a disk seconds: behind so many in a row it goes on in longer steps.
_SHORT_STEPS: Final = 64
_LONG_STEP: Final = 1 << 20

Gap = Callable[[], None]


def read_at(descriptor: int, length: int, place: int) -> bytes:
    """Return up to `length` bytes from `place` on; where a part cannot be read, those before it. Raises OSError when
    the first of them cannot be read.
    """
    try:
        return os.pread(descriptor, length, place)
    except OSError as error:
        to_page = _PAGE - place % _PAGE
        if length <= to_page or why_unreadable(error) is None:
            raise
        return os.pread(descriptor, to_page, place)


def open_past_gaps(path: Path, start: int = 0, gap: Gap = lambda: None) -> io.BufferedReader:
    """Open a file to read from the byte `start` on. In place of each stretch that cannot be read comes one line feed,
    and `gap` is told; where no file stands it is told once, and there is nothing to read.

    Raises OSError for what may pass: FileNotFoundError, no permission.
    """
    try:
        descriptor = open_regular(path)
    except OSError as error:
        if why_unreadable(error) is None:
            raise
        gap()
        return io.BufferedReader(io.BytesIO())  # pyright: ignore[reportArgumentType] it reads as a raw one does
    return io.BufferedReader(_PastGaps(descriptor, start, gap), _PAGE * 16)


class _PastGaps(io.RawIOBase):
    def __init__(self, descriptor: int, place: int, gap: Gap) -> None:
        self._descriptor = descriptor
        self._place = place
        self._gap = gap
        self._failed = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # pyright: ignore[reportIncompatibleMethodOverride] all that is given
        try:
            data = read_at(self._descriptor, len(buffer), self._place)
        except OSError as error:
            if why_unreadable(error) is None:
                raise
            return self._pass_over(buffer)
        self._failed = 0
        self._place += len(data)
        buffer[: len(data)] = data
        return len(data)

    def _pass_over(self, buffer: memoryview) -> int:
        if self._place >= os.fstat(self._descriptor).st_size:
            return 0
        if not self._failed:
            self._gap()
        self._failed += 1
        step = _PAGE if self._failed < _SHORT_STEPS else _LONG_STEP
        self._place += step - self._place % _PAGE
        buffer[:1] = b"\n"
        return 1

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
        super().close()
