"""What does not fit is said with its numbers, and nothing is sent."""

from pathlib import Path

from rune.canaries.claim import alone, expect, scripted_services
from rune.errors import ContextOverflowError
from rune.models.scripted import ScriptedTransport, says
from rune.turn.events import TurnClosed
from rune.turn.request import TurnRequest

CLAIM = "a message larger than the window ends with both numbers, and no byte of it is sent"


async def check(folder: Path) -> None:
    """Send a message of far more tokens than any window of the scripted model."""
    transport = ScriptedTransport([says("never said")])
    services = await scripted_services(folder, transport)
    try:
        request = TurnRequest(text="words " * 200_000, folder=str(folder))
        closed = [event async for event in services.surface.operator.send_task(request)][-1]
    finally:
        await services.close()
    expect(isinstance(closed, TurnClosed), "the turn did not end")
    if isinstance(closed, TurnClosed):
        expect(closed.error_type == ContextOverflowError.__name__, f"it ended with {closed.error_type or 'an answer'}")
        expect("budget" in closed.error, f"the numbers are missing: {closed.error}")
    expect(not transport.requests, "the model was called")


if __name__ == "__main__":
    alone(CLAIM, check)
