"""A disk that can stand still, fail, and lose what was not synced: a home is copied as a power cut would leave it."""

import errno
import os
import shutil
import threading
from pathlib import Path

from tests.store.journals import lines_of


class CrashingDisk:
    """The `sync` of a store. It remembers how much of each file is safe, by inode."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._safe: dict[int, int] = {}
        self._fails = False
        self._waiting = threading.Event()
        self._through = threading.Event()
        self._through.set()
        for path in self._segments():
            self._safe[path.stat().st_ino] = path.stat().st_size

    def __call__(self, descriptor: int) -> None:
        self._waiting.set()
        if not self._through.wait(20):
            raise TimeoutError("a sync was forgotten")
        if self._fails:
            self._fails = False
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        found = os.fstat(descriptor)
        self._safe[found.st_ino] = found.st_size

    def stick(self) -> None:
        """Let the next sync wait until `go_on`."""
        self._waiting.clear()
        self._through.clear()

    def wait_until_stuck(self) -> bool:
        """Return when a sync waits; False when none came for long."""
        return self._waiting.wait(20)

    def go_on(self) -> None:
        """Let it through."""
        self._through.set()

    def fail_once(self) -> None:
        """Let the next sync fail, and none after it."""
        self._fails = True

    def crash_into(self, target: Path, keep: float, *, zeros: bool) -> None:
        """Copy the home as it would be found after the power went: of the unsynced bytes of each segment that share
        of their beginning is there; the rest is missing, or zeros.
        """
        shutil.copytree(self._home, target)
        for path in self._segments():
            # The header came with the file, synced by another way.
            copy = target / "journal" / path.name
            size = copy.stat().st_size
            # A torn tail that was cut off when it was opened made it shorter.
            safe = min(size, self._safe.get(path.stat().st_ino, len(lines_of(path)[0])))
            end = safe + int((size - safe) * keep)
            os.truncate(copy, end)
            if zeros:
                os.truncate(copy, size)

    def _segments(self) -> list[Path]:
        return sorted((self._home / "journal").glob("w*.jsonl"))
