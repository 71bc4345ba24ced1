"""/artifact: what tools said in this conversation that was too long for the model to be given whole."""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from rune.errors import EvidenceTamperedError, NotFoundError, UsageError
from rune.host.paths import storable_path
from rune.records.record import to_builtins
from rune.surface.commands.command import CommandCall, wrong_usage
from rune.surface.commands.completion import Completion
from rune.surface.export_file import path_in, write_new
from rune.surface.results import WIDTH, CommandResult
from rune.surface.rows import CallRow
from rune.surface.sizes import counted, size_text
from rune.surface.views import Views
from rune.text.fitting import foreign

MOST_LINES: Final = 400
"""So many lines of an output are shown at once."""
_MOST_CHARACTERS: Final = 200_000  # a line may be all of an output
_DIGITS: Final = 12  # as a result names it to the model
_FEWEST: Final = 4
_HEX: Final = frozenset("0123456789abcdef")
_NONE: Final = "no output of this conversation is kept: the model was given the whole of each"


class KeptOutput(msgspec.Struct, frozen=True, kw_only=True):
    """An output in the list: the first digits of its id, the call it is of (foreign text), its size in bytes; None
    where it is not there any more, `why` says so.
    """

    id: str
    tool: str
    effect: str
    size: int | None
    why: str = ""


class ArtifactCommand:
    """Lists them, shows one, or writes one into a new file, whole."""

    name = "artifact"
    usage = "/artifact [ID [FILE]]"
    summary = "outputs that were too long for the model; with ID: show one; with FILE: write it there"

    def __init__(self, views: Views) -> None:
        self._views = views

    async def run(self, call: CommandCall) -> CommandResult:
        """Do it. Raises UsageError for an id of no output or of several and for a file that is there, NotFoundError
        for an output that was erased, EvidenceTamperedError, StorageError.
        """
        calls = await self._calls(call)
        named, _, file = (part.strip() for part in call.argument.partition(" "))
        if not named:
            return _listed([await self._row(each) for each in calls.values()])
        output = self._resolved(named, calls)
        data = await self._views.evidence(output)
        if file:
            path = await asyncio.to_thread(path_in, call.folder, file)
            await asyncio.to_thread(write_new, path, data)
            shown = storable_path(path)
            return CommandResult(
                text=f"{size_text(len(data))} written to {shown}", data={"id": output, "file": shown, "size": len(data)}
            )
        return _shown(output, calls[output], data)

    async def complete(self, call: CommandCall) -> Sequence[Completion]:
        """Return the ids of the outputs, the newest first; nothing once a file is being typed."""
        if " " in call.argument:
            return ()
        calls = await self._calls(call)
        return tuple(Completion(text=_short(output), note=_about(calls[output])) for output in reversed(calls))

    async def _calls(self, call: CommandCall) -> dict[str, CallRow]:
        """Return the calls whose output is kept by the id of that, the oldest first; of two alike the newer."""
        if call.conversation_id is None:
            return {}
        rows = await self._views.tool_results(call.conversation_id)
        return {row.output: row for row in rows if row.output is not None}

    async def _row(self, row: CallRow) -> KeptOutput:
        output, size, why = row.output or "", None, ""
        try:
            size = len(await self._views.evidence(output))
        except NotFoundError:
            why = "not kept any more"
        except EvidenceTamperedError:
            why = "damaged"
        return KeptOutput(id=_short(output), tool=row.name, effect=row.effect, size=size, why=why)

    def _resolved(self, named: str, calls: dict[str, CallRow]) -> str:
        digits = named.lower().removeprefix("sha256:").rstrip(".…")
        if len(digits) < _FEWEST or not _HEX.issuperset(digits):
            raise wrong_usage(
                self, f"{named[:80]!r} is no id of an output: it begins with {_FEWEST} hex digits or more"
            )
        found = [output for output in calls if output.removeprefix("sha256:").startswith(digits)]
        if not found:
            raise UsageError(
                f"no output of this conversation has an id that begins with {digits[:_DIGITS]}",
                hint="/artifact lists those that are kept.",
            )
        if len(found) > 1:
            raise UsageError(
                f"{digits} is the beginning of {len(found)} ids", hint="Give more digits; /artifact lists them."
            )
        return found[0]


def _listed(rows: Sequence[KeptOutput]) -> CommandResult:
    data = {"artifacts": [to_builtins(row) for row in rows]}
    if not rows:
        return CommandResult(text=_NONE, data=data)
    lines: list[str] = []
    for row in rows:
        end = f"  {size_text(row.size)}" if row.size is not None else f"  {row.why}"
        head = f"{row.id}  "
        lines.append(head + foreign(f"{row.tool} {row.effect}".strip(), WIDTH - len(head) - len(end)) + end)
    lines.append("/artifact ID shows one, /artifact ID FILE writes it into a new file")
    return CommandResult(text="\n".join(lines), data=data)


def _shown(output: str, row: CallRow, data: bytes) -> CommandResult:
    text = data.decode("utf-8", "replace")
    lines = text.removesuffix("\n").splitlines() if text else []
    shown = "\n".join(lines[:MOST_LINES])
    said = [f"{_short(output)}, {_about(row)}: {size_text(len(data))}, {counted(len(lines), 'line')}"]
    said += [shown[:_MOST_CHARACTERS]] if shown else []
    if len(shown) > _MOST_CHARACTERS:
        said.append(f"... cut here; /artifact {_short(output)} FILE writes all of it into a new file")
    elif len(lines) > MOST_LINES:
        rest = counted(len(lines) - MOST_LINES, "more line")
        said.append(f"... {rest}; /artifact {_short(output)} FILE writes all of it into a new file")
    facts = {"id": output, "tool": row.name, "effect": row.effect, "size": len(data), "text": text}
    return CommandResult(text="\n".join(said), data=facts)


def _short(output: str) -> str:
    return output.removeprefix("sha256:")[:_DIGITS]


def _about(row: CallRow) -> str:
    return " ".join(f"{row.name} {row.effect}".split())
