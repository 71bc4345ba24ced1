"""One Rune of the campaign that kills: it recovers what the one before left, answers or asks, and dies where it is
told to. It runs in a forked child; what it says goes line by line to its parent.
"""

import asyncio
import contextlib
import json
import os
import random
import signal
import threading
from pathlib import Path
from typing import Any, NamedTuple

from rune.bootstrap import Services, build
from rune.bootstrap import examine as checks_of
from rune.errors import RuneError, UsageError
from rune.models.scripted import ScriptedTransport, Step, says
from rune.models.transport import Capability, ChatRequest, ModelInfo
from rune.records.tools import ToolCall
from rune.surface.doctor import examine
from rune.tools.executors.edit_file import EditFile
from rune.tools.executors.read_file import ReadFile
from rune.tools.executors.run_command import RunCommand
from rune.turn.events import TurnClosed
from rune.turn.request import TurnRequest

WINDOW = 16_384
LOOKED_AT = frozenset({"journal", "evidence", "erasing", "views", "leases", "turns", "locks", "home", "permissions"})
"""What `rune doctor` says of the home; of models and of the machine a campaign says nothing."""


class Aim(NamedTuple):
    """Where a Rune dies: at the `number`-th write of an event (`how`: before, half, after), in the act of a command
    (`what` is "act"; before or after its effect), or after so many seconds (`what` is "time").
    """

    what: str
    how: str = "after"
    number: int = 1
    seconds: float = 0.0


NEVER = Aim("never")


class Places(NamedTuple):
    """Where a campaign's Runes work. `effects` lies outside of what the journal knows of."""

    home: Path
    folder: Path
    effects: Path

    @property
    def environ(self) -> dict[str, str]:
        return {"RUNE_HOME": str(self.home), "PATH": os.defpath}


