"""The files of a workspace as tools use them: the rules of `places`, held while acting by descriptor.

Writing has two steps. `target` finds where a path really leads, what is there and how the rules see it: that is what a
person approves. `replace` and `remove` act on that real place, and on nothing that has come there since.
"""

import errno
import hashlib
import os
import stat
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final

import msgspec

from rune.errors import (
    AccessDeniedError,
    DigestMismatchError,
    FileUnavailableError,
    InvalidArgumentsError,
    ToolError,
)
from rune.host.beneath import Beneath, Entry, Name
from rune.host.paths import storable_path
from rune.tools.places import Places, Ruling, Use, outside

MOST_BYTES: Final = 64 * 1024 * 1024  # of one file; it is held in memory

_CHUNK: Final = 1 << 20
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO})

_DENIED: Final = {
    errno.EINVAL: "is no regular file, but a pipe, a socket or a device",
    errno.EACCES: "is closed to you by the system",
    errno.EPERM: "is closed to you by the system",
}
_UNAVAILABLE: Final = {
    errno.ENOENT: "is not there; list its folder to see what is",
    errno.EISDIR: "is a folder, not a file",
    errno.ENOTDIR: "needs a folder where a file is",
    errno.ELOOP: "is a link that leads in a circle, or through too many others",
    errno.ENAMETOOLONG: "is longer than a path can be",
}


class FileFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a file: its real path, `size` in bytes, permission bits, hash, and how many names it has."""

    path: Path
    size: int
    mode: int
    sha256: str
    links: int


class FileContent(msgspec.Struct, frozen=True, kw_only=True):
    """A file's bytes and the facts of the moment when they were read."""

    data: bytes
    facts: FileFacts


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """A folder's real path and what is in it."""

    path: Path
    entries: tuple[Entry, ...]


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Where writing leads: the real path, what is there now (None: nothing), and whether a person is always asked."""

    path: Path
    facts: FileFacts | None
    ruling: Ruling


class WorkspaceFiles:
    """Reads and writes within `places`. Paths are absolute or relative to `workspace`, names as of `os.fsdecode`.

    Raises AccessDeniedError for what the rules refuse, FileUnavailableError for what is not there or cannot be read or
    written, InvalidArgumentsError for what is no path. `open_folder` opens one of the folders of `places`.

    Threads may use one together: the folders are opened once, and `close` waits for what still uses them. A call whose
    task was cancelled goes on in its thread, and must not find another file behind a descriptor that was closed.
    """

    def __init__(self, workspace: Path, places: Places, *, open_folder: Callable[[Path], Beneath] = Beneath) -> None:
        self._given = os.fspath(workspace.absolute())
        self._workspace = os.fspath(workspace.resolve())
        self._places = places
        self._open_folder = open_folder
        self._open: dict[Path, Beneath] = {}
        self._gone: list[Beneath] = []  # perhaps still used by another thread
        self._users = 0  # calls that use them now
        self._changed = threading.Condition()

    def __enter__(self) -> "WorkspaceFiles":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the folders; may be called twice, and what is used later opens them anew."""
        with self._changed:
            self._changed.wait_for(lambda: not self._users)
            while self._open:
                self._open.popitem()[1].close()
            while self._gone:
                self._gone.pop().close()

    def read(self, path: str, *, most: int = MOST_BYTES) -> FileContent:
        """Return a file's bytes; one of more than `most` is FileUnavailableError."""
        root, rest = self._way(path, "read")
        with self._typed(path, "read"):
            descriptor, place = self._beneath(root).open(rest)
            try:
                real = root / os.fsdecode(place)
                self._ruled("read", real)
                info = os.fstat(descriptor)
                data = _read(descriptor, path, most)
            finally:
                os.close(descriptor)
        return FileContent(data=data, facts=_facts(real, info, data))

    def list(self, path: str) -> Listing:
        """Return what is in a folder, links and odd things by name only."""
        root, rest = self._way(path, "read")
        with self._typed(path, "read"):
            place, entries = self._beneath(root).list(rest)
        real = root / place
        self._ruled("read", real)
        return Listing(path=real, entries=entries)

    @contextmanager
    def held(self, path: str) -> Generator[tuple[int, Path]]:
        """Hold a folder open: give its descriptor and its real path."""
        root, rest = self._way(path, "read")
        with self._typed(path, "read"):
            descriptor, place = self._beneath(root).folder(rest)
        try:
            real = root / os.fsdecode(place)
            self._ruled("read", real)
            yield descriptor, real
        finally:
            os.close(descriptor)

    def names(self, folder: Path) -> tuple[Name, ...]:
        """Return the names in a folder that is given by its real path, in order. A link on the way is refused: a folder
        that became one since is not followed.
        """
        path = os.fspath(folder)
        root, rest = self._way(path, "read")
        with self._typed(path, "read"):
            return self._beneath(root).names(rest)

    def target(self, path: str) -> Target:
        """Find where writing to `path` leads, for `replace` and `remove`. Links to folders are followed, a link to a
        file is refused, and so is a file with other names (hard links), which may lie anywhere.
        """
        root, rest = self._way(path, "write")
        with self._typed(path, "write"):
            beneath = self._beneath(root)
            place = beneath.place(rest)
            real = root / place
            ruling = self._ruled("write", real)
            try:
                descriptor, reached = beneath.open(place)
            except FileNotFoundError:
                self._no_link(beneath, place, path)
                return Target(path=real, facts=None, ruling=ruling)
            try:
                if os.fsdecode(reached) != place:
                    raise _linked(path, root / os.fsdecode(reached))
                info = os.fstat(descriptor)
                _one_name(info, path)
                data = _read(descriptor, path, MOST_BYTES)
            finally:
                os.close(descriptor)
        return Target(path=real, facts=_facts(real, info, data), ruling=ruling)

    def replace(self, path: str, content: bytes, expected_sha256: str | None) -> FileFacts:
        """Write `content` where a `target` led (its `path`), whole or not at all, and return the facts of what is there
        now. `expected_sha256` is what is replaced, None where nothing may be there yet.

        Raises DigestMismatchError when it is another by now, and writes nothing then.
        """
        with self._acting(path) as (beneath, place, real):
            if expected_sha256 is None:
                info = beneath.create(place, content)
            else:
                _one_name(beneath.stat(place, follow=False).info, path)
                info = beneath.replace(place, content, expected_sha256=expected_sha256)
        return _facts(real, info, content)

    def remove(self, path: str, expected_sha256: str) -> None:
        """Take a file away where a `target` led. Raises DigestMismatchError when it is another by now."""
        with self._acting(path) as (beneath, place, _):
            beneath.remove(place, expected_sha256=expected_sha256)

    @contextmanager
    def _acting(self, path: str) -> Generator[tuple[Beneath, str, Path]]:
        root, rest = self._way(path, "write")
        with self._typed(path, "write"):
            try:
                beneath = self._beneath(root)
                place = beneath.place(rest)
                if place != "/".join(name for name in rest.split("/") if name not in {"", "."}):
                    raise _linked(path, root / place)
                self._ruled("write", root / place)
                yield beneath, place, root / place
            except FileExistsError as error:
                raise DigestMismatchError(
                    f"{_shown(path)} is there by now and was to be new. Nothing was written", hint="Read it first."
                ) from error
            except FileNotFoundError as error:
                raise DigestMismatchError(
                    f"{_shown(path)} is no longer there. Nothing was written", hint="Look what is there."
                ) from error

    def _way(self, path: str, use: Use) -> tuple[Path, str]:
        """Return the widest allowed folder that holds the path as it is written, and the rest of the path.

        What is refused by its name alone is refused here, before anything is touched.
        """
        if not path or "\0" in path:
            raise InvalidArgumentsError("a path is empty" if not path else "a path holds a zero byte")
        try:
            os.fsencode(path)
        except UnicodeEncodeError as error:
            raise InvalidArgumentsError(f"{path!r}: no file can have this name") from error
        full = path if path.startswith("/") else f"{self._workspace}/{path}"
        if full == self._given or full.startswith(f"{self._given}/"):
            full = self._workspace + full[len(self._given) :]
        self._ruled(use, Path(os.path.normpath(f"/{full.lstrip('/')}")))
        names = [name for name in full.split("/") if name not in {"", "."}]
        for folder in sorted(self._allowed(use), key=lambda folder: len(folder.parts)):
            above = folder.parts[1:]
            if tuple(names[: len(above)]) == above:
                rest = "/".join(names[len(above) :]) or "."
                return folder, f"{rest}/" if full.endswith(("/", "/.")) else rest
        raise AccessDeniedError(outside(path, self._allowed(use), use))

    def _allowed(self, use: Use) -> tuple[Path, ...]:
        return self._places.writing if use == "write" else (*self._places.writing, *self._places.reading)

    def _beneath(self, folder: Path) -> Beneath:
        """Return the folder, held open. One that has been moved away or taken away since is let go: what has its path
        now is another. Raises FileUnavailableError where that is a link by now: it leads to where nothing was allowed.
        """
        with self._changed:
            held = self._open.get(folder)
            if held is not None and not held.stands_at(folder):
                self._gone.append(self._open.pop(folder))
                held = None
            if held is None:
                held = self._open_folder(folder)
                if not held.stands_at(folder) or folder.resolve() != folder:
                    held.close()
                    raise FileUnavailableError(
                        f"{storable_path(folder)} is no longer the folder that it was",
                        hint="A person has to look what became of it.",
                        retryable=False,
                    )
                self._open[folder] = held
            return held

    def _ruled(self, use: Use, path: Path) -> Ruling:
        ruling = self._places.ruling(use, path)
        if ruling.verdict == "deny":
            raise AccessDeniedError(ruling.reason)
        return ruling

    def _no_link(self, beneath: Beneath, place: str, path: str) -> None:
        """Raise AccessDeniedError for a link that leads to nothing."""
        try:
            found = beneath.stat(place, follow=False)
        except FileNotFoundError:
            return
        if stat.S_ISLNK(found.info.st_mode):
            raise _linked(path, None)

    @contextmanager
    def _typed(self, path: str, use: Use) -> Generator[None]:
        """Count as one that uses the folders, and make the system's errors ours."""
        with self._changed:
            self._users += 1
        try:
            yield
        except OSError as error:
            raise self._error(error, path, use) from error
        finally:
            with self._changed:
                self._users -= 1
                self._changed.notify_all()

    def _error(self, error: OSError, path: str, use: Use) -> ToolError:
        shown = _shown(path)
        number = error.errno or 0
        if number == errno.EXDEV:
            return AccessDeniedError(outside(path, dict.fromkeys(self._allowed(use)), use))
        if number == errno.ELOOP and use == "write":
            return _linked(path, None)
        if number in _DENIED:
            return AccessDeniedError(f"Access denied: {shown} {_DENIED[number]}.")
        if number in _NO_ROOM:
            hint = "A person has to look at that disk."
            return FileUnavailableError(f"{shown}: {error.strerror}", hint=hint, retryable=False)
        return FileUnavailableError(f"{shown} {_UNAVAILABLE.get(number, f'cannot be used: {error.strerror or error}')}")


