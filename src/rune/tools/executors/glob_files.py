"""Finding files by the pattern of their names."""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any, Final

from msgspec import Meta

from rune.tools.executor import Done, Plan, ToolKind, Watch
from rune.tools.globs import globs
from rune.tools.naming import shown_name
from rune.tools.schema import Arguments, arguments_of, schema_of
from rune.tools.walking import LeftOut, walk
from rune.tools.workplace import Workplace

_NAME: Final = "glob_files"
_MOST: Final = 200


class _Arguments(Arguments, frozen=True, kw_only=True):
    pattern: Annotated[str, Meta(min_length=1, description="Pattern.", examples=["*.py", "src/**/test_*.{js,ts}"])]
    path: Annotated[str, Meta(description="Folder to look in.", examples=["src"])] = "."


class GlobFiles:
    """The tool glob_files."""

    schema = schema_of(
        _NAME,
        "Finds files by name in a folder and all below it. Use it when you do not know where a file is.",
        _Arguments,
    )
    kind: ToolKind = "read"

    async def prepare(self, arguments: Mapping[str, Any], place: Workplace) -> Plan:
        """Check the arguments (Tool.prepare)."""
        given = arguments_of(_Arguments, arguments, _NAME)
        globs(given.pattern, start=place.folder)
        where = "" if given.path in {"", "."} else f" in {shown_name(given.path)}"
        return Plan(effect=f"{shown_name(given.pattern)}{where}", state=given)

    async def execute(self, plan: Plan, place: Workplace, watch: Watch) -> Done:
        """Look (Tool.execute)."""
        return await asyncio.to_thread(_find, plan.state, place, watch)


def _find(given: _Arguments, place: Workplace, watch: Watch) -> Done:
    with place.files.held(given.path or ".") as (_, start):
        pass  # where it really is: what is below is listed by that, a folder at a time
    pattern = globs(given.pattern, start=start)
    left_out = LeftOut()
    shown: list[str] = []
    count = looked_at = 0
    for found in walk(place.files, place.places, start, left_out, stop=watch.stop.is_set):
        looked_at += 1
        folder = found.kind == "folder"
        if (folder and not pattern.finds_folders) or not pattern.fit(found.place, folder=folder):
            continue
        count += 1
        if len(shown) < _MOST:
            shown.append(shown_name(place.named(start / found.place)) + ("/" if folder else ""))
    where = shown_name(place.named(start))
    if watch.stop.is_set():
        return Done(text="Stopped before all was looked at.", summary="stopped", outcome="cancelled")
    lines = shown or [f"Nothing in {where} is named {given.pattern!r}; {looked_at:,} names were looked at."]
    if count > len(shown):
        lines.append(f"[{count - len(shown):,} more: narrow the pattern or the path]")
    if note := left_out.note():
        lines.append(note)
    return Done(text="\n".join(lines), summary=f"{count:,} {'name' if count == 1 else 'names'}")
