"""What the model saw can be rebuilt, byte for byte, from the trace."""

from pathlib import Path

from rune.canaries.claim import alone, expect, scripted_services
from rune.models.scripted import ScriptedTransport, says
from rune.turn.events import TurnClosed
from rune.turn.request import TurnRequest

CLAIM = "every prompt can be rebuilt byte for byte from its trace"


async def check(folder: Path) -> None:
    """Run three turns, and rebuild what each of them sent."""
    transport = ScriptedTransport([says("the Danube"), says("Füße \U0001f98a"), says("yes")])
    services = await scripted_services(folder, transport)
    try:
        conversation_id = None
        for text in ("name a river", "say \u2028 something odd", "sure?"):
            request = TurnRequest(text=text, folder=str(folder), conversation_id=conversation_id)
            closed = [event async for event in services.surface.operator.send_task(request)][-1]
            conversation_id = closed.conversation_id if isinstance(closed, TurnClosed) else None
        traces = await services.surface.views.traces(limit=10)
        rebuilt = [await services.surface.views.prompts(trace) for trace in reversed(traces)]
    finally:
        await services.close()
    expect(len(rebuilt) == len(transport.requests), f"{len(rebuilt)} traces of {len(transport.requests)} calls")
    for prompts, request in zip(rebuilt, transport.requests, strict=True):
        expect(prompts[0].messages == request.messages, "a rebuilt prompt is not what was sent")


if __name__ == "__main__":
    alone(CLAIM, check)