def _read(descriptor: int, path: str, most: int) -> bytes:
    """Return all of an open file. Raises FileUnavailableError for more than `most` bytes."""
    chunks: list[bytes] = []
    size = 0
    while chunk := os.pread(descriptor, _CHUNK, size):
        size += len(chunk)
        if size > most:
            hint = "Read a part of it with a command."
            raise FileUnavailableError(f"{_shown(path)} is larger than {most:,} bytes", hint=hint, retryable=False)
        chunks.append(chunk)
    return b"".join(chunks)


def _facts(path: Path, info: os.stat_result, data: bytes) -> FileFacts:
    return FileFacts(
        path=path,
        size=len(data),
        mode=stat.S_IMODE(info.st_mode),
        sha256=hashlib.sha256(data).hexdigest(),
        links=info.st_nlink,
    )


def _one_name(info: os.stat_result, path: str) -> None:
    if info.st_nlink > 1 and stat.S_ISREG(info.st_mode):
        raise AccessDeniedError(
            f"Access denied: {_shown(path)} has {info.st_nlink} names (hard links), and the others may be anywhere.",
            hint="Copy it to a new file and write that one.",
        )


def _linked(path: str, real: Path | None) -> AccessDeniedError:
    where = f" It leads to {storable_path(real)}: write there instead." if real is not None else ""
    return AccessDeniedError(f"Access denied: {_shown(path)} is a link, and writing follows none.{where}")


def _shown(path: str) -> str:
    return storable_path(Path(path))
