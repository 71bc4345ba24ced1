"""Tools for tests of the loop: real ones, small enough to say what they did."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from rune.errors import InvalidArgumentsError, ToolError
from rune.host.paths import storable_path
from rune.records.tools import FileTouch, ToolCall, ToolSchema
from rune.text.safe_text import SafeText
from rune.tools.executor import Done, Plan, ToolKind, Watch
from rune.tools.policy import rule_for
from rune.tools.schema import Arguments, arguments_of, schema_of
from rune.tools.workplace import Workplace


class Named(Arguments, frozen=True, kw_only=True):
    """One word."""

    name: Annotated[str, msgspec.Meta(examples=["danube"])]


class Noted(Arguments, frozen=True, kw_only=True):
    """A file, and what shall stand in it."""

    path: Annotated[str, msgspec.Meta(examples=["notes.txt"])]
    text: str


class Look:
    """Reads: says the name that it was given, or what `says` holds for it; an Event in `waits` is waited for."""

    kind: ToolKind = "read"
    schema: ToolSchema = schema_of("look", "Look something up.", Named)

    def __init__(self, says: Mapping[str, str] | None = None, waits: Mapping[str, asyncio.Event] | None = None) -> None:
        self.looked: list[str] = []
        self.begun: list[str] = []
        self._says = says or {}
        self._waits = waits or {}

    async def prepare(self, arguments: Mapping[str, Any], place: Workplace) -> Plan:
        given = arguments_of(Named, arguments, "look")
        return Plan(effect=given.name, state=given)

    async def execute(self, plan: Plan, place: Workplace, watch: Watch) -> Done:
        name = plan.state.name
        self.begun.append(name)
        if name in self._waits:
            await self._waits[name].wait()
        self.looked.append(name)
        if name.startswith("bad"):
            raise InvalidArgumentsError(f"there is no {name}")
        return Done(text=self._says.get(name, f"it is {name}"), summary=f"found {name}")


class Note:
    """Edits: writes a file whole."""

    kind: ToolKind = "edit"
    schema: ToolSchema = schema_of("note", "Write a file.", Noted)

    def __init__(self, asks: str = "") -> None:
        self.written: list[str] = []
        self._asks = asks

    async def prepare(self, arguments: Mapping[str, Any], place: Workplace) -> Plan:
        given = arguments_of(Noted, arguments, "note")
        target = place.files.target(given.path)
        before = target.facts.sha256 if target.facts is not None else None
        return Plan(
            effect=f"{given.path} +1 -0",
            detail=f"--- {given.path}\n+{given.text}",
            preconditions={"path": storable_path(target.path), "before": before or "absent"},
            touches=(target.path,),
            asks=self._asks,
            rule=rule_for(target.path, place.folder),
            state=(target.path, given.text, before),
        )

    async def execute(self, plan: Plan, place: Workplace, watch: Watch) -> Done:
        path, text, before = plan.state
        facts = place.files.replace(str(path), text.encode(), before)
        self.written.append(text)
        return Done(
            text=f"written: {place.named(path)}",
            summary="+1 -0",
            files=(FileTouch(path=storable_path(path), before=before, after=facts.sha256),),
        )


class Act:
    """Runs: counts how often, and ends when it is told to, or fails with `fails`."""

    kind: ToolKind = "run"
    schema: ToolSchema = schema_of("act", "Do something.", Named)

    def __init__(self, *, waits: bool = False, fails: str = "", code: int = 0) -> None:
        self.acted: list[str] = []
        self.began = asyncio.Event()
        self.stopped = False
        self._waits = waits
        self._fails = fails
        self._code = code

    async def prepare(self, arguments: Mapping[str, Any], place: Workplace) -> Plan:
        given = arguments_of(Named, arguments, "act")
        return Plan(effect=given.name, detail=f"act {given.name}", preconditions={"what": given.name}, state=given)

    async def execute(self, plan: Plan, place: Workplace, watch: Watch) -> Done:
        self.acted.append(plan.state.name)
        self.began.set()
        watch.show(SafeText("begun"))
        if self._waits:
            await watch.stop.wait()
            self.stopped = True
            return Done(text="it was stopped", summary="stopped", outcome="cancelled")
        if self._fails:
            raise ToolError(self._fails)
        outcome = "failed" if self._code else "ok"
        return Done(text=f"exit code {self._code}", summary="ran", outcome=outcome, exit_code=self._code)


def call(name: str, number: int = 1, /, **arguments: Any) -> ToolCall:
    return ToolCall(id=f"call_{number}", name=name, arguments=arguments)


def sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def names(calls: Sequence[ToolCall]) -> list[str]:
    return [each.name for each in calls]


class Offered:
    """Any schema, and a word as its result."""

    kind: ToolKind = "read"

    def __init__(self, schema: ToolSchema) -> None:
        self.schema = schema

    async def prepare(self, arguments: Mapping[str, Any], place: Workplace) -> Plan:
        return Plan(effect="")

    async def execute(self, plan: Plan, place: Workplace, watch: Watch) -> Done:
        return Done(text="read", summary="read")
