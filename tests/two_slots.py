"""A home in which two Runes have written side by side, so that each has a slot, and damage in the second one."""

from pathlib import Path

from rune.bootstrap import Services, build
from rune.models.scripted import ScriptedTransport, says
from rune.turn.events import TurnClosed
from rune.turn.request import TurnRequest
from tests.store.journals import lines_of, segment

OTHER = "w001-000001.jsonl"


def a_rune(home: Path) -> Services:
    """Return the services of one on this home, not started yet."""
    transport = ScriptedTransport([says("the Danube")] * 3)
    return build({"RUNE_HOME": str(home), "PATH": ""}, surface_kind="headless", transports=(transport,))


async def say(services: Services, text: str) -> str:
    """Say something in a new conversation; returns how the turn ended."""
    request = TurnRequest(text=text, folder="/")
    last = [event async for event in services.surface.operator.send_task(request)][-1]
    return last.stop_reason if isinstance(last, TurnClosed) else ""


async def two_slots(home: Path) -> None:
    """Let two Runes write side by side, so that each has a slot."""
    first, second = a_rune(home), a_rune(home)
    for services in (first, second):
        await services.start()
        assert await say(services, "name a river") == "answered"
    for services in (first, second):
        await services.close()


def damage(home: Path) -> None:
    """Damage a line in the middle of the second slot."""
    lines = lines_of(segment(home, OTHER))
    lines[4] = b"X" + lines[4][1:]
    segment(home, OTHER).write_bytes(b"".join(lines))
