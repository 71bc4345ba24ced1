"""Reading a small file whole, and waiting for one's turn to change it (it is replaced by `files.replace_file`)."""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

PATIENCE_SECONDS: Final = 3.0
PAUSE_SECONDS: Final = 0.005


def read_bounded(path: Path, limit: int) -> bytes:
    """Return a regular file's content. Raises OSError: EFBIG for more than `limit` bytes, EINVAL for
    what is not a regular file (a FIFO is never waited for).
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"larger than {limit:,} bytes", str(path))
    return data


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Hold the lock file `path` (made when missing, never removed), waiting for whoever holds it.

    Raises OSError; ETIMEDOUT when somebody holds it for seconds: what it guards takes milliseconds, so its holder
    has stopped, and nobody is helped by waiting for that.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(path, flags, 0o600)
    try:
        # flock, not lockf: the latter is lost as soon as any other descriptor of the file is closed.
        _take(descriptor, path)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, path: Path) -> None:
    ends = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > ends:
                raise OSError(errno.ETIMEDOUT, "another process holds it and does not let go", str(path)) from error
            time.sleep(PAUSE_SECONDS)
        else:
            return
