"""Every blob that the journal names, read and compared with its hash; and what lies there besides."""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

import msgspec

from rune.errors import EvidenceTamperedError, NotFoundError, RuneError
from rune.store.evidence_store import EvidenceStore

_UNFINISHED: Final = "unfinished"
_TOLD_EVERY: Final = 100

# A blob lies in the folder of so many digits of its hash.
_FIRST_DIGITS = 2


class EvidenceState(msgspec.Struct, frozen=True, kw_only=True):
    """What was found. `whole` named blobs and their `bytes`; those that are `missing`, `tampered` or `unreadable`, by
    hash; how many are not there because they were `erased`; how many files nothing names any more; what writers left
    `unfinished`, and how much of it for over a day.
    """

    whole: int = 0
    bytes: int = 0
    missing: tuple[str, ...] = ()
    tampered: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    erased: int = 0
    unnamed: int = 0
    unfinished: int = 0
    left_over: int = 0


def inspect_evidence(
    root: Path,
    store: EvidenceStore,
    named: Collection[str],
    *,
    gone: Collection[str] = (),
    before_ms: int,
    told: Callable[[int, int], None] = lambda _done, _all: None,
) -> EvidenceState:
    """Verify the named blobs; that those `gone` are missing is in order. `told` gets how many were read of how many,
    now and then, and what it raises ends the look; what was begun before `before_ms` (wall milliseconds) and is not
    finished counts as left over. Writes nothing. Raises OSError.
    """
    whole = bytes_ = erased = 0
    missing: list[str] = []
    tampered: list[str] = []
    unreadable: list[str] = []
    for number, name in enumerate(sorted(named), 1):
        try:
            bytes_ += len(store.get(name))
            whole += 1
        except RuneError as error:
            if name in gone:
                erased += 1
            elif isinstance(error, NotFoundError):
                missing.append(name)
            elif isinstance(error, EvidenceTamperedError):
                tampered.append(name)
            else:
                unreadable.append(name)
        if number % _TOLD_EVERY == 0:
            told(number, len(named))
    unfinished = [path.stat().st_mtime_ns // 1_000_000 for path in _files(root / _UNFINISHED)]
    return EvidenceState(
        whole=whole,
        bytes=bytes_,
        missing=tuple(missing),
        tampered=tuple(tampered),
        unreadable=tuple(unreadable),
        erased=erased,
        unnamed=sum(f"sha256:{path.parent.name}{path.name}" not in named for path in _blobs(root)),
        unfinished=len(unfinished),
        left_over=sum(moment < before_ms for moment in unfinished),
    )


def _blobs(root: Path) -> list[Path]:
    folders = (folder for folder in _entries(root) if len(folder.name) == _FIRST_DIGITS)
    return [path for folder in folders for path in _files(folder)]


def _files(folder: Path) -> list[Path]:
    return [path for path in _entries(folder) if path.is_file() and not path.is_symlink()]


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() and not folder.is_symlink() else []
