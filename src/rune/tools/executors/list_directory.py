"""What is in one folder."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Meta

from rune.errors import FileUnavailableError
from rune.host.beneath import Entry
from rune.tools.executor import Done, Plan, ToolKind, Watch
from rune.tools.files import Listing
from rune.tools.ignoring import NAME, ignore_file, ignoring_above
from rune.tools.naming import shown_name
from rune.tools.schema import Arguments, arguments_of, schema_of
from rune.tools.walking import is_hidden
from rune.tools.workplace import Workplace

_NAME: Final = "list_directory"
_MOST: Final = 500
_MOST_LEFT_OUT: Final = 20
_KILO: Final = 1_000


class _Arguments(Arguments, frozen=True, kw_only=True):
    path: Annotated[str, Meta(description="Folder to list.", examples=["src"])] = "."


class ListDirectory:
    """The tool list_directory."""

    schema = schema_of(
        _NAME,
        "Lists the files and folders in one folder. Use it to see what is there; glob_files looks into subfolders.",
        _Arguments,
    )
    kind: ToolKind = "read"

    async def prepare(self, arguments: Mapping[str, Any], place: Workplace) -> Plan:
        """Check the arguments (Tool.prepare)."""
        given = arguments_of(_Arguments, arguments, _NAME)
        return Plan(effect=shown_name(given.path or "."), state=given.path or ".")

    async def execute(self, plan: Plan, place: Workplace, watch: Watch) -> Done:
        """List (Tool.execute)."""
        return await asyncio.to_thread(_list, plan.state, place)


def _list(path: str, place: Workplace) -> Done:
    try:
        listing = place.files.list(path)
    except FileUnavailableError as error:
        if not isinstance(error.__cause__, NotADirectoryError):
            raise
        raise FileUnavailableError(f"{shown_name(path)} is no folder", hint="Use read_file for a file.") from error
    name = shown_name(place.named(listing.path))
    shown, left_out = _parted(listing, place)
    if not listing.entries:
        return Done(text=f"{name} is an empty folder.", summary=f"{name}: empty")
    lines = [_line(entry) for entry in shown[:_MOST]]
    if len(shown) > _MOST:
        lines.append(f"[{len(shown) - _MOST:,} more; glob_files path={name} finds names by pattern]")
    if left_out:
        names = ", ".join(_line(entry, size=False) for entry in left_out[:_MOST_LEFT_OUT])
        more = f" and {len(left_out) - _MOST_LEFT_OUT:,} more" if len(left_out) > _MOST_LEFT_OUT else ""
        lines.append(f"[left out as hidden, generated or by .gitignore: {names}{more}]")
    count = len(listing.entries)
    return Done(text="\n".join(lines), summary=f"{name}: {count:,} {'name' if count == 1 else 'names'}")


def _parted(listing: Listing, place: Workplace) -> tuple[list[Entry], list[Entry]]:
    """Return what is shown, and what is only named."""
    names = {entry.name for entry in listing.entries}
    content = ignore_file(place.files, listing.path) if NAME in names else None
    ignoring = ignoring_above(listing.path).within(str(listing.path), content, repository=".git" in names)
    shown: list[Entry] = []
    left_out: list[Entry] = []
    for entry in listing.entries:
        folder = entry.kind == "folder"
        hidden = entry.name == ".git" or (folder and is_hidden(entry.name))
        out = hidden or ignoring.leaves_out(str(listing.path / entry.name), folder=folder)
        (left_out if out else shown).append(entry)
    return shown, left_out


def _line(entry: Entry, *, size: bool = True) -> str:
    name = shown_name(Path(entry.name))
    if entry.kind == "folder":
        return f"{name}/"
    if entry.kind == "file":
        return f"{name}  {_in_words(entry.size)}" if size else name
    return f"{name} ({'link' if entry.kind == 'link' else 'no regular file'})"


def _in_words(size: int) -> str:
    if size < _KILO:
        return f"{size} bytes"
    return f"{size / _KILO:,.1f} KB" if size < _KILO**2 else f"{size / _KILO**2:,.1f} MB"
