"""A copy of the views in a place that can be written, for a home that cannot.

SQLite opens no file in WAL mode where it may not write. The copy belongs to one process, which removes it in the
end; what a killed one left behind is removed by the next that comes to this place.
"""

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rune.errors import StorageUnavailableError
from rune.host.files import LockedFile, lock_file

_PREFIX: Final = "rune-views-"
_LOCK: Final = "in-use"
# The views themselves, and what was written to them and not yet moved into that file.
_PARTS: Final = ("", "-wal")
_ATTEMPTS: Final = 3
# What the views of a small journal take when they are made anew.
_LEAST_ROOM: Final = 4 * 1024 * 1024

_State = tuple[tuple[int, int, int] | None, ...]


class ViewsCopy:
    """A folder (0700) of this process's own with a copy of `source` in it. All of it blocks: call it on a thread."""

    def __init__(self, source: Path, places: Sequence[Path]) -> None:
        """`places` are the folders to try, one after the other."""
        self._source = source
        self._places = places
        self._empty = False
        self._folder: Path | None = None
        self._lock: LockedFile | None = None

    def make(self) -> Path:
        """Copy the views as they are now and return the copy's path, at which nothing stands where there was nothing
        to copy. Made once; a second call returns the same. Raises StorageUnavailableError when no place takes it.
        """
        if self._folder is not None:
            return self._folder / self._source.name
        refusals: list[str] = []
        for place in self._places:
            try:
                return self._make_in(place)
            except OSError as error:
                self.remove()
                refusals.append(f"{place}: {error.strerror or error}")
        tried = "; ".join(refusals) or "there is none that is safe"
        raise StorageUnavailableError(
            f"the views of the journal can be kept neither in the home nor in a place for temporary files ({tried})",
            hint="Set TMPDIR to a folder of your own with room in it.",
        )

    def make_empty(self) -> Path:
        """Return the path at which views of about that size can be made, as `make` does, and copy nothing."""
        self._empty = True
        return self.make()

    def remove(self) -> None:
        """Remove the copy; may be called twice. What cannot be removed is left to the next process."""
        folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()

    def _make_in(self, place: Path) -> Path:
        _sweep(place)
        free = os.statvfs(place)
        needed = sum(part[1] for part in self._state() if part is not None) + _LEAST_ROOM
        if free.f_bavail * free.f_frsize < needed:
            raise OSError(f"less than {needed / 1e6:,.0f} MB free")
        self._folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
        self._lock = lock_file(self._folder / _LOCK)
        if self._lock is None:
            raise OSError("another process took the folder that was made there")
        target = self._folder / self._source.name
        for _ in range(0 if self._empty else _ATTEMPTS):
            before = self._state()
            self._copy_to(target)
            if self._state() == before:
                return target
        # Somebody writes to it all the time, and a copy of two moments would be damaged: it is made anew instead.
        self._clear(target)
        return target

    def _copy_to(self, target: Path) -> None:
        self._clear(target)
        for suffix, state in zip(_PARTS, self._state(), strict=True):
            if state is not None:
                with contextlib.suppress(FileNotFoundError):
                    shutil.copyfile(_beside(self._source, suffix), _beside(target, suffix))

    def _clear(self, target: Path) -> None:
        for suffix in _PARTS:
            _beside(target, suffix).unlink(missing_ok=True)

    def _state(self) -> _State:
        """Return inode, size and time of each part, None for one that is not there."""
        return tuple(_state_of(_beside(self._source, suffix)) for suffix in _PARTS)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _state_of(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    return (found.st_ino, found.st_size, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None


def _sweep(place: Path) -> None:
    """Remove what killed processes of this user left in a place. Only tidiness: what cannot be removed stays."""
    for folder in place.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.lstat().st_uid != os.geteuid() or not (folder / _LOCK).exists():
                continue  # another's, or one that is just being made
            if (lock := lock_file(folder / _LOCK)) is not None:
                with lock:
                    shutil.rmtree(folder, ignore_errors=True)
