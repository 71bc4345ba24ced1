"""What tests of erasing run in processes of their own: `python -m tests.surface.erasing_process WHAT ...`."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from rune.bootstrap import build
from rune.bootstrap.erasing import open_erasure
from rune.models.scripted import ScriptedTransport, says
from rune.turn.events import TurnClosed
from rune.turn.request import TurnRequest


def erase(home: Path, message: str, stage: str = "") -> None:
    """Erase, and be killed when that stage is about to begin."""

    def step(name: str) -> None:
        if stage and name.startswith(stage):
            os.kill(os.getpid(), signal.SIGKILL)

    erasure = open_erasure({"RUNE_HOME": str(home)}, step=step)
    with erasure.prepared([message]) as plan:
        erasure.erase(plan)


def breed() -> None:
    """Fork a child that erases for each line `HOME MESSAGE STAGE`. This process has no other thread."""
    for line in sys.stdin:
        folder, message, stage = line.split()
        child = os.fork()
        if child == 0:
            erase(Path(folder), message, stage)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        os.write(1, f"{os.waitstatus_to_exitcode(status)}\n".encode())


async def look_on(home: Path, query: str) -> None:
    """Keep the views open beside another process: for each line say what is found there, then take a turn."""
    transport = ScriptedTransport([says("yes, indeed")])
    services = build({"RUNE_HOME": str(home), "PATH": ""}, surface_kind="headless", transports=(transport,))
    await services.start()
    views = services.surface.views
    for _ in range(2):
        found = [len(await views.transcript(row.record.id)) for row in await views.conversations()]
        hits = await views.search(query)
        os.write(1, f"{sum(found)} {len(hits)}\n".encode())
        await asyncio.to_thread(sys.stdin.readline)
    request = TurnRequest(text="are you there?", folder="/")
    closed = [event async for event in services.surface.operator.send_task(request)][-1]
    os.write(1, f"{closed.stop_reason if isinstance(closed, TurnClosed) else 'open'}\n".encode())
    await services.close()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["erase", folder, message]:
            erase(Path(folder), message)
        case ["breed"]:
            breed()
        case ["look-on", folder, words]:
            asyncio.run(look_on(Path(folder), words))
        case other:
            raise SystemExit(f"what is {other}?")
