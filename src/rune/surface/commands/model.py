"""/model: which models there are, which one answers, and what else is done with them."""

from collections.abc import Sequence
from typing import Final

from rune.errors import ModelError, ModelNotFoundError, UsageError
from rune.host.clock import Clock
from rune.records.models import ActionProtocol
from rune.records.record import to_builtins
from rune.surface.commands.command import CommandCall
from rune.surface.commands.completion import Completion
from rune.surface.model_list import is_named, size_text, where_text, window_text
from rune.surface.model_text import NO_MODEL, details_text, model_table, removed_text
from rune.surface.models import Models
from rune.surface.results import WIDTH, CommandResult, ModelWork
from rune.surface.rows import ModelRow
from rune.surface.views import Views
from rune.turn.operator import RuneOperator

_VERBS: Final = {
    "pull": "fetch a model",
    "rm": "remove one from its server's disk",
    "show": "everything about one",
    "probe": "measure how it acts better",
    "protocol": "fix how it acts: native, constrained or auto",
}
_USAGE: Final = "/model [NAME], /model pull|rm|show|probe NAME, /model protocol NAME native|constrained|auto"
_PROTOCOLS: Final[dict[str, ActionProtocol | None]] = {"native": "native", "constrained": "constrained", "auto": None}


class ModelCommand:
    """Lists the models, makes one of them answer from the next message on, fetches, removes, shows, measures.

    `configured` is the name in the settings, "" when there is none. A first word of `_VERBS` is one only with a name
    behind it: no model has a blank in its name, so one that is called `pull` can still be chosen.
    """

    name = "model"
    usage = "/model [[VERB] NAME]"
    summary = "list the models, or choose the one that answers from now on; verbs: pull, rm, show, probe, protocol"

    def __init__(self, operator: RuneOperator, views: Views, models: Models, *, configured: str, clock: Clock) -> None:
        self._operator = operator
        self._views = views
        self._models = models
        self._configured = configured
        self._clock = clock

    async def run(self, call: CommandCall) -> CommandResult:
        """Do it; what takes long comes back as what the surface runs. Raises what choosing for a turn raises, what
        `Models` raises, UsageError and LeaseHeldError.
        """
        match call.argument.split():
            case []:
                return await self._list(call)
            case [name]:
                return await self._choose(call, name)
            case ["protocol", name, how] if how in _PROTOCOLS:
                return await self._fix(name, how)
            case [verb, name] if verb in _VERBS and verb != "protocol":
                return await self._do(verb, name)
            case ["protocol", *_]:
                raise _refused("protocol takes the name of a model, and native, constrained or auto")
            case [verb, *_] if verb in _VERBS:
                raise _refused(f"{verb} takes the name of one model")
            case _:
                raise _refused("the name of a model has no blanks")

    async def complete(self, call: CommandCall) -> Sequence[Completion]:
        """Return the models' names, those that may be used first, and what else can be done with one."""
        rows, _ = await self._models.rows()
        usable_first = sorted(rows, key=lambda row: bool(row.refused))
        verb = call.argument.split(maxsplit=1)[0] if " " in call.argument else ""
        before = f"{verb} " if verb in _VERBS and verb != "pull" else ""
        names = tuple(Completion(text=f"{before}{row.name}", note=_note(row)) for row in usable_first)
        return names if before else (*names, *(Completion(text=word, note=note) for word, note in _VERBS.items()))

    async def _choose(self, call: CommandCall, name: str) -> CommandResult:
        try:
            info = await self._operator.choose_model(call.conversation_id, name)
        except ModelNotFoundError:
            if name in _VERBS:
                raise _refused(f"{name} takes the name of a model") from None
            raise
        begins = "the first message" if call.conversation_id is None else "the next message"
        where = "; it is remote: what you send leaves this machine" if info.remote else ""
        return CommandResult(
            text=f"{info.name} answers from {begins} on{where}",
            data={"model": info.name, "provider": info.provider, "remote": info.remote},
            model=info.name,
        )

    async def _do(self, verb: str, name: str) -> CommandResult:
        match verb:
            case "pull":
                return CommandResult(text="", data={}, runs=ModelWork(kind="pull", model=name))
            case "probe":
                return CommandResult(text="", data={}, runs=ModelWork(kind="probe", model=name))
            case "rm":
                removed = await self._models.remove(name)
                return CommandResult(text=removed_text(removed), data=to_builtins(removed))
            case _:
                details = await self._models.show(name)
                return CommandResult(text=details_text(details, self._clock.now_ms()), data=to_builtins(details))

    async def _fix(self, name: str, how: str) -> CommandResult:
        details = await self._models.fix_protocol(name, _PROTOCOLS[how])
        acts = details.row.protocol
        why = "" if how == acts else f" ({details.protocol_why})"
        text = f"{details.row.name} acts by the {acts} protocol from now on{why}"
        return CommandResult(text=text, data=to_builtins(details))

    async def _list(self, call: CommandCall) -> CommandResult:
        rows, failures = await self._models.rows()
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


def _refused(problem: str) -> UsageError:
    return UsageError(f"/model: {problem}", hint=f"Usage: {_USAGE}")


def _text(rows: Sequence[ModelRow], failures: Sequence[ModelError], *, used: str, current: str | None) -> str:
    lines: list[str] = []
    if rows:
        lines = [model_table(rows, WIDTH, used=current or "", marked=True), ""]
    for failure in failures:
        lines.append(f"not seen: {failure.message}")
        if failure.hint:
            lines.append(f"          {failure.hint}")
    if used and current is None:
        lines.append(f"{used} is chosen and cannot be seen now")
    elif current is not None:
        lines.append("* answers the next message; /model NAME chooses another one")
    elif rows:
        lines.append("none is chosen: the first that can be used answers; /model NAME chooses")
    else:
        lines.append(NO_MODEL)
    return "\n".join(lines)


def _note(row: ModelRow) -> str:
    facts = [size_text(row) if row.size else "", f"window {window_text(row)}" if row.window else "", where_text(row)]
    return ", ".join(fact for fact in [*facts, row.refused] if fact)
