"""Finding lines in files."""

import asyncio
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from rune.errors import FileUnavailableError, InvalidArgumentsError, ToolTimeoutError
from rune.tools.executor import Done, Plan, ToolKind, Watch
from rune.tools.files import FileContent
from rune.tools.globs import globs
from rune.tools.naming import shown_name
from rune.tools.schema import Arguments, arguments_of, schema_of
from rune.tools.searching.by_python import search_by_python
from rune.tools.searching.ripgrep import find_ripgrep, search_by_ripgrep
from rune.tools.searching.search import MOST_MATCHES, SECONDS, Match, Outcome, Search
from rune.tools.text_file import BinaryFile, decode
from rune.tools.workplace import Workplace

_NAME: Final = "grep_files"
_MOST: Final = 100
_MOST_OF_A_LINE: Final = 300  # characters


class _Arguments(Arguments, frozen=True, kw_only=True):
    pattern: Annotated[str, Meta(min_length=1, description="Regular expression.", examples=[r"def add\("])]
    path: Annotated[str, Meta(description="Folder or file to look in.", examples=["src"])] = "."
    glob: Annotated[str, Meta(description="Only files of such names.", examples=["*.py"])] = ""
    ignore_case: bool = False


class GrepFiles:
    """The tool grep_files."""

    schema = schema_of(
        _NAME,
        "Finds lines that match in all files of a folder. Use it to find where something is defined or used.",
        _Arguments,
    )
    kind: ToolKind = "read"

    async def prepare(self, arguments: Mapping[str, Any], place: Workplace) -> Plan:
        """Check the arguments (Tool.prepare)."""
        given = arguments_of(_Arguments, arguments, _NAME)
        if "\n" in given.pattern or "\0" in given.pattern:
            raise InvalidArgumentsError(
                "the pattern spans lines", hint="Look for one line of it: each is matched alone."
            )
        if given.glob:
            globs(given.glob, start=place.folder)
        where = "" if given.path in {"", "."} else f" in {shown_name(given.path)}"
        return Plan(effect=f"{shown_name(given.pattern)}{where}", state=given)

    async def execute(self, plan: Plan, place: Workplace, watch: Watch) -> Done:
        """Look (Tool.execute)."""
        given: _Arguments = plan.state
        with ExitStack() as closing:
            search, folder, file = await asyncio.to_thread(_search, given, place, closing)
            found = await _found(search, folder, place, watch)
            refused = found.refused
            if refused:
                found = await _found(msgspec.structs.replace(search, literal=True), folder, place, watch)
        where = search.start if file is None else file.facts.path
        return _done(given, found, place, where, refused=refused)


def _search(given: _Arguments, place: Workplace, closing: ExitStack) -> tuple[Search, int, FileContent | None]:
    """Open what is to be looked in; `closing` holds it open."""
    path = given.path or "."
    file: FileContent | None = None
    try:
        folder, start = closing.enter_context(place.files.held(path))
    except FileUnavailableError as error:
        if not isinstance(error.__cause__, NotADirectoryError):
            raise
        file = place.files.read(path.rstrip("/"))
        folder, start = closing.enter_context(place.files.held(str(file.facts.path.parent)))
        if isinstance(found := decode(file.data), BinaryFile):
            raise FileUnavailableError(f"{shown_name(path)} is {found.in_words}", retryable=False) from error
    search = Search(
        pattern=given.pattern,
        start=start,
        only=None if file is None else file.data,
        glob=globs(given.glob, start=start) if given.glob and file is None else None,
        ignore_case=given.ignore_case,
    )
    return search, folder, file


async def _found(search: Search, folder: int, place: Workplace, watch: Watch) -> Outcome:
    program = find_ripgrep(place.environment)
    environment = place.environment
    if program is None:
        return await search_by_python(
            search, folder=folder, places=place.places, environment=environment, stop=watch.stop
        )
    return await search_by_ripgrep(
        program, search, folder=folder, places=place.places, environment=environment, stop=watch.stop
    )


def _done(given: _Arguments, found: Outcome, place: Workplace, where: Path, *, refused: str) -> Done:
    allowed: dict[tuple[str, ...], bool] = {}
    for match in found.matches:
        if match.parts not in allowed:
            # By its name it was left out before; this holds whatever a file system makes of names.
            allowed[match.parts] = place.places.ruling("read", where.joinpath(*match.parts)).verdict == "allow"
    matches = [match for match in found.matches if allowed[match.parts]]
    if found.timed_out and not matches:
        raise ToolTimeoutError(
            f"the search took longer than {SECONDS:.0f} seconds", hint="Give a folder as path, or a glob."
        )
    lines = [_line(match, where, place) for match in matches[:_MOST]]
    name = shown_name(place.named(where))
    if not lines:
        named = f" named {given.glob}" if given.glob else ""
        lines.append(f"No line matches in {name}{named} (hidden folders and what .gitignore names are left out).")
    if refused:
        lines.insert(0, f"[the pattern is no regular expression ({refused}): it was looked for as plain text]")
    files = sum(allowed.values())
    count = f"{len(matches):,}{'' if found.complete else '+'} {'line' if len(matches) == 1 else 'lines'}"
    if len(matches) > _MOST:
        lines.append(f"[{count} in {files:,} files; the first {_MOST} are shown: narrow pattern, path or glob]")
    if found.stopped or found.timed_out:
        lines.append(
            "[stopped before all was looked at]" if found.stopped else f"[stopped after {SECONDS:.0f} seconds]"
        )
    elif not found.complete:
        lines.append(f"[stopped at {MOST_MATCHES:,}]")
    return Done(
        text="\n".join(lines),
        summary=f"{count} in {files:,} {'file' if files == 1 else 'files'}",
        outcome="cancelled" if found.stopped else "ok",
    )


def _line(match: Match, where: Path, place: Workplace) -> str:
    text = _decoded(match.line)
    more = len(text) - _MOST_OF_A_LINE
    shown = text if more <= 0 else f"{text[:_MOST_OF_A_LINE]}..."
    return f"{shown_name(place.named(where.joinpath(*match.parts)))}:{match.number}: {shown}"


def _decoded(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        if error.start > len(line) - 4 and len(line) > _MOST_OF_A_LINE:
            return line[: error.start].decode()  # cut within a character
        return line.decode("cp1252", "replace")
