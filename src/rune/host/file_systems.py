"""What a file system can be relied on for: whether locks hold, and whether it is on another machine."""

import contextlib
import fcntl
import os
from pathlib import Path
from typing import Final

_MOUNTS: Final = Path("/proc/self/mountinfo")
# Locks and syncs there mean what a server makes of them.
_NETWORK: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "gpfs", "ocfs2", "davfs"}
)
_NETWORK_STARTS: Final = ("fuse.sshfs", "fuse.s3fs", "fuse.rclone", "fuse.gvfs", "fuse.glusterfs")


def kind_of(folder: Path) -> str:
    """Return the kind of file system that a folder lies on, as the kernel names it; "" where that is not known."""
    try:
        lines = _MOUNTS.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return ""
    real = os.fsencode(folder.resolve())
    best, kind = -1, ""
    for line in lines:
        before, _, after = line.partition(" - ")
        mount = _unescaped(before.split()[4])
        inside = real == mount or real.startswith(mount.rstrip(b"/") + b"/")
        # Of two on one place the later one is on top.
        if inside and len(mount) >= best:
            best, kind = len(mount), after.split()[0]
    return kind


def is_network(kind: str) -> bool:
    """Say whether a kind of file system keeps its files on another machine."""
    return kind in _NETWORK or kind.startswith(_NETWORK_STARTS)


def locks_hold(folder: Path) -> bool | None:
    """Say whether a second lock of one folder is refused, as it must be; None: it cannot be tried.

    Nothing is written: a folder itself can be locked. Raises OSError when it cannot be opened.
    """
    first, second = _opened(folder), -1
    try:
        second = _opened(folder)
        fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
    except OSError:
        return None  # another one tries at this moment, or this file system locks no folders
    else:
        return True
    finally:
        for descriptor in (first, second):
            if descriptor >= 0:
                os.close(descriptor)


def _opened(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _unescaped(mount: str) -> bytes:
    """Return a mount point as bytes; the kernel writes blanks, line ends and backslashes in it as octal numbers."""
    raw = mount.encode("utf-8", "surrogateescape")
    for escape in (b"\\040", b"\\011", b"\\012", b"\\134"):
        raw = raw.replace(escape, bytes([int(escape[1:], 8)]))
    return raw
