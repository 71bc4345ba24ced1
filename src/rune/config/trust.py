"""Which folders may instruct Rune: trust.yaml, by real path and hash (terminal.md, Trust).

Trust belongs to a project: its git root where there is one, else the folder itself. It covers the
folders below as long as they bring no instructing file that was not trusted as it is now; one that
appears, changes or goes makes the state `changed`, and then nothing of the project counts until the
person has seen the difference and trusted again. The trusted texts are kept in `trusted/` beside
trust.yaml, by hash, so that the difference can be shown.
"""

import difflib
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from rune.config.instructions import (
    FILE_LIMIT,
    PROJECT_FOLDER,
    InstructionFile,
    Instructions,
    LeftOut,
    read_instructions,
)
from rune.config.yaml_file import Entry, YamlFile, line_of, read_yaml
from rune.errors import ConfigError, StorageUnavailableError, UsageError
from rune.host.files import replace_file
from rune.host.small_files import locked, read_bounded

State = Literal["trusted", "untrusted", "changed", "nothing_to_trust"]

# Of one project: path of each trusted file -> sha256 (64 hex digits). Of all: real path of its root -> that.
_Files = dict[str, str]
_Book = dict[str, _Files]

_HASH = re.compile(r"sha256:([0-9a-f]{64})")
_COPY = re.compile(r"[0-9a-f]{64}")
# Lines times lines, what is the same at both ends aside: more would let a hostile file hold up the start.
_DIFF_LIMIT = 4_000_000
_HEADER = """\
# Folders whose files may instruct Rune: each project by its real path (the git root where there is
# one), with the files as they were when you trusted them. Remove an entry to take that back.
# Rune writes this file anew when you trust or revoke: comments of your own do not stay.
"""


class TrustStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How things stand with one folder, and what was read to know it. `changes` are the lines of a unified
    diff against what was trusted, empty unless `changed`; they are foreign text.
    """

    state: State
    instructions: Instructions
    changes: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        """The project's root as a storable text."""
        return os.fsencode(self.instructions.root).decode("utf-8", "replace")

    @property
    def digest(self) -> str:
        """What `trust.granted` says was trusted."""
        return self.instructions.digest

    @property
    def files(self) -> tuple[InstructionFile, ...]:
        """The AGENTS.md, outermost first. The model may be given them only when the state is `trusted`."""
        return self.instructions.files

    @property
    def configuration(self) -> tuple[InstructionFile, ...]:
        """The files of `.rune/`, by path; to be used only when the state is `trusted`."""
        return self.instructions.configuration

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """Files that may not instruct whatever the person says, and why."""
        return self.instructions.left_out


