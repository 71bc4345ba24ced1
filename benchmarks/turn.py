"""From Enter to the first painted token: the real app, a loopback server that answers at once.

Bar: 35 ms on a quiet machine, warm (one kept-alive client, the model loaded). The floor is the same request by httpx
alone, up to its first bytes.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

import httpx
from _app import Sight, press, running_app, until
from _measure import Bar, best_ratio, figures, fingerprint, report, wants_json
from _server import server

RUNS = 6
BATCHES = 5
QUIET_MS = 35.0
TIMES_BARE = 25.0


async def _bare(client: httpx.AsyncClient, url: str) -> float:
    body = {"model": "bench:latest", "messages": [{"role": "user", "content": "go"}], "stream": True}
    began = time.perf_counter()
    async with client.stream("POST", f"{url}/api/chat", json=body) as response:
        async for _ in response.aiter_bytes():
            break
    return (time.perf_counter() - began) * 1000


async def _measure(url: str, folder: Path) -> list[list[tuple[float, float]]]:
    environ = {"RUNE_HOME": str(folder / "home"), "OLLAMA_HOST": url}
    async with running_app(environ, folder) as app, httpx.AsyncClient(trust_env=False) as client:
        desk = app.chat.desk
        if desk is None:
            raise RuntimeError("the app did not open")

        async def turn() -> float:
            press(app, "go")
            await asyncio.sleep(0.3)  # the keys are painted, and Enter is no part of a paste
            with Sight("Rhine") as sight:
                began = time.perf_counter()
                press(app, "\n")
                await until(lambda: sight.at is not None and not desk.talk.busy)
            if sight.at is None:
                raise RuntimeError("nothing was painted")
            await desk.command("/new")  # the next answer is painted on an empty screen
            await asyncio.sleep(0.05)
            return (sight.at - began) * 1000

        await turn()
        return [[(await _bare(client, url), await turn()) for _ in range(RUNS)] for _ in range(BATCHES)]


def main() -> int:
    """Measure, print, and return the exit code."""
    as_json = wants_json(__doc__ or "")
    with tempfile.TemporaryDirectory() as folder, server(Path(folder), {"text": "Rhine and Danube"}) as url:
        batches = asyncio.run(_measure(url, Path(folder)))
    floor = figures("httpx to its first bytes", "ms", [pair[0] for batch in batches for pair in batch])
    seen = figures("Enter to painted token", "ms", [pair[1] for batch in batches for pair in batch])
    ratio = best_ratio(batches)
    bars = [
        Bar(what="times httpx alone", limit=TIMES_BARE, seen=ratio, holds=None),
        Bar(what="milliseconds, p50", limit=QUIET_MS, seen=seen.p50, holds=None),
    ]
    facts = fingerprint(("httpx", "textual"))
    return report("turn", [floor, seen], bars, facts=facts, as_json=as_json)


if __name__ == "__main__":
    sys.exit(main())
