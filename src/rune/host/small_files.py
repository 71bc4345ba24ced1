"""Reading a small file whole, and waiting for one's turn to change it (it is replaced by `files.replace_file`)."""

import errno
import fcntl
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


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
    """Hold the lock file `path` (made when missing, never removed), waiting for whoever holds it. Raises OSError."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(path, flags, 0o600)
    try:
        # flock, not lockf: the latter is lost as soon as any other descriptor of the file is closed.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
