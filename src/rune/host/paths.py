"""Where Rune keeps things on this machine, and whether those places are safe to use.

`RUNE_HOME` holds everything when it is set; otherwise the platform's own places do (architecture.md,
Storage). Nothing here is created before `prepare`.
"""

import errno
import os
import re
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from rune.errors import InvalidRecordError, StorageUnavailableError
from rune.host.files import create_private, replace_file, write_all
from rune.host.ids import IdSource
from rune.host.small_files import locked, read_bounded

_DEVICE_ID = re.compile(r"dev_[0-7][0-9abcdefghjkmnpqrstvwxyz]{25}")
_DEVICE_FILE_LIMIT = 4096
# A socket's whole path may have 103 bytes on macOS (107 on Linux): this leaves 31 for "/" and a name.
_RUNTIME_DIR_LIMIT = 72
# What `storable_path` writes for a byte that is not UTF-8, and for a `%` that would be read as one.
_ESCAPE = re.compile("%(25|[89A-F][0-9A-F])")
# More than a note in a lock file takes.
_PROBE_BYTES = 16 * 1024
# After these nothing can be written there, and what is there can still be read.
_ONLY_READ = frozenset({errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM})
_NO_TEXT = re.compile("[\udc80-\udcff]")


class Home(msgspec.Struct, frozen=True, kw_only=True):
    """The three base folders, absolute, and the named places below them. The three may be one folder
    (always so with RUNE_HOME, and on macOS), so no two places have the same name.
    """

    config_dir: Path
    data_dir: Path
    state_dir: Path

    @property
    def config_file(self) -> Path:
        """What the person set."""
        return self.config_dir / "config.yaml"

    @property
    def trust_file(self) -> Path:
        """The folders that may instruct Rune."""
        return self.config_dir / "trust.yaml"

    @property
    def journal(self) -> Path:
        """The folder of the journal's segments and slot locks."""
        return self.data_dir / "journal"

    @property
    def evidence(self) -> Path:
        """The folder of blobs by hash."""
        return self.data_dir / "evidence"

    @property
    def leases(self) -> Path:
        """The folder of conversations' locks: beside the journal, since they guard what is written there."""
        return self.data_dir / "leases"

    @property
    def models(self) -> Path:
        """The folder of model files."""
        return self.data_dir / "models"

    @property
    def logs(self) -> Path:
        """The folder of log files."""
        return self.state_dir / "logs"

    @property
    def state(self) -> Path:
        """The folder of small state and conveniences."""
        return self.state_dir / "state"

    @property
    def undo(self) -> Path:
        """The folder of what files were before tools changed them; made by whoever first keeps something there."""
        return self.data_dir / "undo"

    @property
    def backups(self) -> Path:
        """The folder of copies from before a change of schema; made with the first of them."""
        return self.data_dir / "backups"

    def views_file(self, schema_version: int) -> Path:
        """Return the database of the views, whose name carries their schema's version."""
        return self.data_dir / f"views-{schema_version}.db"


def resolve_home(environ: Mapping[str, str]) -> Home:
    """Return the home that `RUNE_HOME` of `environ` names (`~` expanded, relative to the current folder),
    or, where it is unset or empty, the platform's places, which are read from this process's own
    environment. Touches nothing. Raises StorageUnavailableError when no absolute place comes out, and for
    one whose name is no text: SQLite opens no file there.
    """
    named = environ.get("RUNE_HOME", "")
    if named:
        top = _as_text(_absolute(named, environ))
        return Home(config_dir=top, data_dir=top, state_dir=top)
    places = _platform_places()
    # HOME="" would give "/.config/rune"; no HOME and no account give "~/.config/rune", or nothing.
    if environ.get("HOME") == "" or not places or not all(place.is_absolute() for place in places):
        raise StorageUnavailableError(
            "there is no home folder to keep things in: HOME (or an XDG folder) is not an absolute path",
            hint="Set HOME, or set RUNE_HOME to a folder of your own.",
        )
    # Many keep their configuration elsewhere and link to it; what Rune writes by itself is never behind a link.
    return Home(config_dir=places[0].resolve(), data_dir=_as_text(places[1]), state_dir=places[2])


def prepare(home: Home) -> None:
    """Create what is missing, mode 0700, and check all of it. Raises StorageUnavailableError for a folder
    that is a symbolic link or a file, belongs to another user, may be written by others, or cannot be
    written by this one. What is there is never changed.
    """
    if (why := prepare_to_read(home)) is not None:
        raise why


