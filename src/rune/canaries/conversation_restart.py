"""A conversation goes on in another process."""

import json
from pathlib import Path

from rune.canaries.claim import alone, expect, scripted_services
from rune.models.scripted import ScriptedTransport, says
from rune.turn.events import TurnClosed
from rune.turn.request import TurnRequest

CLAIM = "a conversation goes on after a restart with every word of it"


async def check(folder: Path) -> None:
    """Say something, close everything, open it again, and look at what the model gets."""
    first = await scripted_services(folder, ScriptedTransport([says("the Danube")]))
    try:
        request = TurnRequest(text="name a river", folder=str(folder))
        closed = [event async for event in first.surface.operator.send_task(request)][-1]
    finally:
        await first.close()
    if not isinstance(closed, TurnClosed):
        expect(condition=False, seen="the first turn did not end")
        return
    transport = ScriptedTransport([says("the Rhine")])
    second = await scripted_services(folder, transport)
    try:
        request = TurnRequest(text="another one", folder=str(folder), conversation_id=closed.conversation_id)
        async for _ in second.surface.operator.send_task(request):
            pass
    finally:
        await second.close()
    sent = [message["content"] for message in json.loads(transport.requests[0].messages)]
    expect(sent[1:] == ["name a river", "the Danube", "another one"], f"the model got {sent[1:]}")


if __name__ == "__main__":
    alone(CLAIM, check)
