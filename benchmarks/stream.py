"""What a streamed answer costs: 5,000 tokens at full speed from a loopback server, through a whole turn.

Bar: 0.5 s of CPU on a quiet machine. The floor is httpx alone reading the same bytes. The server is
a process of its own, so that only this process's CPU counts.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

import httpx
from _measure import Bar, best_ratio, figures, fingerprint, report, wants_json
from _server import server

from rune.bootstrap import build
from rune.turn.events import TextDelta
from rune.turn.request import TurnRequest

TOKENS = 5_000
RUNS = 3
BATCHES = 5
QUIET_SECONDS = 0.5


async def _bare(client: httpx.AsyncClient, url: str) -> float:
    body = {"model": "bench:latest", "messages": [{"role": "user", "content": "go"}], "stream": True}
    began = time.process_time()
    async with client.stream("POST", f"{url}/api/chat", json=body) as response:
        async for _ in response.aiter_bytes():
            pass
    return time.process_time() - began


async def _stalls(stop: asyncio.Event, into: list[float]) -> None:
    """Note how late the event loop comes back from a sleep of a millisecond, in milliseconds."""
    while not stop.is_set():
        began = time.perf_counter()
        await asyncio.sleep(0.001)
        into.append((time.perf_counter() - began) * 1000 - 1)


async def _measure(url: str, folder: Path) -> tuple[list[list[tuple[float, float]]], list[float]]:
    environ = {"RUNE_HOME": str(folder / "home"), "OLLAMA_HOST": url, "PATH": ""}
    services = build(environ, surface_kind="headless")
    await services.start()
    stop, stalls = asyncio.Event(), list[float]()

    async def turn() -> float:
        began = time.process_time()
        deltas = 0
        async for event in services.surface.operator.send_task(TurnRequest(text="go", folder=str(folder))):
            deltas += isinstance(event, TextDelta)
        if deltas < TOKENS // 2:
            raise RuntimeError(f"only {deltas} deltas came")
        return time.process_time() - began

    try:
        async with httpx.AsyncClient(trust_env=False) as client:
            await turn()  # imports, the first load of the window, the client
            batches = [[(await _bare(client, url), await turn()) for _ in range(RUNS)] for _ in range(BATCHES)]
            watching = asyncio.create_task(_stalls(stop, stalls))
            await turn()
            stop.set()
            await watching
    finally:
        await services.close()
    return batches, stalls


def main() -> int:
    """Measure, print, and return the exit code."""
    as_json = wants_json(__doc__ or "")
    with tempfile.TemporaryDirectory() as folder, server(Path(folder), {"text": "word " * TOKENS}) as url:
        batches, late = asyncio.run(_measure(url, Path(folder)))
    floor = figures("httpx alone", "ms CPU", [pair[0] * 1000 for batch in batches for pair in batch])
    turn = figures("a whole turn", "ms CPU", [pair[1] * 1000 for batch in batches for pair in batch])
    stalls = figures("event loop late by", "ms", late)
    bars = [
        Bar(what="times httpx alone", limit=10, seen=best_ratio(batches), holds=None),
        Bar(what="seconds of CPU, p50", limit=QUIET_SECONDS, seen=turn.p50 / 1000, holds=None),
    ]
    facts = {**fingerprint(("httpx", "msgspec")), "answer": f"{TOKENS:,} tokens"}
    return report("stream", [floor, turn, stalls], bars, facts=facts, as_json=as_json)


if __name__ == "__main__":
    sys.exit(main())
