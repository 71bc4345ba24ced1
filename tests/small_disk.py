"""A real disk of a few megabytes that can be full, or read-only."""

import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")


class SmallDisk:
    """A file system in memory, mounted at `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._filler = path / "filler"

    def fill(self) -> None:
        """Leave no room at all."""
        with self._filler.open("wb", buffering=0) as filler:
            try:
                while filler.write(b"\0" * 4096):
                    pass
            except OSError:
                pass  # it is full now, which is what is wanted

    def make_room(self) -> None:
        """Give back what was filled."""
        self._filler.unlink()

    def make_read_only(self) -> None:
        """Have it mounted read-only; nothing on it may be open for writing."""
        subprocess.run(["mount", "-o", "remount,ro", str(self.path)], check=True)

    def make_writable(self) -> None:
        """Have it mounted for writing again."""
        subprocess.run(["mount", "-o", "remount,rw", str(self.path)], check=True)

    @contextmanager
    def covered(self) -> Generator[None]:
        """Have all of it seen as read-only, also under a process that has files of it open, which it may go on
        writing.
        """
        subprocess.run(["mount", "--bind", str(self.path), str(self.path)], check=True)
        subprocess.run(["mount", "-o", "remount,bind,ro", str(self.path)], check=True)
        try:
            yield
        finally:
            subprocess.run(["umount", "-l", str(self.path)], check=True)


@contextmanager
def small_disk(path: Path, size: str = "8m") -> Generator[SmallDisk]:
    """Mount one at a folder that is made for it; skips the test where that is not allowed."""
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "rune", str(path)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)
