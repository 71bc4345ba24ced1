"""What is said piece by piece."""

import msgspec

from rune.turn.events import TextDelta, ThinkingDelta, TurnEvent


def joined(events: list[TurnEvent]) -> list[TurnEvent]:
    """Return the events with what was said in a row put into one."""
    found: list[TurnEvent] = []
    run: list[TextDelta | ThinkingDelta] = []
    for event in [*events, None]:
        if run and type(event) is not type(run[0]):
            text, pieces = "".join(piece.text for piece in run), sum(piece.pieces for piece in run)
            found.append(msgspec.structs.replace(run[0], text=text, pieces=pieces))
            run = []
        if isinstance(event, TextDelta | ThinkingDelta):
            run.append(event)
        elif event is not None:
            found.append(event)
    return found
