"""format_code: the project's own formatter, with what it changes kept for /undo.

A formatter writes by itself. So that it can be taken back, what the files of its language hold is kept before, where
they can be listed; afterwards those that hold something else are told.
"""

import asyncio
import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Annotated, Any, Final

from msgspec import Meta
from msgspec.structs import replace

from rune.errors import FileUnavailableError, ToolError
from rune.host.paths import storable_path
from rune.records.tools import FileTouch
from rune.tools.executor import Done, Plan, ToolKind, Watch
from rune.tools.project_facts import files_below
from rune.tools.project_run import Ready, existing, planned, ran, told
from rune.tools.schema import Arguments, arguments_of, schema_of
from rune.tools.workplace import Workplace

NAME: Final = "format_code"
MOST_FILES: Final = 500
"""So many files are kept at most for taking it back."""

_AT_ONCE: Final = 16
_MOST_BYTES: Final = 1024 * 1024
_DESCRIPTION: Final = (
    "Format code with the project's own formatter (ruff, black, prettier, cargo fmt, gofmt), found by itself. "
    "Use it when a change is done."
)
_NAMED: Final = 8  # changed files that are named at most


class _Arguments(Arguments, frozen=True, kw_only=True):
    path: Annotated[str, Meta(description='File or folder; "" for all.', examples=["src"])] = ""


class FormatCode:
    """The tool (tools.executor.Tool)."""

    schema = schema_of(NAME, _DESCRIPTION, _Arguments)
    kind: ToolKind = "run"  # formatters run plugins, and scripts of the project

    async def prepare(self, arguments: Mapping[str, Any], place: Workplace) -> Plan:
        """Find the formatter, and the files that it may change."""
        given = arguments_of(_Arguments, arguments, NAME)
        path = await asyncio.to_thread(existing, given.path, place, writing=True)
        plan = await planned("format", place, path, also={})
        ready: Ready = plan.state
        files = await asyncio.to_thread(_files_of, ready, place)
        if files is None:
            undo = "it cannot be taken back: which files it changes is not known"
        else:
            undo = f"what {_count(len(files))} hold is kept before"
        facts, _, line = plan.detail.rpartition("\n\n")
        return replace(plan, detail=f"{facts}\n/undo: {undo}\n\n{line}", state=replace(ready, state=files))

    async def execute(self, plan: Plan, place: Workplace, watch: Watch) -> Done:
        """Keep what is there, run it, and see what changed. Raises StorageUnavailableError: then nothing was run."""
        ready: Ready = plan.state
        before = await asyncio.to_thread(_kept, ready.state or (), place)
        this = await ran(ready, place, watch)
        touches = await asyncio.to_thread(_changed, before, place)
        names = [name for name, _ in touches]
        if ready.state is None:
            note = "It cannot be taken back with /undo: which files it changed is not known."
        elif names:
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            note = f"changed: {', '.join(names[:_NAMED])}{more}"
        else:
            note = "no file changed"
        return replace(told(this, ready, note), files=tuple(touch for _, touch in touches))


def _files_of(ready: Ready, place: Workplace) -> tuple[str, ...] | None:
    """Return the files that the formatter may change, relative to the folder; None when they cannot be listed."""
    try:
        place.files.list(ready.path or ".")
    except FileUnavailableError:
        return (ready.path,)  # a file
    if not ready.command.writes:
        return None
    found = files_below(place.files, ready.path, ready.command.writes, MOST_FILES)
    return None if found is None else tuple(found)


def _kept(files: tuple[str, ...], place: Workplace) -> dict[str, str]:
    """Keep what files hold; return its sha256 by name. What may not be read or is very large is left alone: it is not
    told as changed later either, so nobody thinks that it could be taken back.
    """
    kept: set[str] = set()
    choosing = Lock()

    def keep(name: str) -> str | None:
        try:
            content = place.files.read(name, most=_MOST_BYTES)
        except ToolError:
            return None
        sha256 = content.facts.sha256
        with choosing:  # of files that hold the same, one thread keeps it
            is_new = sha256 not in kept
            kept.add(sha256)
        if is_new:
            place.undo.keep(content.data)
        return sha256

    # Each waits for the disk, and the disk takes several at once.
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        return {name: sha256 for name, sha256 in zip(files, threads.map(keep, files), strict=True) if sha256}


def _changed(before: Mapping[str, str], place: Workplace) -> list[tuple[str, FileTouch]]:
    found: list[tuple[str, FileTouch]] = []
    for name, old in before.items():
        try:
            new: str | None = hashlib.sha256(place.files.read(name).data).hexdigest()
        except ToolError:
            new = None  # it is gone, or no file that could be read any more
        if new != old:
            found.append((name, FileTouch(path=storable_path(place.folder / name), before=old, after=new)))
    return found


def _count(number: int) -> str:
    return "1 file" if number == 1 else f"{number} files"
