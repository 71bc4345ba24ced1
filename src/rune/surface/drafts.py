"""What stands unsent in a process: kept on disk, so that a killed terminal loses nothing that was typed.

Each process has a lock file, held for as long as it lives, and beside it what stands unsent there, replaced
whole. Whoever finds such a text whose lock is free knows that its process is gone. The lock file of the folder
is held while these files come, go or are claimed, so that two processes never do so at once.
"""

import contextlib
import logging
import os
import secrets
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from rune.errors import RuneError, StorageError
from rune.host.files import LockedFile, is_locked, lock_file, private_folder, replace_file, sync_folder
from rune.host.small_files import locked, read_bounded
from rune.records.messages import Channel
from rune.records.times import rfc3339
from rune.store.failures import unavailable
from rune.text.storable import storable

_VERSION: Final = 1
# Far more than a person types or pastes; what is larger was not written here.
_LIMIT: Final = 64 * 1024 * 1024

Report = Callable[[RuneError], None]


class _Version(msgspec.Struct):
    """What every version's file holds."""

    version: int


class _Content(msgspec.Struct, kw_only=True):
    """What a file holds."""

    version: int
    folder: str
    prompts: Mapping[Channel, str] = {}
    waiting: Mapping[Channel, Sequence[str]] = {}


def to_log(error: RuneError) -> None:
    """Write to the log what nobody is told otherwise."""
    logging.getLogger(__name__).warning("%s", error.message)


class DraftBook:
    """The unsent texts of all processes on one home, in `<state_dir>/drafts`. All of it blocks shortly.

    `report` is told of files that cannot be read; they are kept.
    """

    def __init__(self, state_dir: Path, *, report: Report = to_log) -> None:
        self._folder = state_dir / "drafts"
        self._report = report

    def open(self, folder: str) -> "DraftFile":
        """Return this process's own file for a folder (its storable text). Raises StorageError."""
        with self._alone("cannot keep what is typed"):
            self._sweep()
            name = f"{os.getpid()}-{secrets.token_hex(6)}"
            lock = lock_file(self._folder / f"{name}.lock")
        if lock is None:
            raise StorageError(f"the name {name} for unsent text is taken", hint="Start Rune again.")
        return DraftFile(self, self._folder / f"{name}.json", lock, folder)

    def left_behind(self, folder: str) -> tuple["LeftDraft", ...]:
        """Return what processes that are gone left unsent in a folder, the oldest first. Raises StorageError."""
        found: list[tuple[float, LeftDraft]] = []
        with self._alone("cannot look for what was typed before"):
            for path in self._folder.glob("*.json"):
                if self._held(path.with_suffix(".lock")) or (content := self._read(path)) is None:
                    continue
                if content.folder == folder:
                    written = path.stat().st_mtime
                    found.append((written, LeftDraft(self, path, content, rfc3339(round(written * 1000)))))
        return tuple(draft for _, draft in sorted(found, key=lambda each: each[0]))

    def _held(self, lock: Path) -> bool:
        """Say whether a process holds this lock; what cannot be a lock is reported, and its text left alone."""
        try:
            return is_locked(lock)
        except OSError as error:
            self._report(unavailable(error, f"{lock} is no lock file"))
            return True

    def claim(self, path: Path) -> LockedFile | None:
        """Take the lock of a left text; None when another process has taken or removed it. Raises StorageError."""
        with self._alone("cannot take over what was typed before"):
            if not path.exists():
                return None
            return lock_file(path.with_suffix(".lock"))

    def forget(self, path: Path, lock: LockedFile, *, text: bool) -> None:
        """Let go of a lock that is held, and remove its file, with the `text` or only where there is none.

        Raises StorageError.
        """
        try:
            with self._alone("cannot remove what was typed before"):
                if text:
                    path.unlink(missing_ok=True)
                if not path.exists():
                    path.with_suffix(".lock").unlink(missing_ok=True)
                sync_folder(self._folder)
        finally:
            lock.release()

    @contextmanager
    def _alone(self, what: str) -> Generator[None]:
        try:
            private_folder(self._folder)
            with locked(self._folder / "lock"):
                yield
        except OSError as error:
            raise unavailable(error, f"{what} ({self._folder})") from error

    def _sweep(self) -> None:
        """Remove what killed processes left that is no text. Only tidiness: what cannot be removed stays."""
        for path in [*self._folder.glob("*.lock"), *self._folder.glob(".*.tmp")]:
            lock = self._folder / f"{path.name.removeprefix('.').split('.')[0]}.lock"
            with contextlib.suppress(OSError):
                if not is_locked(lock) and (path != lock or not path.with_suffix(".json").exists()):
                    path.unlink()

    def _read(self, path: Path) -> _Content | None:
        """Return what a file holds; one that cannot be understood is set aside and reported."""
        try:
            data = read_bounded(path, _LIMIT)
            if msgspec.json.decode(data, type=_Version).version > _VERSION:
                self._report(StorageError(f"{path} was written by a newer Rune and is left alone"))
                return None
            return msgspec.json.decode(data, type=_Content)
        except (msgspec.DecodeError, RecursionError) as error:
            aside = path.with_suffix(".damaged")
            path.replace(aside)
            self._report(StorageError(f"unsent text cannot be read and is kept as {aside}: {error}"))
            return None
        except FileNotFoundError:  # its process was just ending in order
            return None
        except OSError as error:
            self._report(unavailable(error, f"unsent text cannot be read ({path})"))
            return None


