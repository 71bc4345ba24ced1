"""Two ways from a folder to what is beneath it, which no `..` and no link leads out of.

`ByKernel` lets Linux see to that (`openat2` with RESOLVE_BENEATH), `ByWalk` goes from folder to folder itself, by
descriptor and without following: for other systems, older kernels and filters. Both behave alike.
A way out is EXDEV, a link whose target is absolute always is one. Names are bytes and kept as they are.
"""

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final, NamedTuple, Protocol

from rune.host.linux_calls import BENEATH, NO_LINKS, NO_MAGIC_LINKS, openat2

_MOST_LINKS: Final = 40  # Linux' own limit
_MOST_BYTES: Final = 4096  # PATH_MAX, its zero byte included
_PATIENCE: Final = 32
_DELETED: Final = b" (deleted)"

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# A folder that may be entered but not listed is gone through all the same where the system can.
_ENTER: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Reached(NamedTuple):
    """An open descriptor, which the caller closes, and the real place: names from the root on, b"" for the root."""

    descriptor: int
    place: bytes


class Seen(NamedTuple):
    """What is known of something that was not opened, and its real place."""

    info: os.stat_result
    place: bytes


class Resolver(Protocol):
    """A way from the folder `root` (a descriptor) to `path` beneath it. All of it raises OSError."""

    def folder(self, root: int, path: bytes, *, links: bool = True) -> Reached:
        """Open a folder for listing. `links=False`: a link anywhere on the way is ELOOP."""
        ...

    def regular(self, root: int, path: bytes) -> Reached:
        """Open a file for reading: EISDIR for a folder, EINVAL for a FIFO, a socket, a device (not opened, ever)."""
        ...

    def stat(self, root: int, path: bytes, *, follow: bool = True) -> Seen:
        """Look at whatever is there. `follow=False`: a link in the last place is looked at itself."""
        ...


class ByWalk:
    """Goes the way folder by folder and reads links itself."""

    def folder(self, root: int, path: bytes, *, links: bool = True) -> Reached:
        """As `Resolver.folder`."""
        with _arrival(root, path, links=links) as (here, names, last):
            descriptor = os.open(last or b".", _FOLDER | os.O_NOFOLLOW, dir_fd=here)
        return Reached(descriptor, _joined(names, last))

    def regular(self, root: int, path: bytes) -> Reached:
        """As `Resolver.regular`."""
        with _arrival(root, path) as (here, names, last):
            if last is None:
                raise _error(errno.EISDIR, path)
            return Reached(regular_at(here, last), _joined(names, last))

    def stat(self, root: int, path: bytes, *, follow: bool = True) -> Seen:
        """As `Resolver.stat`."""
        with _arrival(root, path, follow=follow) as (here, names, last):
            info = os.fstat(here) if last is None else os.stat(last, dir_fd=here, follow_symlinks=False)
        return Seen(info, _joined(names, last))


class ByKernel:
    """Asks Linux. Where it cannot tell the real place of what it opened, a walk goes there and says it."""

    def __init__(self) -> None:
        self._walk = ByWalk()

    def folder(self, root: int, path: bytes, *, links: bool = True) -> Reached:
        """As `Resolver.folder`."""
        descriptor = _beneath(root, path, _FOLDER, links=links)
        if (place := _owned_place(root, descriptor)) is None:
            return self._walk.folder(root, path, links=links)
        return Reached(descriptor, place)

    def regular(self, root: int, path: bytes) -> Reached:
        """As `Resolver.regular`."""
        # Not opened before it is known what it is: opening alone wakes who waits at a FIFO and rewinds a tape.
        found = _beneath(root, path, os.O_PATH)
        try:
            _only_regular(os.fstat(found), path)
            descriptor = os.open(f"/proc/self/fd/{found}", _READ)
        finally:
            os.close(found)
        if (place := _owned_place(root, descriptor)) is None:
            return self._walk.regular(root, path)
        return Reached(descriptor, place)

    def stat(self, root: int, path: bytes, *, follow: bool = True) -> Seen:
        """As `Resolver.stat`."""
        found = _beneath(root, path, os.O_PATH | (0 if follow else os.O_NOFOLLOW))
        try:
            info, place = os.fstat(found), _place(root, found)
        finally:
            os.close(found)
        return self._walk.stat(root, path, follow=follow) if place is None else Seen(info, place)


def best_resolver(root: int) -> Resolver:
    """Return the kernel's way where it works, tried on the folder `root`, else the walk. Raises OSError for neither."""
    try:
        found = openat2(root, b".", os.O_RDONLY | os.O_DIRECTORY, BENEATH | NO_MAGIC_LINKS)
    except OSError:
        return ByWalk()  # whatever is wrong, the walk says it or does it
    if _owned_place(root, found) is None:
        return ByWalk()
    os.close(found)
    return ByKernel()


