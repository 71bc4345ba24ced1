"""What a person erased is gone, wherever it was kept."""

import asyncio
import json
from pathlib import Path

from rune.bootstrap.erasing import open_erasure
from rune.canaries.claim import alone, expect, scripted_services
from rune.models.scripted import ScriptedTransport, says
from rune.surface.prompt_history import PromptHistory
from rune.turn.events import TurnClosed
from rune.turn.request import TurnRequest

CLAIM = "what was erased is in no file of the home"

_WORDS = 'the Füße of the \U0001f98a are "wet"\nand nobody may know'


async def check(folder: Path) -> None:
    """Say something that leaves its traces everywhere, erase the conversation, and look into every file."""
    home = folder / "home"
    services = await scripted_services(folder, ScriptedTransport([says("I will keep it to myself")]))
    try:
        request = TurnRequest(text=_WORDS, folder=str(folder))
        closed = [event async for event in services.surface.operator.send_task(request)][-1]
    finally:
        await services.close()
    if not isinstance(closed, TurnClosed):
        expect(condition=False, seen="the turn did not end")
        return
    PromptHistory(home / "state").add(str(folder), _WORDS)
    expect(bool(_files_with(home)), "it was in no file before")
    left = await asyncio.to_thread(_erase, home, closed.conversation_id)
    expect(not left, f"Rune found it in {', '.join(left)}")
    found = _files_with(home)
    expect(not found, f"it is in {', '.join(found)}")


def _erase(home: Path, conversation_id: str) -> tuple[str, ...]:
    erasure = open_erasure({"RUNE_HOME": str(home)})
    with erasure.prepared([conversation_id]) as plan:
        return erasure.erase(plan).left


def _files_with(home: Path) -> list[str]:
    escaped = (json.dumps(_WORDS, ensure_ascii=ascii_only)[1:-1].encode() for ascii_only in (True, False))
    forms = (_WORDS.encode(), *escaped)
    files = (path for path in sorted(home.rglob("*")) if path.is_file())
    return [path.name for path in files if any(form in path.read_bytes() for form in forms)]


if __name__ == "__main__":
    alone(CLAIM, check)
