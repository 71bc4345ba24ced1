"""Files beneath one folder, reached and acted on by descriptor.

No `..`, no link and no swap of the two in mid-act leads out of the folder. Reading follows links that stay inside;
writing follows none, so that what was approved by its real place (`Beneath.place`) is what is written. Content is
replaced whole, as in `rune.host.files`, and only while it is what the caller knows (design: tools.md, Sandbox, Paths).
"""

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, NamedTuple

import msgspec

from rune.errors import DigestMismatchError
from rune.host.files import write_all
from rune.host.linux_calls import exchange
from rune.host.paths import storable_path
from rune.host.resolving import Reached, Resolver, Seen, best_resolver, checked, regular_at

Kind = Literal["file", "folder", "link", "other"]
Exchange = Callable[[int, bytes, bytes], None]

_NEW_FILE: Final = 0o644
_NEW_FOLDER: Final = 0o755
_MAKE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DOWN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_FILE_NAME: Final = frozenset({b"", b".", b".."})
_NO_EXCHANGE: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.EPERM, errno.EOPNOTSUPP})
_NO_HARD_LINKS: Final = frozenset({errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK})


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One name in a folder, as `os.fsdecode` gives it. `size` in bytes; a link is not followed."""

    name: str
    kind: Kind
    size: int


class Name(NamedTuple):
    """One name in a folder and what it is, as far as the folder itself tells: nothing of it was looked at."""

    name: str
    kind: Kind


class Beneath:
    """The folder `root`, held open. Paths are relative to it; a name that is not UTF-8 is as `os.fsdecode` gives it.

    All of it raises OSError: EXDEV for a way out, ELOOP for a loop or, in writing, any link, EINVAL for what is no
    regular file or no name. `resolver` and `exchange` are the best that this system has, where none is given.
    """

    def __init__(self, root: Path, *, resolver: Resolver | None = None, exchange: Exchange = exchange) -> None:
        self._root = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._resolver = resolver or best_resolver(self._root)
        except OSError:
            os.close(self._root)
            raise
        self._exchange = exchange

    def __enter__(self) -> "Beneath":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the folder; may be called twice."""
        root, self._root = self._root, -1
        if root >= 0:
            os.close(root)

    def stands_at(self, path: Path) -> bool:
        """Say whether the folder that is held is still what has this path, no link being followed in the last place."""
        try:
            return os.path.samestat(os.fstat(self._root), path.lstat())
        except OSError:
            return False

    def open(self, path: str) -> Reached:
        """Open a file for reading. `place` is where it really is; `st_nlink` of it says whether it has other names."""
        return self._resolver.regular(self._root, _bytes(path))

    def list(self, path: str) -> tuple[str, tuple[Entry, ...]]:
        """Return a folder's real place and what is in it, by name."""
        descriptor, place = self._resolver.folder(self._root, _bytes(path))
        try:
            with os.scandir(descriptor) as entries:
                found = [entry for each in entries if (entry := _entry(each)) is not None]
        finally:
            os.close(descriptor)
        return os.fsdecode(place), tuple(sorted(found, key=lambda entry: entry.name))

    def folder(self, path: str) -> Reached:
        """Open a folder; the caller closes it. `place` is where it really is."""
        return self._resolver.folder(self._root, _bytes(path))

    def names(self, place: str) -> tuple[Name, ...]:
        """Return what is in a folder, by name, without looking at each. ELOOP for any link on the way."""
        descriptor, _ = self._resolver.folder(self._root, _bytes(place), links=False)
        try:
            with os.scandir(descriptor) as entries:
                return tuple(sorted(Name(os.fsdecode(each.name), _kind_by_name(each)) for each in entries))
        finally:
            os.close(descriptor)

    def stat(self, path: str, *, follow: bool = True) -> Seen:
        """Look at whatever is there, without opening it. `follow=False`: a link in the last place itself."""
        return self._resolver.stat(self._root, _bytes(path), follow=follow)

    def place(self, path: str) -> str:
        """Return where writing `path` would write: links to folders followed, its last name kept as it is.

        What is not there yet is part of it; whether it is, is not looked at.
        """
        parent, name = _split(_bytes(path))
        missing = [name]
        while parent:
            try:
                descriptor, real = self._resolver.folder(self._root, parent)
            except FileNotFoundError:
                parent, name = _split(parent)
                missing.append(name)
            else:
                os.close(descriptor)
                return os.fsdecode(b"/".join([*([real] if real else []), *reversed(missing)]))
        return os.fsdecode(b"/".join(reversed(missing)))

    def create(self, place: str, data: bytes) -> os.stat_result:
        """Make a new file (0644 less the umask) and the folders that are missing above it, durable on return.

        `place` is one that `place` returned. Raises FileExistsError when anything has that name, a broken link too.
        """
        with self._folder_of(place, make=True) as (folder, name):
            temporary = _fresh_name()
            with _written(folder, temporary, data) as new:
                try:
                    os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
                except OSError as error:
                    if error.errno not in _NO_HARD_LINKS:
                        raise
                    # Not whole at once here, but never over anything.
                    with _written(folder, name, data) as direct:
                        info = os.fstat(direct)
                else:
                    info = os.fstat(new)
                finally:
                    os.unlink(temporary, dir_fd=folder)
            os.fsync(folder)
        return info

    def replace(self, place: str, data: bytes, *, expected_sha256: str) -> os.stat_result:
        """Give a file new content, whole or not at all, durable on return; its mode stays, and its owner where allowed.

        Raises DigestMismatchError when its content is another, or something else stands there, up to the very moment
        of the change: that is then as it was.
        """
        with self._folder_of(place) as (folder, name), _open_at(folder, name) as old:

            def check(held: bytes) -> None:
                self._same(folder, held, old, place, expected_sha256)

            check(name)
            temporary = _fresh_name()
            # Both files stay open until the end: the number of one that is gone would be given to the next.
            with _written(folder, temporary, data, like=os.fstat(old)) as new:
                try:
                    self._swap(folder, temporary, name, new, check)
                finally:
                    _discard(folder, temporary, new)
                info = os.fstat(new)
            os.fsync(folder)
        return info

    def remove(self, place: str, *, expected_sha256: str) -> None:
        """Take a file away, durable on return. Raises DigestMismatchError as `replace`."""
        with self._folder_of(place) as (folder, name), _open_at(folder, name) as old:
            self._same(folder, name, old, place, expected_sha256)
            # By another name it is looked at once more: between look and act somebody may have swapped it.
            aside = _fresh_name()
            try:
                os.rename(name, aside, src_dir_fd=folder, dst_dir_fd=folder)
            except FileNotFoundError as error:
                raise _mismatch(place) from error
            try:
                self._same(folder, aside, old, place, expected_sha256)
            except DigestMismatchError:
                _named_again(folder, aside, name)
                raise
            os.unlink(aside, dir_fd=folder)
            os.fsync(folder)

    @contextmanager
    def _folder_of(self, place: str, *, make: bool = False) -> Generator[tuple[int, bytes]]:
        """Open the folder of a place without following anything; give its descriptor and the last name."""
        path = _bytes(place)
        parent, name = _split(path)
        if b".." in parent.split(b"/"):
            raise OSError(errno.EINVAL, "a way back in a place to write to", place)
        try:
            folder = self._resolver.folder(self._root, parent or b".", links=False).descriptor
        except FileNotFoundError:
            if not make:
                raise
            folder = self._made_folder(parent)
        try:
            yield folder, name
        finally:
            os.close(folder)

    def _made_folder(self, path: bytes) -> int:
        here = os.dup(self._root)
        try:
            for name in path.split(b"/"):
                with suppress(FileExistsError):  # the upper ones are there; what is no folder fails in the next line
                    os.mkdir(name, _NEW_FOLDER, dir_fd=here)
                    os.fsync(here)
                below = os.open(name, _DOWN, dir_fd=here)
                os.close(here)
                here = below
        except OSError:
            os.close(here)
            raise
        return here

    def _swap(self, folder: int, temporary: bytes, name: bytes, new: int, check: Callable[[bytes], None]) -> None:
        """Put `temporary` in the place of `name`, of which `check` still raises nothing; it is gone after that."""
        try:
            self._exchange(folder, temporary, name)
        except FileNotFoundError:
            check(name)  # raises: it is not there
            raise
        except OSError as error:
            if error.errno not in _NO_EXCHANGE:
                raise
            # What comes there between these two lines is lost here; never what a link points to.
            check(name)
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            return
        try:
            check(temporary)
        except DigestMismatchError:
            self._give_back(folder, temporary, name, new)
            raise
        os.unlink(temporary, dir_fd=folder)

    def _give_back(self, folder: int, temporary: bytes, name: bytes, new: int) -> None:
        """Put what was taken by mistake back under its name."""
        try:
            self._exchange(folder, temporary, name)
        except FileNotFoundError:
            _named_again(folder, temporary, name)
            return
        if not _is(folder, temporary, new):
            # Somebody replaced ours in that moment: theirs is the last word.
            self._exchange(folder, temporary, name)
            os.unlink(temporary, dir_fd=folder)

    @staticmethod
    def _same(folder: int, name: bytes, old: int, place: str, expected_sha256: str) -> None:
        """Raise DigestMismatchError unless `name` is the open file `old` and its content the expected one."""
        if not _is(folder, name, old) or sha256_of(old) != expected_sha256:
            raise _mismatch(place)


