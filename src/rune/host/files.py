"""Files that survive: private, replaced whole, synced, locked (the rules of a durable log)."""

import contextlib
import errno
import fcntl
import os
import secrets
import stat
from pathlib import Path
from types import TracebackType

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700
# Never follow a link that someone put in our place, never leave a descriptor to a child process.
_SAFE = os.O_NOFOLLOW | os.O_CLOEXEC


def private_folder(path: Path) -> None:
    """Make a folder (0700) and what is missing above it; each new name is synced. An existing one is left as it is.

    Raises OSError.
    """
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        # Two processes start at once: whoever comes second finds it made.
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=PRIVATE_FOLDER)
        sync_folder(folder.parent)
    if not path.is_dir():
        raise NotADirectoryError(20, "not a folder", str(path))


def create_private(path: Path, flags: int = os.O_WRONLY) -> int:
    """Make a new file (0600) and return its descriptor. Raises FileExistsError and other OSErrors."""
    return os.open(path, flags | os.O_CREAT | os.O_EXCL | _SAFE, PRIVATE_FILE)


def open_regular(path: Path, flags: int = os.O_RDONLY) -> int:
    """Open a file that is there and return its descriptor. What else stands there is neither followed nor waited for.

    Raises OSError: EISDIR for a folder, ELOOP for a symbolic link, EINVAL or ENXIO for a FIFO, a socket or a device.
    """
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY | _SAFE)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise OSError(errno.EISDIR, "a folder", str(path))
    raise OSError(errno.EINVAL, "not a regular file", str(path))


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of it, however often the system takes only a part. Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, data: bytes) -> None:
    """Give a file (0600) this content, whole or not at all, durable on return.

    A reader, or a power cut at any moment, finds the old content or the new one. Raises OSError.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    descriptor = create_private(temporary)
    try:
        try:
            write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def create_whole(path: Path, data: bytes) -> None:
    """Make a new file (0600) with this content, whole or not at all, durable on return.

    Raises FileExistsError when anything has that name, a broken link too, and other OSErrors.
    """
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
    descriptor = create_private(temporary)
    try:
        try:
            write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        try:
            os.link(temporary, path, follow_symlinks=False)
        except FileExistsError:
            raise
        except OSError:
            # A file system without hard links: the name is taken first, so that nothing is ever overwritten.
            os.close(create_private(path))
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


class LockedFile:
    """A file whose `flock` this object holds until `release`. Made by `lock_file`.

    It is flock and never lockf: that one is taken twice by one process and dropped when any
    other descriptor of the file is closed. The kernel drops a flock when its process dies.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor: int | None = descriptor

    def write(self, data: bytes) -> None:
        """Put a note for others into the file. Raises OSError; not synced: it means nothing after a power cut."""
        descriptor = self._descriptor
        if descriptor is None:
            raise ValueError(f"{self.path.name} was released")
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, data, 0)

    def release(self) -> None:
        """Empty the file and let go of it; may be called twice. The file stays: removing it would be a race."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        try:
            with contextlib.suppress(OSError):  # a full or read-only disk: the lock is what counts, not the note
                os.ftruncate(descriptor, 0)
            # A child that is just being started holds a copy of the descriptor until its exec: closing alone
            # would leave the lock to it.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        finally:
            os.close(descriptor)

    def __enter__(self) -> "LockedFile":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def lock_file(path: Path) -> LockedFile | None:
    """Take the lock of a file (made 0600 when it is not there) without waiting; None when it is held.

    Held means: by another process, or by this one through another LockedFile. Raises OSError.
    """
    # Not blocking: what somebody put there may be a FIFO.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | _SAFE, PRIVATE_FILE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return LockedFile(path, descriptor)


def is_locked(path: Path) -> bool:
    """Say whether someone holds the file's lock. For an instant this shares the lock itself: whoever is
    refused while the file names no living holder should try again. Raises OSError other than not found.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | _SAFE)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