def prepare_to_read(home: Home) -> StorageUnavailableError | None:
    """Do what `prepare` does. Where there is a journal to read and all that is wrong is that something cannot be
    written (a disk that is full or read-only, a missing permission), return why; raise everything else as `prepare`.
    """
    bases = (home.config_dir, home.data_dir, home.state_dir)
    below = (home.journal, home.evidence, home.leases, home.models, home.logs, home.state)
    found = [_make_private(folder) for folder in dict.fromkeys((*bases, *below))]
    why = next((each for each in found if each is not None), None)
    if why is not None and not os.access(home.journal, os.R_OK | os.X_OK):
        raise why
    return why


def seen_unwritable(folder: Path) -> StorageUnavailableError | None:
    """Return why a folder may not be written (a missing permission, a read-only disk) as far as that is seen without
    writing; None where nothing is seen. Raises OSError for one that is not there.
    """
    if os.access(folder, os.W_OK):
        return None
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        return _read_only(folder)
    hint = "Give yourself permission, or set RUNE_HOME to a folder you can write."
    return StorageUnavailableError(f"{folder} cannot be written", hint=hint)


def why_unwritable(folder: Path) -> StorageUnavailableError | None:
    """Write a little into a folder and remove it; return why that cannot be done, None where it can."""
    probe = folder / f".room.{os.urandom(8).hex()}.tmp"
    try:
        descriptor = create_private(probe)
        try:
            write_all(descriptor, bytes(_PROBE_BYTES))
        finally:
            os.close(descriptor)
            probe.unlink()
    except OSError as error:
        if error.errno == errno.EROFS:
            return _read_only(folder)
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            what = "the disk is full" if error.errno == errno.ENOSPC else "your disk quota is used up"
            return StorageUnavailableError(f"{folder}: {what}", hint="Free some space there and start Rune again.")
        return _unavailable(folder, error)
    return None


