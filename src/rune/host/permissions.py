"""Which of Rune's own places others may look into, and how that is ended."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

from rune.host.files import PRIVATE_FILE, PRIVATE_FOLDER
from rune.host.paths import Home

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class OpenPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A folder or file that others than its owner may use. `mode` is what it has, `wanted` what Rune gives."""

    path: Path
    mode: int
    wanted: int


def open_places(home: Home) -> tuple[OpenPlace, ...]:
    """Return those that Rune made and that are open to others, folders before what is in them.

    Left out are what a person puts there (config.yaml, model files) and what links lead to. Where a folder is closed
    nobody reaches what is in it, but it is listed all the same: it may be copied. Raises OSError.
    """
    found: list[OpenPlace] = []
    for path, below in _places(home):
        try:
            info = path.lstat()
        except FileNotFoundError:
            continue  # it is made when it is needed, or a running Rune removed it just now
        mode = stat.S_IMODE(info.st_mode)
        if mode & _OTHERS and (stat.S_ISDIR(info.st_mode) or (below and stat.S_ISREG(info.st_mode))):
            wanted = PRIVATE_FOLDER if stat.S_ISDIR(info.st_mode) else PRIVATE_FILE
            found.append(OpenPlace(path=path, mode=mode, wanted=wanted))
    return tuple(found)


def tighten(place: OpenPlace) -> None:
    """Close it to others; the owner keeps what he has. Raises OSError, also for what became a link meanwhile."""
    descriptor = os.open(place.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.fchmod(descriptor, stat.S_IMODE(os.fstat(descriptor).st_mode) & ~_OTHERS)
    finally:
        os.close(descriptor)


def _places(home: Home) -> Iterator[tuple[Path, bool]]:
    """Give every place, with whether a file there is Rune's own."""
    for base in dict.fromkeys((home.config_dir, home.data_dir, home.state_dir)):
        yield base, False
    yield home.models, False
    yield home.trust_file, True
    if home.data_dir.is_dir():
        for path in sorted(home.data_dir.glob("views-*")):
            yield path, True
    for folder in (home.journal, home.evidence, home.leases, home.undo, home.backups, home.logs, home.state):
        if folder.is_symlink():
            continue
        yield folder, False
        for top, folders, files in os.walk(folder):
            for name in sorted(folders + files):
                yield Path(top) / name, True
