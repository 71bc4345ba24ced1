"""Two system calls of Linux that Python does not offer: `openat2` and `renameat2`.

Elsewhere, on older kernels and under filters that do not know them, both fail with ENOSYS or EPERM: callers have a
second way.
"""

import errno
import os
import struct
import sys
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import ctypes

# From linux/openat2.h: what may not happen on the way to the file.
NO_MAGIC_LINKS: Final = 0x02
NO_LINKS: Final = 0x04
BENEATH: Final = 0x08

_OPENAT2: Final = 437  # the same on every architecture but Alpha
_RENAME_EXCHANGE: Final = 2


def openat2(folder: int, path: bytes, flags: int, resolve: int) -> int:
    """Open `path` below the folder of a descriptor; `resolve` limits the way. The descriptor stays in this process.

    Raises OSError: EXDEV for a way that leaves the folder, ELOOP for a link that is not allowed, EAGAIN when folders
    were moved meanwhile, ENOSYS where there is no such call.
    """
    import ctypes  # noqa: PLC0415 - only tools need it, and not at the start

    how = struct.pack("=QQQ", flags | os.O_CLOEXEC, 0, resolve)
    while True:
        result = _library().syscall(
            ctypes.c_long(_OPENAT2),
            ctypes.c_int(folder),
            ctypes.c_char_p(path),
            ctypes.c_char_p(how),
            ctypes.c_size_t(len(how)),
        )
        if result >= 0:
            return int(result)
        if (number := ctypes.get_errno()) != errno.EINTR:
            raise OSError(number, os.strerror(number), os.fsdecode(path))


def exchange(folder: int, one: bytes, other: bytes) -> None:
    """Let two names of one folder change places, in one step. Links are not followed.

    Raises OSError: ENOENT when one is not there, ENOSYS or EINVAL where that cannot be done.
    """
    import ctypes  # noqa: PLC0415 - as above

    library = _library()
    if not hasattr(library, "renameat2"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    names = (ctypes.c_char_p(one), ctypes.c_int(folder), ctypes.c_char_p(other))
    if library.renameat2(ctypes.c_int(folder), *names, ctypes.c_uint(_RENAME_EXCHANGE)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), os.fsdecode(other))


@cache
def _library() -> "ctypes.CDLL":
    import ctypes  # noqa: PLC0415 - as above

    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    return ctypes.CDLL(None, use_errno=True)
