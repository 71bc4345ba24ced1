"""The whole product below the surfaces, on a real home, with a scripted model."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from rune.bootstrap import Services, build
from rune.models.scripted import Answers, ScriptedTransport
from rune.records.approvals import Decision
from rune.records.envelope import EventEnvelope
from rune.tools.executor import Tool
from rune.turn.events import TurnClosed, TurnEvent
from rune.turn.request import TurnRequest


class Rig:
    """Started services, the model behind them, and short ways to use them."""

    def __init__(self, services: Services, model: ScriptedTransport, folder: Path) -> None:
        self.services = services
        self.model = model
        self.folder = folder
        self.operator = services.surface.operator

    def request(self, text: str = "name a river", conversation_id: str | None = None) -> TurnRequest:
        return TurnRequest(text=text, folder=str(self.folder), conversation_id=conversation_id)

    async def turn(self, text: str = "name a river", conversation_id: str | None = None) -> list[TurnEvent]:
        return [event async for event in self.operator.send_task(self.request(text, conversation_id))]

    async def say(self, text: str = "name a river", conversation_id: str | None = None) -> TurnClosed:
        return closing(await self.turn(text, conversation_id))

    async def answered(self, approval_id: str, decision: Decision = "allow", **how: Any) -> list[TurnEvent]:
        """Answer a question, and return what the turn shows that goes on."""
        return [event async for event in self.operator.answer(approval_id, decision, **how)]

    def facts(self) -> list[EventEnvelope]:
        """Return the events of conversations, in order."""
        events = self.services.surface.views.events(limit=10_000)
        return [event for event in events if event.partition_key.startswith("cnv_")]

    def names(self) -> list[str]:
        return [event.event_type for event in self.facts()]


def closing(events: Sequence[TurnEvent]) -> TurnClosed:
    last = events[-1]
    assert isinstance(last, TurnClosed)
    return last


async def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    """Let everything else run until the condition holds; fails after a deadline."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, "it never came"
        await asyncio.sleep(0)


@asynccontextmanager
async def rig(
    home: Path, answers: Answers, *, model: ScriptedTransport | None = None, tools: Sequence[Tool] = ()
) -> AsyncGenerator[Rig]:
    """Build, start and in the end close everything; `home` may have been used before."""
    model = model or ScriptedTransport(answers)
    services = build({"RUNE_HOME": str(home), "PATH": ""}, surface_kind="headless", transports=(model,), tools=tools)
    try:
        await services.start()
        folder = home.parent / "project"
        folder.mkdir(exist_ok=True)
        yield Rig(services, model, folder)
    finally:
        await services.close()