class TrustBook:
    """Reads and changes trust.yaml; several processes may do so at once, and a person by hand."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = file.with_name("trust.lock")
        self._copies = file.with_name("trusted")
        # What was read last, and the file's state then: each turn asks, and parsing takes 0.4 ms a project.
        self._known: tuple[tuple[int, ...], _Book] | None = None

    def status(self, folder: Path) -> TrustStatus:
        """Say how things stand with `folder` now. Raises ConfigError when trust.yaml cannot be used; where
        nothing could instruct, it is not looked at.
        """
        instructions = read_instructions(folder)
        if not instructions.everything:
            return TrustStatus(state="nothing_to_trust", instructions=instructions)
        trusted = self._current().get(str(instructions.root))
        if trusted is None:
            return TrustStatus(state="untrusted", instructions=instructions)
        before = {path: digest for path, digest in trusted.items() if _concerns(path, instructions)}
        now = {file.path: file for file in instructions.everything}
        if before == {path: file.sha256 for path, file in now.items()}:
            return TrustStatus(state="trusted", instructions=instructions)
        return TrustStatus(state="changed", instructions=instructions, changes=tuple(self._changes(before, now)))

    def projects(self) -> tuple[str, ...]:
        """Return the real paths of all trusted projects. Raises ConfigError when trust.yaml cannot be used."""
        return tuple(self._read())

    def grant(self, status: TrustStatus) -> TrustStatus:
        """Trust exactly what `status` holds: what the person was shown, not what stands there by now.
        Returns how things stand then. Raises UsageError (nothing to trust), ConfigError, StorageUnavailableError.
        """
        instructions = status.instructions
        if not instructions.everything:
            raise UsageError(f"nothing in {status.folder} could instruct Rune", hint="There is nothing to trust.")

        def change(book: _Book) -> None:
            root = str(instructions.root)
            kept = {path: sha for path, sha in book.get(root, {}).items() if not _concerns(path, instructions)}
            book[root] = kept | {file.path: file.sha256 for file in instructions.everything}
            self._copies.mkdir(mode=0o700, exist_ok=True)
            for file in instructions.everything:
                if self._copy(file.sha256) is None:
                    replace_file(self._copies / file.sha256, file.text.encode())

        self._change(change)
        return TrustStatus(state="trusted", instructions=instructions)

    def revoke(self, folder: Path) -> TrustStatus:
        """Trust the project of `folder` no longer; it need not have been trusted. Returns how things stand
        then. Raises ConfigError, StorageUnavailableError.
        """
        instructions = read_instructions(folder)

        def change(book: _Book) -> None:
            book.pop(str(instructions.root), None)

        self._change(change)
        return TrustStatus(
            state="untrusted" if instructions.everything else "nothing_to_trust", instructions=instructions
        )

    def _change(self, change: Callable[[_Book], None]) -> None:
        try:
            with locked(self._lock):
                book = self._read()
                before = {root: dict(files) for root, files in book.items()}
                change(book)
                if book != before:
                    # A link that the person made (to a folder of dot files, say) stays one.
                    replace_file(Path(os.path.realpath(self._file)), _render(book))
                self._forget_copies(book)
        except OSError as error:
            raise StorageUnavailableError(
                f"{error.filename or self._file}: {error.strerror or error}",
                hint="Give yourself permission there, or free some space, and try again.",
            ) from error

    def _current(self) -> _Book:
        """Return what the file says now, without reading it again while it is the same; not to be changed."""
        try:
            info = self._file.stat()
        except OSError:  # missing or out of reach: reading tells the two apart
            return self._read()
        state = (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
        if self._known is None or self._known[0] != state:
            self._known = (state, self._read())
        return self._known[1]

    def _read(self) -> _Book:
        document = read_yaml(self._file)
        if document.root is None:
            return {}
        info = self._file.stat()
        if info.st_uid not in {0, os.geteuid()} or info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise ConfigError(
                "others may write this file, so it says nothing about what you trust",
                file=str(self._file),
                hint=f"Check what it says, then run: chmod go-w '{self._file}'",
            )
        book: _Book = {}
        for top in document.entries(document.root, ""):
            if top.name != "folders":
                document.refuse_unknown(top, ("folders",))
            for project in document.entries(top.value, top.key):
                book[project.name] = _files(document, project)
        return book

    def _changes(self, before: Mapping[str, str], now: Mapping[str, InstructionFile]) -> Iterator[str]:
        for path in sorted(before.keys() | now.keys()):
            digest, file = before.get(path), now.get(path)
            if file is not None and file.sha256 == digest:
                continue
            old = "" if digest is None else self._copy(digest)
            if old is None:
                yield f"# {path}: the text that was trusted is no longer kept"
            yield from _diff(path, old or "", file.text if file else "")

    def _copy(self, digest: str) -> str | None:
        """Return a trusted text; None when its copy is gone or was altered."""
        try:
            data = read_bounded(self._copies / digest, FILE_LIMIT)
        except OSError:  # deleted by hand or unreadable: the difference says that it cannot be shown
            return None
        return data.decode() if hashlib.sha256(data).hexdigest() == digest else None

    def _forget_copies(self, book: _Book) -> None:
        if not self._copies.is_dir():
            return
        named = {digest for files in book.values() for digest in files.values()}
        for copy in self._copies.iterdir():
            if _COPY.fullmatch(copy.name) and copy.name not in named:
                copy.unlink()


def _concerns(path: str, instructions: Instructions) -> bool:
    """Say whether a trusted path is one that this folder's status speaks of; others of the project stay."""
    return path in instructions.places or path.startswith(f"{PROJECT_FOLDER}/")


def _files(document: YamlFile, project: Entry) -> _Files:
    if not project.name.startswith("/"):
        document.refuse(f"{project.key}: expected an absolute path of a folder", line=project.line, key=project.key)
    files: _Files = {}
    for part in document.entries(project.value, project.key):
        if part.name != "files":
            document.refuse_unknown(part, ("files",))
        for entry in document.entries(part.value, part.key):
            found = _HASH.fullmatch(document.text(entry))
            if found is None:
                document.refuse(
                    f"{entry.key}: expected sha256: and 64 hex digits", line=line_of(entry.value), key=entry.key
                )
            files[entry.name] = found.group(1)
    return files


def _render(book: _Book) -> bytes:
    import yaml  # noqa: PLC0415 - 20 ms that a start without trust.yaml does not pay

    folders = {
        root: {"files": {path: f"sha256:{digest}" for path, digest in files.items()}}
        for root, files in sorted(book.items())
    }
    return (_HEADER + yaml.safe_dump({"folders": folders}, allow_unicode=True, sort_keys=False, width=1000)).encode()


def _diff(path: str, old: str, new: str) -> Iterator[str]:
    before, after = old.split("\n") if old else [], new.split("\n") if new else []
    if _middle(before, after) <= _DIFF_LIMIT:
        yield from difflib.unified_diff(before, after, f"trusted/{path}", f"now/{path}", lineterm="")
        return
    yield from (f"--- trusted/{path}", f"+++ now/{path}", f"@@ -1,{len(before)} +1,{len(after)} @@")
    yield from (f"-{line}" for line in before)
    yield from (f"+{line}" for line in after)


def _middle(before: list[str], after: list[str]) -> int:
    """Return lines times lines of what differs, what is the same at both ends aside."""
    same = min(len(before), len(after))
    start = next((i for i in range(same) if before[i] != after[i]), same)
    end = next((i for i in range(same - start) if before[-1 - i] != after[-1 - i]), same - start)
    return (len(before) - start - end) * (len(after) - start - end)