class DraftFile:
    """What stands unsent in this process. Made by `DraftBook.open`; methods are called one at a time."""

    def __init__(self, book: DraftBook, path: Path, lock: LockedFile, folder: str) -> None:
        self._book = book
        self._path = path
        self._lock: LockedFile | None = lock
        self._folder = folder
        self._kept = b""

    @property
    def unsent(self) -> bool:
        """Whether something is kept."""
        return bool(self._kept)

    def save(self, prompts: Mapping[Channel, str], waiting: Mapping[Channel, Sequence[str]]) -> None:
        """Keep what stands in the prompts and what waits to be sent, by channel, durably; blanks alone are
        nothing. Raises StorageError: what was kept before stays then.
        """
        if self._lock is None:
            raise ValueError("these drafts were closed")
        typed: dict[Channel, str] = {channel: storable(text) for channel, text in prompts.items() if text.strip()}
        queued: dict[Channel, list[str]] = {
            channel: [storable(text) for text in texts] for channel, texts in waiting.items() if texts
        }
        content = _Content(version=_VERSION, folder=self._folder, prompts=typed, waiting=queued)
        data = msgspec.json.encode(content) + b"\n" if typed or queued else b""
        if data == self._kept:
            return
        try:
            if data:
                replace_file(self._path, data)
            else:
                self._path.unlink(missing_ok=True)
                sync_folder(self._path.parent)
        except OSError as error:
            raise unavailable(error, f"what is typed cannot be kept ({self._path.parent})") from error
        self._kept = data

    def close(self) -> None:
        """Let go of the file; what is kept stays for the next start. May be called twice. Raises StorageError."""
        lock, self._lock = self._lock, None
        if lock is not None:
            self._book.forget(self._path, lock, text=not self._kept)


class LeftDraft:
    """What a process that is gone left unsent; `saved_at` is RFC 3339. It may be taken by another process.

    Taking it keeps others away and removes nothing: save it as one's own first, then `discard` it. Whoever
    is killed in between leaves it behind again.
    """

    def __init__(self, book: DraftBook, path: Path, content: _Content, saved_at: str) -> None:
        self.prompts: Mapping[Channel, str] = content.prompts
        self.waiting: Mapping[Channel, Sequence[str]] = content.waiting
        self.saved_at = saved_at
        self._book = book
        self._path = path
        self._lock: LockedFile | None = None

    def take(self) -> bool:
        """Claim it; False when another process was first. Raises StorageError."""
        if self._lock is None:
            self._lock = self._book.claim(self._path)
        return self._lock is not None

    def discard(self) -> bool:
        """Remove it; False when another process has it. Raises StorageError: it may be left behind again then."""
        if not self.take():
            return False
        lock, self._lock = self._lock, None
        if lock is not None:
            self._book.forget(self._path, lock, text=True)
        return True
