"""Copies of what cannot be rebuilt, kept before a Rune of another schema writes (docs/decisions/backups.md).

`state/schemas.json` says which schemas wrote the home. A backup is one folder below `Home.backups`, made beside
its place and renamed: whole, or not there at all.
"""

import contextlib
import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from rune.errors import NewerFormatError, StorageError, StorageUnavailableError
from rune.host.clock import Clock
from rune.host.files import create_private, lock_file, private_folder, replace_file, sync_folder
from rune.host.paths import Home
from rune.host.small_files import locked, read_bounded
from rune.records.times import rfc3339
from rune.store.failures import unavailable, why_unreadable
from rune.store.segments import SegmentReader, list_segments, segment_name

KEPT: Final = 2
# What stays free beside a backup: the journal must be able to go on.
RESERVE: Final = 64 << 20
_COPY_BYTES: Final = 1 << 20
_SMALL: Final = 64 << 10
_UNFINISHED: Final = ".unfinished-"
_MANIFEST: Final = "backup.json"
# What somebody else put there is listed, and never removed.
_NAME: Final = re.compile(r"[0-9]{8}T[0-9]{6}\.[0-9]{3}Z-")


class Schemas(msgspec.Struct, frozen=True, kw_only=True):
    """Which forms a Rune writes: the journal's format, the views' version; `rune` is that Rune's own version."""

    journal: int
    views: int
    rune: str

    def differs(self, other: "Schemas") -> bool:
        """Say whether one of the forms is another one; a new version of Rune alone changes nothing."""
        return (self.journal, self.views) != (other.journal, other.views)


class Backup(msgspec.Struct, frozen=True, kw_only=True):
    """One backup: `made` is RFC 3339; `written_by` wrote the home until then (None: it did not say)."""

    folder: str
    made: str
    written_by: Schemas | None
    files: int
    bytes: int


