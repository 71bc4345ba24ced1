"""/model: which models there are, and which one answers."""

from collections.abc import Sequence

from rune.errors import ModelError
from rune.records.record import to_builtins
from rune.surface.commands.command import CommandCall
from rune.surface.commands.completion import Completion
from rune.surface.model_list import is_named, size_text, where_text, window_text
from rune.surface.results import CommandResult, table
from rune.surface.rows import ModelRow
from rune.surface.views import Views
from rune.turn.operator import RuneOperator


class ModelCommand:
    """Lists the models, or makes one of them answer from the next message on. `configured` is the name in the
    settings, "" when there is none.
    """

    name = "model"
    usage = "/model [NAME]"
    summary = "list the models, or choose the one that answers from now on"

    def __init__(self, operator: RuneOperator, views: Views, *, configured: str) -> None:
        self._operator = operator
        self._views = views
        self._configured = configured

    async def run(self, call: CommandCall) -> CommandResult:
        """List or choose. Raises what choosing for a turn raises, and LeaseHeldError."""
        if not call.argument:
            return await self._list(call)
        info = await self._operator.choose_model(call.conversation_id, call.argument)
        begins = "the first message" if call.conversation_id is None else "the next message"
        where = "; it is remote: what you send leaves this machine" if info.remote else ""
        return CommandResult(
            text=f"{info.name} answers from {begins} on{where}",
            data={"model": info.name, "provider": info.provider, "remote": info.remote},
            model=info.name,
        )

    async def complete(self, call: CommandCall) -> Sequence[Completion]:
        """Return the models' names, those that may be used first."""
        del call
        rows, _ = await self._views.model_rows()
        usable_first = sorted(rows, key=lambda row: bool(row.refused))
        return tuple(Completion(text=row.name, note=_note(row)) for row in usable_first)

    async def _list(self, call: CommandCall) -> CommandResult:
        rows, failures = await self._views.model_rows()
        used = self._configured
        if call.conversation_id is not None:
            used = (await self._views.conversation(call.conversation_id)).model or used
        current = next((row.name for row in rows if is_named(row, used)), None)
        data = {
            "models": [to_builtins(row) for row in rows],
            "in_use": used or None,
            "unseen": [failure.message for failure in failures],
        }
        return CommandResult(text=_text(rows, failures, used=used, current=current), data=data)


def _text(rows: Sequence[ModelRow], failures: Sequence[ModelError], *, used: str, current: str | None) -> str:
    lines: list[str] = []
    if rows:
        cells = [
            (
                f"{'*' if row.name == current else ' '} {row.name}",
                size_text(row),
                window_text(row),
                where_text(row),
                row.refused,
            )
            for row in rows
        ]
        lines = [table(cells, ("  model", "size", "window", "where", "")), ""]
    lines += [f"not seen: {failure.message}" for failure in failures]
    if used and current is None:
        lines.append(f"{used} is chosen and cannot be seen now")
    elif current is not None:
        lines.append("* answers the next message; /model NAME chooses another one")
    elif rows:
        lines.append("none is chosen: the first that can be used answers; /model NAME chooses")
    else:
        lines.append("there is no model: start Ollama and pull one, or run `rune models fetch-embedded`")
    return "\n".join(lines)


def _note(row: ModelRow) -> str:
    facts = [size_text(row) if row.size else "", f"window {window_text(row)}" if row.window else "", where_text(row)]
    return ", ".join(fact for fact in [*facts, row.refused] if fact)
