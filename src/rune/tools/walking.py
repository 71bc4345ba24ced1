"""What is below a folder, as the tools that look for something see it: without links and without what nobody means.

Left out are folders whose name begins with a dot, those that programs fill (`node_modules`), what `.gitignore` says and
what may not be read. A folder that was named itself is looked into whatever it is called.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Literal

import msgspec

from rune.errors import ToolError
from rune.host.beneath import Kind
from rune.tools.files import WorkspaceFiles
from rune.tools.ignoring import NAME, Ignoring, ignore_file, ignoring_above
from rune.tools.naming import shown_name
from rune.tools.places import Places

FILLED: Final = ("node_modules", "bower_components", "__pycache__", "venv", "site-packages")
"""Folders that programs fill, beside those whose name begins with a dot; compared as they are written."""

_MOST_NAMED: Final = 8

Why = Literal["", "hidden", "ignored", "closed"]


class Found(msgspec.Struct, frozen=True):
    """One thing below the folder: `place` relative to it, as `os.fsdecode` gives names."""

    place: str
    kind: Kind


class LeftOut(msgspec.Struct):
    """What was not looked into: the places of folders that are hidden or filled by programs (some of them), how many
    there were, how many names `.gitignore` left out, and how many folders are closed.
    """

    named: list[str] = []
    hidden: int = 0
    ignored: int = 0
    closed: int = 0

    def note(self) -> str:
        """Say it in a line; "" when there was nothing."""
        parts: list[str] = []
        if self.hidden:
            more = self.hidden - len(self.named)
            names = ", ".join([*(f"{shown_name(name)}/" for name in self.named), *([f"{more:,} more"] if more else [])])
            parts.append(f"hidden or generated folders ({names})")
        if self.ignored:
            parts.append(f"{self.ignored:,} by .gitignore")
        if self.closed:
            parts.append(f"{self.closed:,} that may not or cannot be read")
        return f"[left out: {'; '.join(parts)}; name such a folder as path to look into it]" if parts else ""

    def take(self, place: str, why: Why) -> None:
        """Count one."""
        if why == "hidden":
            self.hidden += 1
            if len(self.named) < _MOST_NAMED:
                self.named.append(place)
        elif why == "ignored":
            self.ignored += 1
        elif why == "closed":
            self.closed += 1


def is_hidden(name: str) -> bool:
    """Say whether a folder of this name is left out by its name alone."""
    return name.startswith(".") or name in FILLED


def walk(
    files: WorkspaceFiles,
    places: Places,
    start: Path,
    left_out: LeftOut,
    *,
    stop: Callable[[], bool] = lambda: False,
    hidden: bool = False,
) -> Iterator[Found]:
    """Give all that is below a real folder, each folder before what is in it, in order of names. It blocks.

    `hidden`: also what is in hidden and filled folders. Ends early when `stop` says so. Raises ToolError where the
    folder itself cannot be listed.
    """
    levels = [_entries(files, start, "", ignoring_above(start))]
    while levels:
        entries, ignoring = levels[-1]
        found = next(entries, None)
        if found is None:
            levels.pop()
            continue
        if stop():
            return
        why = _why(places, start, found, ignoring, hidden=hidden)
        left_out.take(found.place, why)
        if why in {"hidden", "ignored"}:
            continue
        yield found
        if found.kind == "folder" and not why:
            try:
                levels.append(_entries(files, start, found.place, ignoring))
            except ToolError:
                left_out.take(found.place, "closed")


def _entries(files: WorkspaceFiles, start: Path, place: str, above: Ignoring) -> tuple[Iterator[Found], Ignoring]:
    folder = start / place
    names = files.names(folder)
    own = next((name for name in names if name.name == NAME and name.kind == "file"), None)
    content = ignore_file(files, folder) if own else None
    repository = any(name.name == ".git" for name in names)
    before = f"{place}/" if place else ""
    return (
        iter([Found(before + name.name, name.kind) for name in names]),
        above.within(str(folder), content, repository=repository),
    )


def _why(places: Places, start: Path, found: Found, ignoring: Ignoring, *, hidden: bool) -> Why:
    name = found.place.rpartition("/")[2]
    folder = found.kind == "folder"
    if name == ".git" or (folder and not hidden and is_hidden(name)):
        return "hidden"
    path = start / found.place
    if ignoring.leaves_out(str(path), folder=folder):
        return "ignored"
    return "closed" if places.ruling("read", path).verdict == "deny" else ""
