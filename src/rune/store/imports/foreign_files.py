"""Files of other programs: opened for reading only, and cut into lines of bounded length."""

import contextlib
import os
import stat
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import NamedTuple

from rune.errors import UsageError
from rune.store.imports.arrivals import EVIDENCE_LIMIT

_CHUNK = 256 << 10
_BOM = b"\xef\xbb\xbf"
_KINDS = (
    (stat.S_ISDIR, "is a folder"),
    (stat.S_ISFIFO, "is a pipe"),
    (stat.S_ISSOCK, "is a socket"),
    (stat.S_ISCHR, "is a device"),
    (stat.S_ISBLK, "is a device"),
)


class ForeignLine(NamedTuple):
    """One line without its newline. `length` is its true length in bytes; `data` is empty when that is too much."""

    number: int
    data: bytes
    length: int

    @property
    def too_long(self) -> bool:
        """Whether it was longer than may be kept."""
        return self.length > EVIDENCE_LIMIT


@contextlib.contextmanager
def opened(path: Path) -> Generator[int, None, None]:
    """Give a descriptor of a regular file, for reading. Raises UsageError for everything else."""
    try:
        # Not blocking: a FIFO would wait for its writer before it could be refused.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no file can have that name"
        raise UsageError(f"{str(path)!r} cannot be read: {reason or error}") from error
    try:
        mode = os.fstat(descriptor).st_mode
        for is_kind, words in _KINDS:
            if is_kind(mode):
                raise UsageError(f"{str(path)!r} {words}, not a file", hint="Name the file itself.")
        yield descriptor
    finally:
        os.close(descriptor)


def chunks(descriptor: int, path: Path) -> Iterator[bytes]:
    """Iterate over a file's bytes, without a byte order mark. Raises UsageError when reading fails."""
    first = True
    while True:
        try:
            chunk = os.read(descriptor, _CHUNK)
        except OSError as error:
            raise UsageError(f"{str(path)!r} cannot be read: {error.strerror or error}") from error
        if not chunk:
            return
        yield chunk.removeprefix(_BOM) if first else chunk
        first = False


def lines(pieces: Iterator[bytes]) -> Iterator[ForeignLine]:
    """Iterate over all lines, split on line feeds only; the last one needs no newline."""
    held, length, number = bytearray(), 0, 1
    for piece in pieces:
        start = 0
        while start <= len(piece):
            end = piece.find(b"\n", start)
            part = piece[start:] if end < 0 else piece[start:end]
            length += len(part)
            if length <= EVIDENCE_LIMIT:
                held += part
            else:
                held.clear()
            if end < 0:
                break
            yield ForeignLine(number, bytes(held), length)
            held.clear()
            length, number, start = 0, number + 1, end + 1
    if length:
        yield ForeignLine(number, bytes(held), length)
