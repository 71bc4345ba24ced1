"""A real workplace for tests of tools, in folders of the test's own."""

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rune.host.clock import SystemClock
from rune.host.environment import command_environment
from rune.host.paths import real_path
from rune.store.evidence_store import EvidenceStore
from rune.text.masking import Masker
from rune.text.safe_text import SafeText
from rune.tools.executor import Done, Plan, Tool, Watch
from rune.tools.files import WorkspaceFiles
from rune.tools.places import Places
from rune.tools.undo import UndoStore
from rune.tools.workplace import Workplace


def workplace(base: Path, *, secrets: Mapping[str, str] | None = None) -> Workplace:
    """Return a workplace on `base`/work (made when missing); Rune's own folder is `base`/home."""
    folder, home = (base / "work").resolve(), (base / "home").resolve()
    folder.mkdir(exist_ok=True)
    home.mkdir(exist_ok=True)
    places = Places(reading=(folder,), writing=(folder,), own=(home,))
    evidence = EvidenceStore(home / "evidence", SystemClock())

    async def keep(data: bytes, source: str) -> str:
        return (await asyncio.to_thread(evidence.put, data, source=source)).hash

    async def fetch(digest: str) -> bytes:
        return await asyncio.to_thread(evidence.get, digest)

    return Workplace(
        conversation_id="cnv_01kb9y3c7m0000000000000001",
        folder=folder,
        places=places,
        files=WorkspaceFiles(folder, places),
        environment=command_environment(os.environ, writable=[folder]),
        masker=Masker((secrets or {}).items()),
        undo=UndoStore(home / "undo"),
        keep=keep,
        fetch=fetch,
        seen={},
    )


def watch(show: Callable[[SafeText], None] = lambda _: None, stop: asyncio.Event | None = None) -> Watch:
    """Return a watch that nobody looks at."""
    return Watch(stop=stop or asyncio.Event(), show=show)


async def plan(tool: Tool, place: Workplace, **arguments: Any) -> Plan:
    """Prepare a call."""
    return await tool.prepare(arguments, place)


async def done(tool: Tool, place: Workplace, **arguments: Any) -> Done:
    """Prepare a call and carry it out, as the loop does; what it saw is known afterwards."""
    result = await tool.execute(await tool.prepare(arguments, place), place, watch())
    for touch in result.files:
        if touch.after is None:
            place.seen.pop(real_path(touch.path), None)
        else:
            place.seen[real_path(touch.path)] = touch.after
    return result