def sha256_of(descriptor: int) -> str:
    """Return the hash of an open file's whole content, in hex. Raises OSError."""
    digest = hashlib.sha256()
    offset = 0
    while chunk := os.pread(descriptor, 1 << 20, offset):
        digest.update(chunk)
        offset += len(chunk)
    return digest.hexdigest()


def _mismatch(place: str) -> DigestMismatchError:
    return DigestMismatchError(
        f"{storable_path(Path(place))} is no longer what it was (changed, moved or replaced). Nothing was written",
        hint="Read it again.",
    )


def _bytes(path: str) -> bytes:
    try:
        return checked(os.fsencode(path))
    except UnicodeEncodeError as error:
        raise OSError(errno.EINVAL, "no file can have this name", repr(path)) from error


def _split(path: bytes) -> tuple[bytes, bytes]:
    """Return the way to the folder and the last name; EISDIR for what can only be a folder."""
    parent, _, name = path.rpartition(b"/")
    if name in _NO_FILE_NAME:
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), os.fsdecode(path))
    return parent.rstrip(b"/"), name


def _entry(each: "os.DirEntry[str]") -> Entry | None:
    try:
        info = each.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None  # it went while its folder was read
    return Entry(name=os.fsdecode(each.name), kind=kind_of(info), size=info.st_size)


