"""The folder that a program is run in: found by its name while preparing, entered by descriptor while acting.

Between the two somebody may put a link in its place. What is entered is what was approved, or nothing.
"""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from rune.errors import AccessDeniedError, DigestMismatchError
from rune.host.paths import storable_path
from rune.host.resolving import best_resolver
from rune.tools.places import outside
from rune.tools.workplace import Workplace


def find_folder(path: str, place: Workplace) -> Path:
    """Return the real place of a folder in which programs may run: one where files may be written.

    Blocks. Raises AccessDeniedError, FileUnavailableError, InvalidArgumentsError as `tools.files` does.
    """
    found = place.files.list(path).path
    if _above(found, place) is None:
        raise AccessDeniedError(outside(found, place.places.writing, "write"))
    return found


@contextmanager
def entered(folder: Path, place: Workplace) -> Generator[int]:
    """Give a descriptor of a folder that `find_folder` returned; links on the way to it are not followed.

    Raises DigestMismatchError where it is another by now.
    """
    above = _above(folder, place)
    if above is None:
        raise AccessDeniedError(outside(folder, place.places.writing, "write"))
    try:
        descriptor = _opened(above, folder.relative_to(above))
    except OSError as error:
        raise DigestMismatchError(
            f"{storable_path(folder)} is no longer the folder that it was ({error.strerror}). Nothing was run",
            hint="Look what is there.",
        ) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _opened(above: Path, rest: Path) -> int:
    root = os.open(above, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return best_resolver(root).folder(root, os.fsencode(rest), links=False).descriptor
    finally:
        os.close(root)


def _above(folder: Path, place: Workplace) -> Path | None:
    return next((each for each in place.places.writing if folder.is_relative_to(each)), None)