class _Manifest(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    made: str
    written_by: Schemas | None
    opened_by: Schemas


class _Source(msgspec.Struct, frozen=True, kw_only=True):
    """A file to keep; `closed` ones never change again and may be shared instead of copied."""

    path: Path
    name: str
    size: int
    closed: bool


class BackupBook:
    """The backups of one home. `free` says how many bytes are free where a folder lies. All of it blocks."""

    def __init__(
        self, home: Home, clock: Clock, *, free: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free
    ) -> None:
        self._home = home
        self._clock = clock
        self._free = free
        self._schemas = home.state / "schemas.json"

    def open_for_writing(self, now: Schemas) -> Backup | None:
        """Note which schemas write from here on; where others wrote before, keep a backup first, which is returned.

        Call it before anything is written. Raises StorageUnavailableError when a backup is due and cannot be kept;
        nothing is noted then, so that it is due again at the next opening.
        """
        before = self.written_by()
        if before == now:
            return None
        try:
            with contextlib.ExitStack() as stack:
                # Held for longer than a moment: another one is keeping this very backup. What we append meanwhile
                # comes behind what it copies.
                with contextlib.suppress(TimeoutError):
                    stack.enter_context(locked(self._home.state / "schemas.lock"))
                before = self.written_by()
                if before == now:
                    return None
                if self._schemas.is_dir():  # a backup at each start would push out the ones that matter
                    raise IsADirectoryError(errno.EISDIR, "a folder stands in its place", str(self._schemas))
                due = self._journal_is_there() if before is None else before.differs(now)
                backup = self._keep(before, now) if due else None
                replace_file(self._schemas, msgspec.json.encode(now) + b"\n")
                return backup
        except OSError as error:
            raise unavailable(error, f"no backup could be kept in {str(self._home.backups)!r}") from error

    def written_by(self) -> Schemas | None:
        """Return which schemas wrote this home last; None: it does not say, or not so that it can be read."""
        try:
            return msgspec.json.decode(read_bounded(self._schemas, _SMALL), type=Schemas)
        except (OSError, msgspec.DecodeError, RecursionError):
            return None

    def journal_is_newer(self) -> bool:
        """Say whether a later Rune began a segment of the journal. Raises StorageUnavailableError."""
        for writer, numbers in list_segments(self._home.journal).items():
            for number in numbers:
                try:
                    SegmentReader(self._home.journal, writer, number, lambda _by, _of: False).close()
                except NewerFormatError:
                    return True
                except StorageError:
                    continue  # whoever opens the journal says what is wrong with it
        return False

    def kept(self) -> tuple[Backup, ...]:
        """Return the backups that there are, the oldest first. Raises StorageUnavailableError."""
        try:
            folders = [folder for folder in self._listed() if not folder.name.startswith(".")]
            return tuple(_described(folder) for folder in folders)
        except OSError as error:
            raise unavailable(error, f"cannot read {str(self._home.backups)!r}") from error

    def unfinished(self) -> tuple[Path, ...]:
        """Return what a killed process left of backups that it was keeping."""
        with contextlib.suppress(OSError):
            return tuple(folder for folder in self._listed() if folder.name.startswith(_UNFINISHED))
        return ()

    def remove_unfinished(self) -> int:
        """Remove that, unless a backup is being kept just now; returns how many folders went. Raises OSError."""
        lock = lock_file(self._home.state / "schemas.lock")
        if lock is None:
            return 0
        with lock:
            left = self.unfinished()
            for folder in left:
                shutil.rmtree(folder)
        return len(left)

    def _keep(self, before: Schemas | None, now: Schemas) -> Backup:
        sources = self._sources()
        private_folder(self._home.backups)
        for left in self.unfinished():
            shutil.rmtree(left)
        copied = sum(source.size for source in sources if not source.closed)
        self._check_room(copied)
        made = rfc3339(self._clock.now_ms())
        name = f"{made.replace('-', '').replace(':', '')}-{_file_name(before.rune if before else 'unknown')}"
        building = self._home.backups / f"{_UNFINISHED}{name}"
        try:
            self._fill(building, sources)
            manifest = _Manifest(version=1, made=made, written_by=before, opened_by=now)
            replace_file(building / _MANIFEST, msgspec.json.encode(manifest) + b"\n")
            folder = self._free_name(name)
            building.rename(folder)
        except BaseException:
            shutil.rmtree(building, ignore_errors=True)
            raise
        sync_folder(self._home.backups)
        self._forget_older()
        return _described(folder)

    def _fill(self, building: Path, sources: list[_Source]) -> None:
        building.mkdir(mode=0o700)
        (building / "journal").mkdir(mode=0o700)
        for source in sources:
            target = building / source.name
            if not (source.closed and _shared(source.path, target)):
                if source.closed:
                    self._check_room(source.size)
                _copy(source.path, target, source.size)
        sync_folder(building / "journal")

    def _check_room(self, wanted: int) -> None:
        free = self._free(self._home.backups)
        if free < wanted + RESERVE:
            raise StorageUnavailableError(
                f"there is no room for a backup before the change of schema: {wanted:,} bytes in "
                f"{str(self._home.backups)!r}, where {free:,} are free and {RESERVE:,} shall stay so",
                hint="Free some space; it is tried again at the next start.",
            )

    def _sources(self) -> list[_Source]:
        home = self._home
        named = ((home.config_file, "config.yaml"), (home.trust_file, "trust.yaml"))
        sources = [_source(path, name) for path, name in (*named, (home.state / "device.json", "device.json"))]
        if home.journal.is_dir():
            for writer, numbers in list_segments(home.journal).items():
                for number in numbers:
                    file = segment_name(writer, number)
                    sources.append(_source(home.journal / file, f"journal/{file}", closed=number != numbers[-1]))
        return [source for source in sources if source is not None]

    def _journal_is_there(self) -> bool:
        return self._home.journal.is_dir() and bool(list_segments(self._home.journal))

    def _free_name(self, name: str) -> Path:
        """Return a folder that is not there yet: two changes may fall into one millisecond."""
        count = 0
        while (folder := self._home.backups / (f"{name}-{count}" if count else name)).exists():
            count += 1
        return folder

    def _forget_older(self) -> None:
        folders = [folder for folder in self._listed() if _NAME.match(folder.name)]
        for folder in folders[:-KEPT]:
            shutil.rmtree(folder)

    def _listed(self) -> list[Path]:
        try:
            return sorted(path for path in self._home.backups.iterdir() if path.is_dir() and not path.is_symlink())
        except FileNotFoundError:
            return []


def unshare(path: Path) -> None:
    """Give a segment bytes of its own where a backup shares them: what changes it then does not change the backup.

    Nobody may have it open for writing. What cannot be read, or is no file, stays as it is: it is never changed, only
    set aside. Raises OSError.
    """
    found = path.lstat()
    if found.st_nlink == 1 or not stat.S_ISREG(found.st_mode):
        return
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        _copy(path, temporary, found.st_size)
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and why_unreadable(error):
            return
        raise
    sync_folder(path.parent)


def _source(path: Path, name: str, *, closed: bool = False) -> _Source | None:
    try:
        found = path.stat()  # config.yaml may be a link to where a person keeps it
    except FileNotFoundError:
        return None
    return _Source(path=path, name=name, size=found.st_size, closed=closed) if stat.S_ISREG(found.st_mode) else None


def _shared(source: Path, target: Path) -> bool:
    """Give a file a second name; False where that cannot be (another file system, or one without)."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        return False
    return True


def _copy(source: Path, target: Path, size: int) -> None:
    """Copy the first `size` bytes, durably: what a running Rune appends meanwhile is not part of it."""
    descriptor = create_private(target)
    with os.fdopen(descriptor, "wb") as file, source.open("rb") as original:
        while size > 0 and (chunk := original.read(min(size, _COPY_BYTES))):
            file.write(chunk)
            size -= len(chunk)
        file.flush()
        os.fsync(file.fileno())


def _described(folder: Path) -> Backup:
    try:
        manifest = msgspec.json.decode(read_bounded(folder / _MANIFEST, _SMALL), type=_Manifest)
    except (OSError, msgspec.DecodeError, RecursionError):
        manifest = None  # somebody else's folder, or a damaged one: it is listed by its name
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return Backup(
        folder=str(folder),
        made=manifest.made if manifest else "",
        written_by=manifest.written_by if manifest else None,
        files=len(files),
        bytes=sum(path.lstat().st_size for path in files),
    )


def _file_name(version: str) -> str:
    return "".join(character if character.isalnum() or character in ".+" else "_" for character in version[:40])
