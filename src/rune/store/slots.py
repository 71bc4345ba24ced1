"""Writers are slots: each running Rune appends to files of its own (spine.md, Writers are slots)."""

import stat
from pathlib import Path

from rune.errors import SlotHeldError, StorageUnavailableError
from rune.host.clock import Clock
from rune.host.files import LockedFile, is_locked, lock_file, private_folder
from rune.store.failures import unavailable
from rune.store.holders import note, read_note, this_process

_SLOTS = 1000
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class Slot:
    """The right to append as `writer` (`w000`, `w001`, ...), held until `release` or the process's death."""

    def __init__(self, writer: str, lock: LockedFile) -> None:
        self.writer = writer
        self._lock = lock

    def release(self) -> None:
        """Let another process have it; may be called twice."""
        self._lock.release()


def claim_slot(folder: Path, clock: Clock) -> Slot:
    """Take the first free slot of a journal folder. Raises StorageUnavailableError."""
    try:
        for number in range(_SLOTS):
            writer = f"w{number:03}"
            lock = lock_file(folder / f"{writer}.lock")
            if lock is not None:
                return _described(Slot(writer, lock), lock, clock)
    except OSError as error:
        raise unavailable(error, f"cannot take a place in the journal {str(folder)!r}") from error
    raise StorageUnavailableError(
        f"all {_SLOTS} places in the journal {str(folder)!r} are taken", hint="Close some of the running Runes."
    )


def claim_this_slot(folder: Path, writer: str, clock: Clock) -> Slot:
    """Take one slot of a journal folder, to change what it has. Raises SlotHeldError, StorageUnavailableError."""
    path = folder / f"{writer}.lock"
    try:
        lock = lock_file(path)
        if lock is None:
            holder = read_note(path)
            raise SlotHeldError(writer, pid=holder.pid, since=holder.since)
        return _described(Slot(writer, lock), lock, clock)
    except OSError as error:
        raise unavailable(error, f"cannot take the place {writer} in the journal {str(folder)!r}") from error


def holder_of(folder: Path, writer: str) -> int | None:
    """Return the process that writes a slot now, 0 when it is not known which; None when nobody does.

    Raises StorageUnavailableError.
    """
    path = folder / f"{writer}.lock"
    try:
        return read_note(path).pid if is_locked(path) else None
    except OSError as error:
        raise unavailable(error, f"cannot look at the place {writer} in the journal {str(folder)!r}") from error


def journal_folder(folder: Path, *, create: bool = True) -> None:
    """Make the folder of the journal (0700) or check the one that is there.

    Raises StorageUnavailableError, also for a symbolic link and for a folder that others may write.
    """
    try:
        if create and not folder.is_symlink():
            private_folder(folder)
        found = folder.lstat()
    except OSError as error:
        raise unavailable(error, f"cannot open the journal {str(folder)!r}") from error
    if not stat.S_ISDIR(found.st_mode):
        kind = "a symbolic link" if stat.S_ISLNK(found.st_mode) else "not a folder"
        raise StorageUnavailableError(
            f"the journal {str(folder)!r} is {kind}", hint="Set RUNE_HOME to the real place instead of linking to it."
        )
    if found.st_mode & _WRITABLE_BY_OTHERS:
        raise StorageUnavailableError(
            f"others may write the journal {str(folder)!r} (mode {stat.S_IMODE(found.st_mode):03o})",
            hint=f"Run: chmod go-w {str(folder)!r}",
        )


def _described(slot: Slot, lock: LockedFile, clock: Clock) -> Slot:
    try:
        lock.write(note(this_process(clock)))
    except OSError:
        slot.release()
        raise
    return slot
