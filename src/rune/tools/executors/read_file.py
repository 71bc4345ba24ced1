"""Reading a text file, or a part of it, with line numbers."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Meta

from rune.errors import FileUnavailableError, InvalidArgumentsError, ToolError
from rune.host.paths import storable_path
from rune.records.tools import FileTouch
from rune.tools.executor import Done, Plan, ToolKind, Watch
from rune.tools.files import FileContent
from rune.tools.naming import meant, nearest, shown_name
from rune.tools.paging import MOST_LINES, lines_of, page
from rune.tools.schema import Arguments, arguments_of, schema_of
from rune.tools.text_file import BinaryFile, decode
from rune.tools.walking import LeftOut, walk
from rune.tools.workplace import Workplace

_NAME: Final = "read_file"
_MOST_LOOKED_AT: Final = 20_000  # names, for one that is elsewhere
_MOST_SUGGESTED: Final = 3
_PLAIN: Final = frozenset({"UTF-8", "UTF-8, no newline at the end"})


class _Arguments(Arguments, frozen=True, kw_only=True):
    path: Annotated[str, Meta(min_length=1, description="File to read.", examples=["src/cart.py"])]
    offset: Annotated[int, Meta(ge=1, description="First line.")] = 1
    limit: Annotated[int, Meta(ge=1, description="Most lines.")] = MOST_LINES


class ReadFile:
    """The tool read_file."""

    schema = schema_of(
        _NAME,
        "Reads a text file with line numbers (`12| `, not part of the file). Use it before you edit a file.",
        _Arguments,
    )
    kind: ToolKind = "read"

    async def prepare(self, arguments: Mapping[str, Any], place: Workplace) -> Plan:
        """Check the arguments (Tool.prepare)."""
        given = arguments_of(_Arguments, arguments, _NAME)
        part = f" from line {given.offset}" if given.offset > 1 else ""
        return Plan(effect=f"{shown_name(given.path)}{part}", state=given)

    async def execute(self, plan: Plan, place: Workplace, watch: Watch) -> Done:
        """Read (Tool.execute)."""
        return await asyncio.to_thread(_read, plan.state, place, watch)


def _read(given: _Arguments, place: Workplace, watch: Watch) -> Done:
    content = _content(given.path, place, watch)
    facts = content.facts
    name = shown_name(place.named(facts.path))
    found = decode(content.data)
    if isinstance(found, BinaryFile):
        hint = "Images cannot be shown to you yet." if found.kind.endswith("image") else ""
        raise FileUnavailableError(f"{name} is {found.in_words}", hint=hint, retryable=False)
    files = (FileTouch(path=storable_path(facts.path), before=facts.sha256, after=facts.sha256),)
    if not content.data:
        return Done(text=f"{name} is empty (0 bytes).", summary=f"{name}: empty", files=files)
    lines = lines_of(found.text)
    if given.offset > max(len(lines), 1):
        raise InvalidArgumentsError(f"{name} has {len(lines):,} lines: there is no line {given.offset:,}")
    part = page(lines, given.offset, given.limit, numbered=True)
    about = f"[{name}: {found.in_words}, {facts.size:,} bytes]"
    text = [
        *([] if found.in_words in _PLAIN and part.is_whole else [about]),
        part.text,
        part.note(f"{_NAME} path={name}"),
    ]
    lines_said = f"{part.total:,} {'line' if part.total == 1 else 'lines'}"
    return Done(
        text="\n".join(each for each in text if each),
        summary=f"{name}: {lines_said if part.is_whole else f'lines {part.first}-{part.last} of {part.total}'}",
        files=files,
    )


def _content(given: str, place: Workplace, watch: Watch) -> FileContent:
    """Return the file's bytes; a name that is meant as it was shown is found too. Raises ToolError."""
    path = given.rstrip("/") or given
    try:
        return place.files.read(path)
    except FileUnavailableError as error:
        if _names(path, place) is not None:
            raise FileUnavailableError(f"{shown_name(path)} is a folder", hint="Use list_directory.") from error
        folder, name = str(Path(path).parent), Path(path).name
        siblings = _names(folder, place)
        if siblings is not None and name in siblings:
            raise
        if siblings and (other := meant(name, siblings)):
            return place.files.read(str(Path(folder) / other))
        raise _not_there(path, place, siblings, watch) from error


def _not_there(path: str, place: Workplace, siblings: frozenset[str] | None, watch: Watch) -> FileUnavailableError:
    folder, name = Path(path).parent, Path(path).name
    said = f"{shown_name(path)} is not there"
    before = "" if str(folder) == "." else f"{shown_name(folder)}/"
    if near := [f"{before}{each}" for each in nearest(name, siblings or ())]:
        return FileUnavailableError(said, hint=f"Did you mean {', '.join(near)}?")
    if elsewhere := _elsewhere(name, place, watch):
        return FileUnavailableError(said, hint=f"Did you mean {', '.join(elsewhere)}?")
    if siblings is None:
        return FileUnavailableError(f"{said}, nor is its folder", hint="Use glob_files to find it.")
    return FileUnavailableError(said, hint=f"Use list_directory path={shown_name(folder)} to see what is.")


def _elsewhere(name: str, place: Workplace, watch: Watch) -> list[str]:
    """Return where files of this name are in the workspace, looking at so many names at most."""
    found: list[str] = []
    try:
        for number, each in enumerate(walk(place.files, place.places, place.folder, LeftOut(), stop=watch.stop.is_set)):
            if each.kind == "file" and each.place.rpartition("/")[2].casefold() == name.casefold():
                found.append(shown_name(each.place))
            if number > _MOST_LOOKED_AT or len(found) == _MOST_SUGGESTED:
                break
    except ToolError:
        return []  # it was only to help: the file is not there, and that is said
    return found


def _names(folder: str, place: Workplace) -> frozenset[str] | None:
    """Return the names in a folder, None where it cannot be listed: what was asked for is told without them then."""
    try:
        return frozenset(entry.name for entry in place.files.list(folder).entries)
    except ToolError:
        return None
