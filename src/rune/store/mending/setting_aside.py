"""Keeping what is set aside: a copy of a segment's end, or the file itself where it cannot be read; then cutting."""

import errno
import os
import secrets
from collections.abc import Callable
from pathlib import Path

import msgspec

from rune.errors import StorageUnavailableError
from rune.host.files import create_private, open_regular, sync_folder
from rune.store.failures import why_unreadable
from rune.store.gaps import open_past_gaps, read_at

_COPY_BYTES = 1 << 20
_ATTEMPTS = 1000

Step = Callable[[str], None]


class Part(msgspec.Struct, frozen=True):
    """A segment whose bytes from `start` on go."""

    path: Path
    start: int
    reason: str


def keep(part: Part, name: str, step: Step) -> str:
    """Copy a part beside its segment, synced, under this name or one like it; returns which. A file of which a part
    cannot be read gets the name itself, as a second one where it can have two. Raises OSError, StorageUnavailableError.
    """
    folder = part.path.parent
    temporary = _temporary(part)
    copied = _copied(part, temporary)
    step(f"copied {part.path.name}")
    kept = _free_name(folder, name)
    if copied:
        temporary.rename(folder / kept)
    else:
        temporary.unlink()
        _keep_itself(part, folder / kept)
    sync_folder(folder)
    return kept


def cut(part: Part, kept: Path, step: Step) -> None:
    """Take a part off its segment, once `kept` holds it. Raises OSError."""
    linked = _is_same_file(part.path, kept)
    if part.start == 0:
        if linked:
            part.path.unlink()  # moving one name of a file over the other does nothing
        else:
            part.path.replace(kept)  # of the same content, or not there yet
        sync_folder(part.path.parent)
        step(f"moved {part.path.name}")
        return
    if linked:
        beginning = _temporary(part)
        _copy_beginning(part, beginning)
        beginning.replace(part.path)
        sync_folder(part.path.parent)
        step(f"cut {part.path.name}")
        return
    descriptor = open_regular(part.path, os.O_WRONLY)
    try:
        os.ftruncate(descriptor, part.start)
        step(f"cut {part.path.name}")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def holds(path: Path, part: Part) -> bool:
    """Say whether a file has exactly the bytes of a part, or is the file of that part itself."""
    if _is_same_file(path, part.path):
        return True
    try:
        with os.fdopen(open_regular(path), "rb") as kept, os.fdopen(open_regular(part.path), "rb") as source:
            source.seek(part.start)
            while True:
                mine, theirs = source.read(_COPY_BYTES), kept.read(_COPY_BYTES)
                if mine != theirs:
                    return False
                if not mine:
                    return True
    except OSError as error:
        if why_unreadable(error) is None:
            raise
        return False


def _is_same_file(one: Path, other: Path) -> bool:
    try:
        return os.path.samestat(one.lstat(), other.lstat())
    except FileNotFoundError:
        return False


def _copied(part: Part, target: Path) -> bool:
    """Copy a part, synced; False where some of it cannot be read, or no file is there."""
    gaps: list[None] = []
    with (
        open_past_gaps(part.path, part.start, lambda: gaps.append(None)) as source,
        os.fdopen(create_private(target), "wb") as copy,
    ):
        while not gaps and (piece := source.read(_COPY_BYTES)):
            copy.write(piece)
        copy.flush()
        os.fsync(copy.fileno())
    return not gaps


def _keep_itself(part: Part, target: Path) -> None:
    """Give a file that cannot be copied its other name too, where it can have one: until the last step it has both."""
    try:
        os.link(part.path, target, follow_symlinks=False)
    except OSError:
        # A folder, or a file system without hard links: the last step moves it. Not where its beginning stays.
        if part.start:
            raise


def _copy_beginning(part: Part, target: Path) -> None:
    """Copy what stands before a part, synced. Every byte of it was read before."""
    with os.fdopen(open_regular(part.path), "rb") as source, os.fdopen(create_private(target), "wb") as copy:
        place = 0
        while place < part.start:
            piece = read_at(source.fileno(), min(_COPY_BYTES, part.start - place), place)
            if not piece:
                raise OSError(errno.EIO, "it became shorter", str(part.path))
            copy.write(piece)
            place += len(piece)
        copy.flush()
        os.fsync(copy.fileno())


def _free_name(folder: Path, name: str) -> str:
    for attempt in range(_ATTEMPTS):
        candidate = f"{name}-{attempt}" if attempt else name
        if not os.path.lexists(folder / candidate):
            return candidate
    raise StorageUnavailableError(f"there are {_ATTEMPTS} files {name!r}", hint="Move some of them away.")


def _temporary(part: Part) -> Path:
    return part.path.with_name(f".{part.path.name}.{secrets.token_hex(8)}.tmp")
