"""Each fact of a turn is written once."""

from collections import Counter
from pathlib import Path

from rune.canaries.claim import alone, expect, scripted_services
from rune.models.scripted import ScriptedTransport, says
from rune.turn.request import TurnRequest

CLAIM = "each fact of a turn stands in the journal exactly once"

_EXPECTED = {
    "conversation.created": 1,
    "task.created": 1,
    "task.transition": 2,
    "turn.started": 1,
    "user.message": 1,
    "response.generated": 1,
    "inference.traced": 1,
    "turn.finished": 1,
}


async def check(folder: Path) -> None:
    """Run one turn and count what the journal says about its conversation."""
    services = await scripted_services(folder, ScriptedTransport([says("the Danube")]))
    try:
        async for _ in services.surface.operator.send_task(TurnRequest(text="name a river", folder=str(folder))):
            pass
        events = list(services.surface.views.events(limit=1000))
    finally:
        await services.close()
    seen = Counter(event.event_type for event in events if event.partition_key.startswith("cnv_"))
    expect(dict(seen) == _EXPECTED, f"the journal holds {dict(seen)}")
    places = [event.pseq for event in events if event.partition_key.startswith("cnv_")]
    expect(places == list(range(1, len(places) + 1)), f"their places are {places}")


if __name__ == "__main__":
    alone(CLAIM, check)