class Life:
    """A Rune with a model of its own. `number` makes what it does unlike what any other does."""

    def __init__(self, places: Places, number: int, aim: Aim, out: int) -> None:
        self._places = places
        self._number = number
        self._aim = aim
        self._out = out
        self._calls = 0
        self._chance = random.Random(number)  # noqa: S311 a repeatable choice

    def say(self, word: str, text: str = "") -> None:
        os.write(self._out, f"{word} {text}\n".encode())

    async def live(self) -> None:
        """Start, answer what waits, have one turn, and end."""
        self._arm()
        able: frozenset[Capability] = frozenset({"chat", "tools"})
        info = ModelInfo(name="large", provider="scripted", capabilities=able, parameters="14B", context_length=WINDOW)
        model = ScriptedTransport(self._answer, models=[info], window=WINDOW)
        tools = (ReadFile(), EditFile(), RunCommand())
        services = build(self._places.environ, surface_kind="headless", transports=(model,), tools=tools)
        await services.start()
        self.say("recovered")
        await self._work(services)
        await self._shown(services)
        await services.close()
        self.say("ended")

    async def _work(self, services: Services) -> None:
        views, operator = services.surface.views, services.surface.operator
        for row in await views.pending_approvals():
            self.say("answers", row.id)
            if self._chance.random() < 0.15:
                continue  # the person writes a message instead
            decision = "deny" if self._chance.random() < 0.2 else "allow"
            await self._to_its_end(services, [each async for each in operator.answer(row.id, decision)][-1])
        found = await views.conversations()
        identity = found[0].record.id if found else None
        request = TurnRequest(
            text=f"task {self._number}",
            folder=str(self._places.folder),
            conversation_id=identity,
            permission=self._chance.choice(("ask", "edits")),
        )
        last = [each async for each in operator.send_task(request)][-1]
        conversation = last.conversation_id if isinstance(last, TurnClosed) else ""
        if self._chance.random() < 0.1:
            await operator.done(conversation)  # whatever waits for an answer is refused with it
            return
        await self._to_its_end(services, last)
        if self._chance.random() < 0.2:
            with contextlib.suppress(UsageError):  # nothing was changed
                await operator.undo(conversation)

    async def _to_its_end(self, services: Services, last: object) -> None:
        operator = services.surface.operator
        while isinstance(last, TurnClosed) and last.pending_approval is not None:
            decision = "deny" if self._chance.random() < 0.15 else "allow"
            last = [each async for each in operator.answer(last.pending_approval, decision)][-1]
        if not isinstance(last, TurnClosed) or last.error:
            self.say("fault", f"a turn ended badly: {last}")

    async def _shown(self, services: Services) -> None:
        views = services.surface.views
        for row in await views.conversations():
            for turn_id, end in (await views.ends(row.record.id)).items():
                self.say("shown", json.dumps([turn_id, list(end.may_have_run)]))

    def _answer(self, request: ChatRequest) -> list[Step]:
        messages: list[dict[str, Any]] = json.loads(request.messages)
        for fault in ill_formed(messages):
            self.say("fault", fault)
        newest = max(at for at, each in enumerate(messages) if each["role"] == "user")
        round_ = sum(each["role"] == "assistant" for each in messages[newest:])
        return says("" if round_ < 3 else "Done.", calls=self._round(round_))

    def _round(self, round_: int) -> list[ToolCall]:
        match round_:
            case 0:
                return [self._call("read_file", path=name) for name in ("a.txt", "b.txt")]
            case 1:
                now = (self._places.folder / "a.txt").read_text().splitlines()[0]
                edits = [{"search": now, "replace": f"{self._tag()}"}]
                reads = self._call("read_file", path="b.txt")
                return [reads, self._call("edit_file", path="a.txt", edits=edits), self._runs()]
            case 2:
                return [self._runs(), self._runs()]
            case _:
                return []

    def _call(self, name: str, /, **arguments: Any) -> ToolCall:
        self._calls += 1
        # A server's own ids come again in each answer; so do these.
        return ToolCall(id=f"call_{self._calls % 3}", name=name, arguments=arguments)

    def _runs(self) -> ToolCall:
        effect = f"echo {self._tag()} >> {self._places.effects}"
        death = f"kill -9 {os.getpid()}"
        if self._aim.what == "act":
            effect = f"{death}; {effect}" if self._aim.how == "before" else f"{effect}; {death}"
        return self._call("run_command", command=effect)

    def _tag(self) -> str:
        return f"life{self._number}call{self._calls}"

    def _arm(self) -> None:
        aim = self._aim
        if aim.what == "time":
            timer = threading.Timer(aim.seconds, os.kill, (os.getpid(), signal.SIGKILL))
            timer.daemon = True
            timer.start()
            return
        wanted, write, seen = f'"event_type":"{aim.what}"'.encode(), os.write, 0

        def written(descriptor: int, data: bytes, /) -> int:
            nonlocal seen
            seen += wanted in bytes(data)
            if wanted not in bytes(data) or seen != aim.number:
                return write(descriptor, data)
            if aim.how != "before":
                write(descriptor, data if aim.how == "after" else data[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
            return 0

        os.write = written  # the journal is written by nothing else; this process is about to die


def ill_formed(messages: list[dict[str, Any]]) -> list[str]:
    """Return what is wrong with a prompt: a call without a result behind it, a result of no call."""
    faults: list[str] = []
    due: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in due:
                faults.append(f"a result without its call was sent: {message}")
            else:
                due.remove(message["tool_call_id"])
            continue
        if due:
            faults.append(f"calls without results were sent: {due}, before {message}")
        due = [call["id"] for call in message.get("tool_calls", [])]
    return [*faults, *([f"the last calls have no results: {due}"] if due else [])]


def live(places: Places, number: int, aim: Aim, out: int) -> None:
    """Be one Rune, and die."""
    life = Life(places, number, aim, out)
    try:
        asyncio.run(life.live())
    except RuneError as error:
        life.say("fault", f"life {number} {aim}: {error!r} {error.hint}")


def inspect(places: Places, out: int) -> None:
    """Have `rune doctor` look, and say what it is not content with."""
    for finding in asyncio.run(examine(checks_of(places.environ))):
        if finding.state != "ok" and finding.name in LOOKED_AT:
            os.write(out, f"fault doctor: {finding.name}: {finding.detail}\n".encode())
