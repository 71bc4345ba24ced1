"""edit_file: exact search and replacement in a file that is there."""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any, Final

from msgspec import Meta

from rune.errors import FileUnavailableError, InvalidArgumentsError
from rune.tools import edits
from rune.tools.executor import Done, Plan, ToolKind, Watch
from rune.tools.file_change import carried_out, planned, target_of, text_of
from rune.tools.files import Target
from rune.tools.line_ends import with_lf
from rune.tools.naming import shown_name
from rune.tools.schema import Arguments, arguments_of, schema_of
from rune.tools.workplace import Workplace

NAME: Final = "edit_file"

_DESCRIPTION: Final = (
    "Change parts of a file that you have read. Each `search` must stand in it once: copy it, without line numbers."
)
_STALE: Final = "Note: the file had changed since you read it. Read it again before you go on."
_INSTEAD: Final = "Use write_file to make a new file, or glob_files to find the one you mean."


class _Edit(Arguments, frozen=True, kw_only=True):
    search: Annotated[str, Meta(examples=["    return a - b"])]
    replace: Annotated[str, Meta(examples=["    return a + b"])]


class _Arguments(Arguments, frozen=True, kw_only=True):
    path: Annotated[str, Meta(description="File to change.", examples=["src/cart.py"])]
    edits: Annotated[list[_Edit], Meta(description="Made all or none.", min_length=1)]


class EditFile:
    """The tool (tools.executor.Tool)."""

    schema = schema_of(NAME, _DESCRIPTION, _Arguments)
    kind: ToolKind = "edit"

    async def prepare(self, arguments: Mapping[str, Any], place: Workplace) -> Plan:
        """Find the places, and compute what the file would hold (Tool.prepare)."""
        given = arguments_of(_Arguments, arguments, NAME)
        return await asyncio.to_thread(_plan, given, place)

    async def execute(self, plan: Plan, place: Workplace, watch: Watch) -> Done:
        """Keep what it holds for /undo, and write it (Tool.execute). Raises StorageUnavailableError too."""
        return await asyncio.to_thread(carried_out, plan.state, place, watch)


def _plan(given: _Arguments, place: Workplace) -> Plan:
    target = target_of(given.path.rstrip("/") or given.path, place)
    name = shown_name(place.named(target.path))
    if target.facts is None:
        raise FileUnavailableError(f"{name} is not there, so it cannot be edited.", hint=_INSTEAD)
    old, file = text_of(target, place)
    if not old:
        raise FileUnavailableError(f"{name} is empty, so there is nothing to search in.", hint="Use write_file.")
    wanted = [edits.Edit(edit.search, edit.replace) for edit in given.edits]
    edited = edits.apply(file.text, wanted)
    if isinstance(edited, edits.Refused):
        raise InvalidArgumentsError(f"{name}: {edited.message}", hint=_read_it(target, place, name))
    if target.path not in place.seen and not all(file.text.count(with_lf(edit.search)) == 1 for edit in wanted):
        # To know what was meant by something that is not there takes a model that has seen the file.
        raise InvalidArgumentsError(
            f"{name}: the search does not stand there exactly, and you have not read the file. Nothing was changed.",
            hint=f"Read it first: read_file path={name}",
        )
    stale = place.seen.get(target.path, target.facts.sha256) != target.facts.sha256
    return planned(
        target,
        place,
        old=old,
        texts=(file.text, edited.text),
        new=file.with_changes(edited.changes),
        notes=(*edited.notes, *((_STALE,) if stale else ())),
    )


def _read_it(target: Target, place: Workplace, name: str) -> str:
    """Return what a model needs to be told whose edit does not fit."""
    seen = place.seen.get(target.path)
    if seen is None:
        return f"You have not read the file: read_file path={name}"
    changed = target.facts is not None and seen != target.facts.sha256
    return f"The file has changed since you read it: read_file path={name}" if changed else ""