def _kind_by_name(each: "os.DirEntry[str]") -> Kind:
    if each.is_symlink():
        return "link"
    if each.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if each.is_file(follow_symlinks=False) else "other"


def kind_of(info: os.stat_result) -> Kind:
    """Say what it is; FIFOs, sockets and devices are "other"."""
    if stat.S_ISREG(info.st_mode):
        return "file"
    if stat.S_ISDIR(info.st_mode):
        return "folder"
    return "link" if stat.S_ISLNK(info.st_mode) else "other"


def _fresh_name() -> bytes:
    return f".rune-{secrets.token_hex(8)}.tmp".encode()


@contextmanager
def _open_at(folder: int, name: bytes) -> Generator[int]:
    descriptor = regular_at(folder, name)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _written(folder: int, name: bytes, data: bytes, *, like: os.stat_result | None = None) -> Generator[int]:
    """Make a new file, synced, with mode and owner of another one; give its descriptor. Whole or not there."""
    descriptor = os.open(name, _MAKE, _NEW_FILE if like is None else 0o600, dir_fd=folder)
    try:
        try:
            write_all(descriptor, data)
            if like is not None:
                _dress(descriptor, like)
            os.fsync(descriptor)
        except BaseException:
            os.unlink(name, dir_fd=folder)
            raise
        yield descriptor
    finally:
        os.close(descriptor)


def _dress(descriptor: int, like: os.stat_result) -> None:
    own, mode = os.fstat(descriptor), stat.S_IMODE(like.st_mode)
    if (own.st_uid, own.st_gid) != (like.st_uid, like.st_gid):
        try:
            os.fchown(descriptor, like.st_uid, like.st_gid)
        except PermissionError:
            mode &= 0o777  # another's file becomes ours, as in any editor: then nobody else runs it as us
    os.fchmod(descriptor, mode)


def _is(folder: int, name: bytes, descriptor: int) -> bool:
    """Say whether a name is that of an open file."""
    try:
        return os.path.samestat(os.stat(name, dir_fd=folder, follow_symlinks=False), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _named_again(folder: int, aside: bytes, name: bytes) -> None:
    """Give back a name that is free. Where somebody took it in that moment, both stay: nothing is lost."""
    try:
        os.link(aside, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except FileExistsError:
        return
    except OSError:  # a folder, or no hard links here
        os.rename(aside, name, src_dir_fd=folder, dst_dir_fd=folder)
        return
    os.unlink(aside, dir_fd=folder)


def _discard(folder: int, temporary: bytes, new: int) -> None:
    """Remove the temporary file where it is still ours, and not what changed places with it."""
    if _is(folder, temporary, new):
        os.unlink(temporary, dir_fd=folder)
