"""What `.gitignore` files leave out: those of a folder, of the folders above it in its repository, and below it.

What is below a folder that is left out is never asked for (docs/decisions/gitignore.md).
"""

import codecs
from pathlib import Path
from typing import Final

import msgspec

from rune.errors import AccessDeniedError, FileUnavailableError
from rune.host.small_files import read_bounded
from rune.tools.files import WorkspaceFiles
from rune.tools.globs import NamePattern, name_pattern

NAME: Final = ".gitignore"
_MOST_BYTES: Final = 1 << 17
_MOST_PATTERNS: Final = 2_000  # of one file; each takes 0.2 ms to read
_LONGEST: Final = 1_000  # characters of a line; no name that is meant has so many


class _Layer(msgspec.Struct, frozen=True):
    """The patterns of one file, the last first, and the folder in which they hold, with a slash at its end."""

    base: str
    patterns: tuple[NamePattern, ...]


class Ignoring(msgspec.Struct, frozen=True):
    """The files that hold in one folder, the outermost first."""

    layers: tuple[_Layer, ...] = ()

    def leaves_out(self, path: str, *, folder: bool) -> bool:
        """Say whether a real path is left out by a file in or above its folder: the last pattern that fits decides."""
        whole = f"{path}/" if folder else path
        for layer in reversed(self.layers):
            relative = whole[len(layer.base) :]
            for pattern in layer.patterns:
                if pattern.fits(relative):
                    return not pattern.negated
        return False

    def within(self, folder: str, content: bytes | None, *, repository: bool) -> "Ignoring":
        """Return what holds in a folder below. `content` is that of its own file; `repository`: one begins there, and
        what is said above it does not count.
        """
        above = () if repository else self.layers
        own = _patterns(content) if content else ()
        return Ignoring((*above, _Layer(f"{folder.rstrip('/')}/", own))) if own else Ignoring(above)


def ignoring_above(folder: Path) -> Ignoring:
    """Return what holds for a folder by the files above it, up to the repository's own folder.

    They are read whatever tools may read: nothing of them is shown.
    """
    chain: list[Path] = []
    for above in (folder, *folder.parents):
        if above != folder:
            chain.append(above)
        if (above / ".git").exists():
            break
    found = Ignoring()
    for above in reversed(chain):
        try:
            content = read_bounded(above / NAME, _MOST_BYTES)
        except (OSError, ValueError):
            continue  # none there, or none that can be read: nothing is left out by it
        found = found.within(str(above), content, repository=False)
    return found


def ignore_file(files: WorkspaceFiles, folder: Path) -> bytes | None:
    """Return what the folder's own `.gitignore` holds; None where it cannot be read: nothing is left out by it then."""
    try:
        return files.read(str(folder / NAME), most=_MOST_BYTES).data
    except (AccessDeniedError, FileUnavailableError):
        return None


def _patterns(content: bytes) -> tuple[NamePattern, ...]:
    found: list[NamePattern] = []
    for line in content.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape").split("\n"):
        if len(found) == _MOST_PATTERNS:
            break
        if len(line) > _LONGEST:
            continue
        try:
            pattern = name_pattern(line.removesuffix("\r"))
        except ValueError:
            continue  # git says nothing of a line that is no pattern either
        if pattern is not None:
            found.append(pattern)
    return tuple(reversed(found))