def places_elsewhere(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the safe folders outside of the home for files that nobody needs after the end of this process, those
    in memory first. Whether one takes anything is seen when it is tried.
    """
    bases = (environ.get("XDG_RUNTIME_DIR", ""), "/dev/shm", environ.get("TMPDIR", ""), "/tmp")  # noqa: S108 - checked, and mkdtemp
    return tuple(Path(base) for base in dict.fromkeys(bases) if base and not _unsafe_folder(base))


def runtime_dir(environ: Mapping[str, str]) -> Path:
    """Return a fresh folder for sockets, mode 0700, path at most 72 bytes: below `XDG_RUNTIME_DIR` when
    that is safe, else below `TMPDIR` or `/tmp`. The caller removes it. Raises StorageUnavailableError.
    """
    tried: list[str] = []
    for base in (environ.get("XDG_RUNTIME_DIR", ""), environ.get("TMPDIR", ""), "/tmp"):  # noqa: S108 - checked, and mkdtemp
        if not base:
            continue
        reason = _unsafe_base(base)
        if not reason:
            try:
                made = Path(tempfile.mkdtemp(prefix="rune-", dir=base))
            except OSError as error:
                reason = error.strerror or str(error)
            else:
                return made
        tried.append(f"{base}: {reason}")
    raise StorageUnavailableError(
        f"there is no safe folder for sockets ({'; '.join(tried)})",
        hint="Set TMPDIR to a folder of your own with a short path.",
    )


def device_id(home: Home, ids: IdSource) -> str:
    """Return this home's device id, making and keeping one the first time; processes that do so at once
    agree. The home must be prepared. Raises InvalidRecordError when `device.json` holds something else,
    StorageUnavailableError when it cannot be read or written.
    """
    file = home.state / "device.json"
    try:
        if (known := _read_device(file)) is not None:
            return known
        with locked(home.state / "device.lock"):
            if (known := _read_device(file)) is not None:
                return known
            fresh = ids.new_id("dev")
            replace_file(file, msgspec.json.encode({"id": fresh}) + b"\n")
            return fresh
    except OSError as error:
        raise _unavailable(file, error) from error


def storable_path(path: Path) -> str:
    """Return a path as text that can be stored, compared and shown, the same in every locale.

    A name is bytes and need not be text. What is UTF-8 stays as it is; any other byte becomes `%` and two
    upper-case hex digits (`pr%FFj`), and a `%` that would read as such becomes `%25`. No two paths have one
    text; `real_path` gives the path back.
    """
    text = os.fsencode(path).decode("utf-8", "surrogateescape")
    text = _ESCAPE.sub(r"%25\1", text)
    return _NO_TEXT.sub(lambda found: f"%{ord(found[0]) - 0xDC00:02X}", text)


def real_path(text: str) -> Path:
    """Return the path whose storable text this is, for opening files; raises ValueError for what no path can be."""
    escaped = _ESCAPE.sub(lambda found: "%" if found[1] == "25" else chr(0xDC00 + int(found[1], 16)), text)
    return Path(os.fsdecode(escaped.encode("utf-8", "surrogateescape")))


def _absolute(named: str, environ: Mapping[str, str]) -> Path:
    problem = ""
    if named.startswith("~") and environ.get("HOME") == "":  # "~/x" would become "/x"
        problem = "HOME is empty"
    try:
        path = Path(named).expanduser()
        absolute = os.path.abspath(path)  # noqa: PTH100 - resolve() would hide a symbolic link, which `prepare` refuses
    except RuntimeError:
        problem, absolute = "there is no such home folder", ""
    except OSError:
        problem, absolute = "the current folder is gone", ""
    if problem:
        raise StorageUnavailableError(
            f"RUNE_HOME is {named!r}, and {problem}", hint="Set RUNE_HOME to an absolute path."
        )
    return Path(absolute)


def _as_text(folder: Path) -> Path:
    try:
        str(folder).encode()
    except UnicodeEncodeError as error:
        raise StorageUnavailableError(
            f"{storable_path(folder)}: the name of Rune's home is not UTF-8, or the locale hides that it is",
            hint="Set RUNE_HOME to a folder with another name, or PYTHONUTF8=1 under an ASCII locale.",
        ) from error
    return folder


def _platform_places() -> tuple[Path, Path, Path] | None:
    from platformdirs import PlatformDirs  # noqa: PLC0415 - 15 ms that `rune --version` does not pay

    dirs = PlatformDirs("rune", appauthor=False)
    try:
        return dirs.user_config_path, dirs.user_data_path, dirs.user_state_path
    except RuntimeError:  # newer versions refuse where older ones answer with "~"; the caller says what is missing
        return None


def _make_private(folder: Path) -> StorageUnavailableError | None:
    """Make or check a folder; returns why it cannot be written where nothing else is wrong with it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        info = folder.lstat()
    except FileExistsError:
        info = folder.lstat()
    except OSError as error:
        if error.errno in _ONLY_READ:
            return _unavailable(folder, error)
        raise _unavailable(folder, error) from error
    if stat.S_ISLNK(info.st_mode):
        problem, hint = "is a symbolic link", "Set RUNE_HOME to the real folder, or replace the link by a folder."
    elif not stat.S_ISDIR(info.st_mode):
        problem, hint = "is not a folder", "Move it away, or set RUNE_HOME to a folder."
    elif info.st_uid != os.geteuid():
        problem = f"belongs to another user (uid {info.st_uid}; you are {os.geteuid()})"
        hint = "Set RUNE_HOME to a folder of your own."
    elif info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        problem, hint = "may be written by other users", f"Run: chmod go-w '{folder}'"
    elif not os.access(folder, os.R_OK | os.X_OK):
        problem, hint = "cannot be read", "Give yourself permission, or set RUNE_HOME to a folder of your own."
    else:
        return seen_unwritable(folder)
    raise StorageUnavailableError(f"{folder} {problem}", hint=hint)


def _read_only(folder: Path) -> StorageUnavailableError:
    return StorageUnavailableError(
        f"{folder} is on a disk that is mounted read-only",
        hint="Remount it for writing and start Rune again, or set RUNE_HOME to a folder you can write.",
    )


def _unavailable(path: Path, error: OSError) -> StorageUnavailableError:
    return StorageUnavailableError(
        f"{error.filename or path}: {error.strerror or error}",
        hint="Free some space or give yourself permission there, or set RUNE_HOME to a folder you can write.",
    )


def _unsafe_base(base: str) -> str:
    """Say why sockets may not be kept below `base`; empty when they may."""
    if not base.startswith("/"):
        return "not an absolute path"
    if len(os.fsencode(base)) + len("/rune-12345678") > _RUNTIME_DIR_LIMIT:
        return "its path is too long for a socket"
    return _unsafe_folder(base)


def _unsafe_folder(base: str) -> str:
    """Say why nothing private may be kept below `base`; empty when it may."""
    if not base.startswith("/"):
        return "not an absolute path"
    try:
        info = Path(base).stat()
    except OSError as error:
        return error.strerror or str(error)
    problem = ""
    if not stat.S_ISDIR(info.st_mode):
        problem = "not a folder"
    elif info.st_uid not in {0, os.geteuid()}:
        problem = "belongs to another user"
    # In a folder that others may write, only the sticky bit keeps them from putting theirs in the place of ours.
    elif info.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not info.st_mode & stat.S_ISVTX:
        problem = "may be written by other users"
    return problem


def _read_device(file: Path) -> str | None:
    try:
        data = read_bounded(file, _DEVICE_FILE_LIMIT)
    except FileNotFoundError:
        return None
    try:
        value: Any = msgspec.json.decode(data)
        text: object = value["id"]
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError, KeyError):
        text = None
    if isinstance(text, str) and _DEVICE_ID.fullmatch(text):
        return text
    error = InvalidRecordError(str(file), field="id", expected="dev_ and a ULID", got=repr(data[:60]))
    error.hint = "Delete that file: this home then gets a new device id, and the journal goes on."
    raise error
