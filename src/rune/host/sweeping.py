"""Removing what a folder holds beyond its time or its size: never outside of it, never through a link."""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

_DAY_MS: Final = 24 * 60 * 60 * 1000


class Swept(msgspec.Struct, frozen=True, kw_only=True):
    """What a sweep came to: how many files went, how many bytes they had, and what could not be removed."""

    files: int = 0
    bytes: int = 0
    failures: tuple[OSError, ...] = ()


class _Found(msgspec.Struct, frozen=True, order=True):
    """A file in a folder; sorts by age, the oldest first."""

    modified_ms: int
    place: tuple[int, int]
    size: int


def folder_size(folder: Path) -> tuple[int, int]:
    """Return how many files there are below a folder and their bytes; links count as what they are themselves.

    A folder that is not there, or is a link, is empty; what cannot be read does not count.
    """
    found = list(_files(folder, lambda _: None))
    return len(found), sum(file.size for file in found)


def sweep_folder(
    folder: Path, *, now_ms: int, days: int, most_bytes: int, go_on: Callable[[], bool] = lambda: True
) -> Swept:
    """Remove the files below a folder that are older than `days`, and then the oldest until the rest has at most
    `most_bytes`. Folders that are empty and unchanged for a day go too, the top one stays.

    A link is a file like others: it goes, what it leads to stays. What cannot be removed does not stop the rest.
    `go_on` is asked before each file. `now_ms` is wall time in milliseconds since 1970.
    """
    failures: list[OSError] = []
    files = sorted(_files(folder, failures.append))
    doomed = _due(files, now_ms - days * _DAY_MS, most_bytes)
    count = freed = 0
    for _, folders, names, descriptor in _walk(folder, failures.append, topdown=False):
        for name in names:
            if not go_on():
                return Swept(files=count, bytes=freed, failures=tuple(failures))
            try:
                found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                if (found.st_dev, found.st_ino) in doomed and not stat.S_ISDIR(found.st_mode):
                    os.unlink(name, dir_fd=descriptor)
                    count, freed = count + 1, freed + found.st_size
            except OSError as error:
                failures.append(error)
        for name in folders:
            _remove_if_left(name, descriptor, now_ms - _DAY_MS)
    return Swept(files=count, bytes=freed, failures=tuple(failures))


def _due(files: list[_Found], before_ms: int, most_bytes: int) -> set[tuple[int, int]]:
    total = sum(file.size for file in files)
    doomed: set[tuple[int, int]] = set()
    for file in files:
        if file.modified_ms >= before_ms and total <= most_bytes:
            break
        doomed.add(file.place)
        total -= file.size
    return doomed


def _files(folder: Path, failed: Callable[[OSError], None]) -> Iterator[_Found]:
    for _, _, names, descriptor in _walk(folder, failed, topdown=True):
        for name in names:
            try:
                found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            except FileNotFoundError:
                continue  # another process sweeps too
            except OSError as error:
                failed(error)
                continue
            yield _Found(found.st_mtime_ns // 1_000_000, (found.st_dev, found.st_ino), found.st_size)


def _walk(
    folder: Path, failed: Callable[[OSError], None], *, topdown: bool
) -> Iterator[tuple[str, list[str], list[str], int]]:
    """Walk by descriptors, so that a folder which becomes a link meanwhile leads nowhere else."""

    def note(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            failed(error)

    if not folder.is_dir():  # one that is a link is not entered, as no other is
        return
    for top, folders, names, descriptor in os.fwalk(folder, topdown, note, follow_symlinks=False):
        links = [name for name in folders if _is_link(name, descriptor)]
        yield top, [name for name in folders if name not in links], [*names, *links], descriptor


def _is_link(name: str, descriptor: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _remove_if_left(name: str, descriptor: int, before_ms: int) -> None:
    """Remove an empty folder that nobody has touched for a day: in a fresh one somebody may be about to write."""
    try:
        found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode) and found.st_mtime_ns // 1_000_000 < before_ms:
            os.rmdir(name, dir_fd=descriptor)
    except OSError:
        return  # it is not empty, or not ours to remove: an empty folder costs nothing
