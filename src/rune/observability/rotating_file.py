"""A file that lines are appended to and that never grows beyond a few pieces."""

import errno
import os
import threading
from pathlib import Path

PIECE_LIMIT = 10 * 1024 * 1024
PIECES = 3
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class RotatingFile:
    """`path`, `path.1` (older), `path.2` ...: at most `pieces` files of about `limit` bytes, mode 0600.

    Every line is written at once and nothing is buffered: after an error nothing waits to be written
    later, and a line that did not fit on the disk is taken back whole. For one process; from any thread.
    """

    def __init__(self, path: Path, *, limit: int = PIECE_LIMIT, pieces: int = PIECES) -> None:
        self._path = path
        self._limit = limit
        self._pieces = pieces
        self._descriptor: int | None = None
        self._mutex = threading.Lock()

    def append(self, line: bytes) -> None:
        """Write one line, which ends with its own newline. Raises OSError; the next call tries anew."""
        with self._mutex:
            descriptor, size = self._opened()
            if size and size + len(line) > self._limit:
                self._rotate()
                descriptor, size = self._opened()
            written = os.write(descriptor, line)
            if written != len(line):
                os.ftruncate(descriptor, size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))

    def close(self) -> None:
        """Let go of the file; may be called twice, and a later `append` opens it again."""
        with self._mutex:
            self._close()

    def _opened(self) -> tuple[int, int]:
        """Return the descriptor and the file's size in bytes; a file that someone removed is made again."""
        if self._descriptor is not None:
            info = os.fstat(self._descriptor)
            if info.st_nlink:
                return self._descriptor, info.st_size
            self._close()
        self._descriptor = os.open(self._path, _FLAGS, 0o600)
        return self._descriptor, os.fstat(self._descriptor).st_size

    def _rotate(self) -> None:
        self._close()
        for number in range(self._pieces - 1, 0, -1):
            newer = self._piece(number - 1)
            if newer.exists():
                newer.replace(self._piece(number))

    def _piece(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}") if number else self._path

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)
