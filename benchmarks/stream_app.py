"""What streaming costs in the app: 5,000 tokens at full speed, and 100 tokens a second below 30 KB of history.

Bars on a quiet machine: 0.5 s of CPU for the 5,000; at 100 tokens a second 13 % of a core, the event loop never later
than 8 ms (p99), a key painted within 16 ms (p95). What counts everywhere: with 30 KB of history the loop is at most
twice as late as with none. The floor is the same stream without a history.
"""

import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from _app import Lateness, Sight, press, running_app, until
from _measure import Bar, Figures, figures, fingerprint, report, wants_json

from rune.tui.app import RuneApp
from rune.tui.desk import Desk
from rune.tui.talk import Talk

TOKENS = 5_000
SECONDS = 5.0
RATE = 100
HISTORY = 30_000
PARAGRAPH = "Rivers *begin* in the mountains, take what `rain` brings them, and end in a **sea** or another river. "
QUIET = {"cpu": 0.5, "share": 0.13, "late": 8.0, "key": 16.0}
TIMES_WITHOUT_HISTORY = 2.0


class Streamed(NamedTuple):
    """One stream at a fixed rate: CPU as a share of a core, lateness and keys in milliseconds."""

    share: float
    late: list[float]
    keys: list[float]


def _desk(app: RuneApp) -> Desk:
    if app.chat.desk is None:
        raise RuntimeError("the app did not open")
    return app.chat.desk


async def _ask(app: RuneApp, text: str) -> Talk:
    desk = _desk(app)
    before = len(desk.talk.transcript.settled)
    press(app, f"{text}\n")
    await until(lambda: desk.talk.busy or len(desk.talk.transcript.settled) > before)
    return desk.talk


async def _burst(app: RuneApp) -> float:
    """Return the CPU seconds of 5,000 tokens at full speed."""
    began = time.process_time()
    talk = await _ask(app, "burst")
    await until(lambda: not talk.busy)
    return time.process_time() - began


async def _steady(app: RuneApp) -> Streamed:
    talk = await _ask(app, "steady")
    await until(lambda: talk.transcript.pace is not None and talk.transcript.pace.pieces > 0)
    keys: list[float] = []
    # The share first, by itself: watching and typing cost something too.
    cpu, began = time.process_time(), time.perf_counter()
    await asyncio.sleep(SECONDS / 2)
    share = (time.process_time() - cpu) / (time.perf_counter() - began)
    async with Lateness() as lateness:
        for number in range(40):
            letter = chr(ord("\u0400") + number)  # stands nowhere else on the screen
            with Sight(letter) as sight:
                pressed = time.perf_counter()
                press(app, letter)
                await until(lambda sight=sight: sight.at is not None)
                keys.append(((sight.at or 0) - pressed) * 1000)
            await asyncio.sleep(SECONDS * 0.8 / 40)
    _desk(app).outbox.cancel()
    await until(lambda: not talk.busy)
    press(app, "\n")
    await until(lambda: not talk.busy)
    return Streamed(share, lateness.seen, keys)


def _script(folder: Path, *answers: dict[str, object]) -> dict[str, str]:
    script = folder / "script.json"
    script.write_text(json.dumps({"answers": list(answers)}))
    return {"RUNE_HOME": str(folder / "home"), "RUNE_SCRIPTED_MODEL": str(script)}


async def _run(history: int, *, bursts: bool) -> tuple[Streamed, list[float]]:
    """Stream below so many characters of history, in an app of its own."""
    steady: dict[str, object] = {"text": "word " * round(RATE * SECONDS * 3), "delay_ms": 1000 / RATE}
    answers: list[dict[str, object]] = []
    if history:
        answers.append({"text": "\n\n".join([PARAGRAPH * 3] * (history // (3 * len(PARAGRAPH))))})
    ending: dict[str, object] = {"text": "end"}
    answers += [steady, ending]
    if bursts:
        burst: dict[str, object] = {"text": "word " * TOKENS}
        answers = [burst] * 4
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with running_app(_script(folder, *answers), folder) as app:
            if bursts:
                return Streamed(0, [], []), [await _burst(app) for _ in range(4)][1:]
            if history:
                talk = await _ask(app, "history")
                await until(lambda: not talk.busy)
                await asyncio.sleep(0.5)  # what is drawn ahead of the person is drawn
            return await _steady(app), []


def _p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[-1]


def main() -> int:
    """Measure, print, and return the exit code."""
    as_json = wants_json(__doc__ or "")
    pairs = [(asyncio.run(_run(0, bursts=False))[0], asyncio.run(_run(HISTORY, bursts=False))[0]) for _ in range(3)]
    _, bursts = asyncio.run(_run(0, bursts=True))
    without, within = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    rows: list[Figures] = [
        figures("5,000 tokens at full speed", "ms CPU", [each * 1000 for each in bursts]),
        figures("loop late, no history", "ms", [late for each in without for late in each.late]),
        figures("loop late, 30 KB of history", "ms", [late for each in within for late in each.late]),
        figures("key to screen while streaming", "ms", [key for each in within for key in each.keys]),
    ]
    share = min(each.share for each in within)
    ratio = min(_p99(pair[1].late) / max(_p99(pair[0].late), 1.0) for pair in pairs)
    late = min(_p99(each.late) for each in within)
    bars = [
        Bar(
            what="lateness p99, times that without history",
            limit=TIMES_WITHOUT_HISTORY,
            seen=ratio,
            holds=ratio <= TIMES_WITHOUT_HISTORY,
        ),
        Bar(what="5,000 tokens, seconds of CPU", limit=QUIET["cpu"], seen=min(bursts), holds=None),
        Bar(what="100 tokens a second, share of a core", limit=QUIET["share"], seen=share, holds=None),
        Bar(what="lateness p99, ms", limit=QUIET["late"], seen=late, holds=None),
        Bar(what="key to screen p95, ms", limit=QUIET["key"], seen=rows[-1].p95, holds=None),
    ]
    facts = {**fingerprint(("textual",)), "history": f"{HISTORY:,} characters"}
    return report("stream_app", rows, bars, facts=facts, as_json=as_json)


if __name__ == "__main__":
    sys.exit(main())