def regular_at(folder: int, name: bytes) -> int:
    """Open a file of an open folder for reading and return its descriptor; what else stands there is neither followed
    nor waited for. Raises OSError: ELOOP for a link, EISDIR, EINVAL as `Resolver.regular`.
    """
    before = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISLNK(before.st_mode):
        raise _error(errno.ELOOP, name)
    _only_regular(before, name)
    descriptor = os.open(name, _READ | os.O_NOFOLLOW, dir_fd=folder)
    try:
        _only_regular(os.fstat(descriptor), name)  # it may be another one by now
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def checked(path: bytes) -> bytes:
    """Return the path where the system could take it; both ways refuse others alike. Raises OSError."""
    if not path:
        raise _error(errno.ENOENT, path)
    if b"\0" in path:
        raise _error(errno.EINVAL, path)
    if len(path) >= _MOST_BYTES:
        raise _error(errno.ENAMETOOLONG, path)
    if path.startswith(b"/"):
        raise _error(errno.EXDEV, path)
    return path


def _beneath(root: int, path: bytes, flags: int, *, links: bool = True) -> int:
    resolve = BENEATH | NO_MAGIC_LINKS | (0 if links else NO_LINKS)
    for _ in range(_PATIENCE):
        try:
            return openat2(root, checked(path), flags, resolve)
        except BlockingIOError:
            continue  # a folder was moved somewhere while a `..` was gone: the kernel wants to be asked again
    raise _error(errno.EAGAIN, path)


def _owned_place(root: int, descriptor: int) -> bytes | None:
    """Return the place of an open descriptor; closes it when there is none to return."""
    try:
        place = _place(root, descriptor)
    except OSError:
        os.close(descriptor)
        raise
    if place is None:
        os.close(descriptor)
    return place


def _place(root: int, descriptor: int) -> bytes | None:
    """Return the names that lead from the root to it now; None where the kernel's answer says nothing.

    Raises OSError (EXDEV) for what was moved out of the root since it was opened.
    """
    try:
        top = os.readlink(b"/proc/self/fd/%d" % root)  # noqa: PTH115 - names are bytes
        full = os.readlink(b"/proc/self/fd/%d" % descriptor)  # noqa: PTH115 - as above
    except OSError:
        return None  # no /proc, or the whole path is longer than a page
    if full.endswith(_DELETED) or top.endswith(_DELETED) or not top.startswith(b"/"):
        return None
    if full == top:
        return b""
    above = top.rstrip(b"/") + b"/"
    if not full.startswith(above):
        raise _error(errno.EXDEV, full)
    return full[len(above) :]


@contextmanager
def _arrival(
    root: int, path: bytes, *, links: bool = True, follow: bool = True
) -> Generator[tuple[int, list[bytes], bytes | None]]:
    """Go to the folder that holds the last component: give its descriptor, the names up to it, and that component,
    which is no link when `follow`. It is None where the way ends in a folder by itself (`.`, `..`, a slash).
    """
    waiting = _components(checked(path))
    names: list[bytes] = []
    here = os.dup(root)
    last: bytes | None = None
    followed = 0
    try:
        while waiting:
            name = waiting.pop()
            if name == b".":
                continue
            if name == b"..":
                here = _moved(here, _entered(root, names[:-1]) if names else _refused(errno.EXDEV, path))
                names.pop()
                continue
            target = _target(here, name) if waiting or follow else None
            if target is not None:
                followed += 1
                if not links or followed > _MOST_LINKS:
                    raise _error(errno.ELOOP, path)
                if target.startswith(b"/"):
                    raise _error(errno.EXDEV, path)
                waiting.extend(_components(target))
            elif waiting:
                here = _moved(here, os.open(name, _ENTER, dir_fd=here))
                names.append(name)
            else:
                last = name
        yield here, names, last
    finally:
        os.close(here)


def _entered(root: int, names: list[bytes]) -> int:
    """Go down again, without any link: only one descriptor is open at a time, however deep it is."""
    here = os.dup(root)
    try:
        for name in names:
            here = _moved(here, os.open(name, _ENTER, dir_fd=here))
    except OSError:
        os.close(here)
        raise
    return here


def _moved(old: int, new: int) -> int:
    os.close(old)
    return new


def _target(folder: int, name: bytes) -> bytes | None:
    """Return where a link points to, None for what is no link."""
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.EINVAL:
            return None
        raise


def _components(path: bytes) -> list[bytes]:
    """Return the components, the last first; a slash at the end is a `.`, since only a folder may have it."""
    parts = [part for part in path.split(b"/") if part]
    return list(reversed([*parts, b"."] if path.endswith(b"/") else parts))


def _joined(names: list[bytes], last: bytes | None) -> bytes:
    return b"/".join(names if last is None else [*names, last])


def _only_regular(info: os.stat_result, path: bytes) -> None:
    if stat.S_ISDIR(info.st_mode):
        raise _error(errno.EISDIR, path)
    if not stat.S_ISREG(info.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", os.fsdecode(path))


def _refused(number: int, path: bytes) -> int:
    raise _error(number, path)


def _error(number: int, path: bytes) -> OSError:
    return OSError(number, os.strerror(number), os.fsdecode(path))
