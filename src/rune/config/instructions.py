"""What a folder brings along that could instruct Rune, read without following or waiting for anything.

Two kinds of file count (terminal.md, Trust; context.md, contributor 3): `AGENTS.md` from the git root
down to the folder, whose text the model is given, and everything in the project's `.rune/`, which is
configuration. Reading them is not using them: that is `trust.py`'s matter.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

INSTRUCTION_FILE = "AGENTS.md"
PROJECT_FOLDER = ".rune"
FILE_LIMIT = 32 * 1024
_PROJECT_ENTRIES = 200
_PROJECT_DEPTH = 4
# Only a passage to what is below, where the system knows that; no permission to list is needed then.
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LISTED = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class InstructionFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file, read once: `sha256` (64 hex digits) is that of `text` in UTF-8. `path` is relative to
    the project's root, with `/`, and storable whatever the name's bytes are.
    """

    path: str
    text: str
    sha256: str


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """A file that could have instructed and may not; `reason` is for a person."""

    path: str
    reason: str


class Instructions(msgspec.Struct, frozen=True, kw_only=True):
    """All of it for one folder. `root` is the real path of its git root, or of itself; `files` are the
    AGENTS.md, outermost first; `configuration` what `.rune/` holds, by path. `places` are the paths at
    which an AGENTS.md was looked for.
    """

    root: Path
    places: tuple[str, ...]
    files: tuple[InstructionFile, ...]
    configuration: tuple[InstructionFile, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def everything(self) -> tuple[InstructionFile, ...]:
        """Both kinds: what a person trusts or does not."""
        return self.files + self.configuration

    @property
    def digest(self) -> str:
        """`sha256:` and 64 hex digits over each file's path and hash, each with its length before it."""
        whole = hashlib.sha256()
        for file in self.everything:
            for part in (file.path.encode(), bytes.fromhex(file.sha256)):
                whole.update(len(part).to_bytes(8, "big") + part)
        return f"sha256:{whole.hexdigest()}"


def read_instructions(folder: Path) -> Instructions:
    """Read what could instruct in `folder`. Never raises OSError: what cannot be read is left out, and why is said."""
    real = Path(os.path.realpath(folder))
    root = git_root(real)
    parts = real.relative_to(root).parts
    reading = _Reading()
    files = tuple(reading.chain(root, parts))
    configuration = tuple(reading.project(root))
    return Instructions(
        root=root,
        places=tuple(_storable("/".join((*parts[:depth], INSTRUCTION_FILE))) for depth in range(len(parts) + 1)),
        files=files,
        configuration=configuration,
        left_out=tuple(reading.left_out),
    )


class _RefusedError(Exception):
    """This file does not count; the message says why."""


class _Reading:
    """One reading of one project: collects what is left out on the way."""

    def __init__(self) -> None:
        self.left_out: list[LeftOut] = []
        self._entries = 0

    def chain(self, root: Path, parts: tuple[str, ...]) -> Iterator[InstructionFile]:
        """Give the AGENTS.md of `root` and of each folder on the way down, each opened from the one above."""
        where = ""
        folder = -1
        try:
            folder = os.open(root, _FOLDER)
            yield from self._file(INSTRUCTION_FILE, INSTRUCTION_FILE, folder)
            for part in parts:
                where = f"{where}{_storable(part)}/"
                above, folder = folder, os.open(part, _FOLDER, dir_fd=folder)
                os.close(above)
                yield from self._file(INSTRUCTION_FILE, f"{where}{INSTRUCTION_FILE}", folder)
        except OSError as error:
            self._leave_out(where or ".", error.strerror or str(error))
        finally:
            if folder >= 0:
                os.close(folder)

    def project(self, root: Path) -> Iterator[InstructionFile]:
        """Give every file below `.rune/` of `root`, by path."""
        if not os.path.lexists(root / PROJECT_FOLDER):
            return
        try:
            top = os.open(root, _FOLDER)
        except OSError as error:
            self._leave_out(PROJECT_FOLDER, error.strerror or str(error))
            return
        try:
            yield from self._below(PROJECT_FOLDER, f"{PROJECT_FOLDER}/", top, 1)
        finally:
            os.close(top)

    def _below(self, name: str, where: str, parent: int, depth: int) -> Iterator[InstructionFile]:
        try:
            folder = os.open(name, _LISTED, dir_fd=parent)
        except OSError as error:
            wrong_kind = error.errno in {errno.ENOTDIR, errno.ELOOP}
            self._leave_out(where, "not a folder of its own" if wrong_kind else error.strerror or str(error))
            return
        try:
            if os.fstat(folder).st_uid != os.geteuid():
                self._leave_out(where, "belongs to another user")
                return
            for inner in sorted(os.listdir(folder)):  # noqa: PTH208 - by descriptor
                self._entries += 1
                if self._entries > _PROJECT_ENTRIES:
                    self._leave_out(where, f"more than {_PROJECT_ENTRIES} entries: the rest is not read")
                    return
                path = f"{where}{_storable(inner)}"
                if not _is_storable(inner):
                    self._leave_out(path, "its name is not UTF-8")
                elif not _is_folder(inner, folder):
                    yield from self._file(inner, path, folder)
                elif depth == _PROJECT_DEPTH:
                    self._leave_out(path, f"deeper than {_PROJECT_DEPTH} folders")
                else:
                    yield from self._below(inner, f"{path}/", folder, depth + 1)
        finally:
            os.close(folder)

    def _file(self, name: str, path: str, folder: int) -> Iterator[InstructionFile]:
        try:
            data = _read(name, folder)
            text = data.decode("utf-8")
        except FileNotFoundError:
            return
        except _RefusedError as refused:
            self._leave_out(path, str(refused))
        except UnicodeDecodeError:
            self._leave_out(path, "not UTF-8 text")
        except OSError as error:
            self._leave_out(path, error.strerror or str(error))
        else:
            if "\0" in text:
                self._leave_out(path, "not text: it has NUL bytes")
            elif not text.strip():
                self._leave_out(path, "empty")
            else:
                yield InstructionFile(path=path, text=text, sha256=hashlib.sha256(data).hexdigest())

    def _leave_out(self, path: str, reason: str) -> None:
        self.left_out.append(LeftOut(path=path, reason=reason))


def git_root(folder: Path) -> Path:
    """Return the folder of the git repository that a real folder lies in; the folder itself where there is none."""
    # `.git` is a folder, or a file in a worktree or submodule; the nearest one ends the search.
    for candidate in (folder, *folder.parents):
        if os.path.lexists(candidate / ".git"):
            return candidate
    return folder


def _read(name: str, folder: int) -> bytes:
    # Looked at before it is opened, since opening a device can do something; and again: it may be another by then.
    _check(os.stat(name, dir_fd=folder, follow_symlinks=False))
    with os.fdopen(os.open(name, _FILE, dir_fd=folder), "rb") as file:
        _check(os.fstat(file.fileno()))
        data = file.read(FILE_LIMIT + 1)
    if len(data) > FILE_LIMIT:
        raise _RefusedError(f"larger than {FILE_LIMIT // 1024} KB")
    return data


def _check(info: os.stat_result) -> None:
    if stat.S_ISLNK(info.st_mode):
        raise _RefusedError("a symbolic link")
    if not stat.S_ISREG(info.st_mode):
        raise _RefusedError("not a regular file")
    if info.st_uid != os.geteuid():
        raise _RefusedError("belongs to another user")


def _is_folder(name: str, folder: int) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:  # gone again: reading it as a file says so
        return False


def _is_storable(name: str) -> bool:
    return _storable(name) == name


def _storable(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "replace")
