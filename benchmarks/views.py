"""What the app reads from the views of 100,000 events, and how long the views take to be rebuilt with full text.

Bars: header, context gauge, picker of conversations and newest traces p95 at most 2 ms, a rebuild at most 10 s, on a
quiet machine; CI holds each read to a multiple of going to a thread and back, and the rebuild to a multiple
of reading and verifying the same journal. What grows with what it shows (a transcript, the newest events)
has its figures here and no bar.
"""

import asyncio
import itertools
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

from _journal import Speaker, a_home, conversation_events, store_of, views_of
from _measure import BATCHES, Bar, best_ratio, figures, fingerprint, report, wants_json

from rune.bootstrap import build
from rune.host.paths import Home
from rune.records.events import Event
from rune.surface.views import Views

EVENTS = 100_000
LONG, SHORT = 2_000, 100
FOLDER = "/home/project"
RUNS = 12
REBUILDS = 3
QUIET_READ_MS, QUIET_REBUILD_S = 2.0, 10.0
READ_TIMES_FLOOR, REBUILD_TIMES_READING = 40.0, 16.0

Read = Callable[[], Awaitable[object]]


def _events() -> Iterator[Event]:
    """Give one long conversation and many usual ones."""
    speaker = Speaker()
    usual = [conversation_events(SHORT, speaker, folder=FOLDER) for _ in range(EVENTS // SHORT)]
    return itertools.islice(itertools.chain(conversation_events(LONG, speaker), *usual), EVENTS)


def _rebuilt(home: Home) -> list[tuple[float, float]]:
    """Return the seconds that reading and verifying the journal takes, and those of a rebuild, in pairs."""
    engine, store = views_of(home), store_of(home)
    pairs = list[tuple[float, float]]()
    for _ in range(REBUILDS):
        began = time.perf_counter()
        count = sum(1 for _ in store.read({}))
        middle = time.perf_counter()
        applied = engine.rebuild().applied
        pairs.append((middle - began, time.perf_counter() - middle))
        if not count == applied == EVENTS:
            raise RuntimeError(f"{count} and {applied} events instead of {EVENTS}")
    engine.close()
    return pairs


async def _nothing() -> None:
    await asyncio.to_thread(int)


async def _milliseconds(read: Read) -> float:
    began = time.perf_counter()
    await read()
    return (time.perf_counter() - began) * 1000


async def _app_reads(views: Views) -> tuple[dict[str, Read], dict[str, Read]]:
    """Return the small reads, and those that grow with what they show."""
    newest = (await views.rows(FOLDER, "task", limit=2))[1].id  # the last one may have ended in the middle
    longest = max(await views.rows(limit=2_000), key=lambda row: row.messages).id
    small: dict[str, Read] = {
        "header: the conversation": lambda: views.conversation(newest),
        "header: how full its context is": lambda: views.context_use(newest),
        "picker: 20 conversations of a folder": lambda: views.conversations(folder=FOLDER, channel="task", limit=20),
        "how its turns ended": lambda: views.ends(newest),
    }
    larger: dict[str, Read] = {
        "picker: 50, and who has them open": lambda: views.rows(FOLDER, "task"),
        f"transcript of {SHORT}": lambda: views.transcript(newest),
        f"transcript of {LONG:,}": lambda: views.transcript(longest),
    }
    return small, larger


async def _reads(home: Home) -> tuple[dict[str, list[list[tuple[float, float]]]], dict[str, list[float]]]:
    services = build({"RUNE_HOME": str(home.data_dir)}, surface_kind="command", transports=())
    await services.start()
    views = services.surface.views
    try:
        small, larger = await _app_reads(views)
        batches: dict[str, list[list[tuple[float, float]]]] = {what: [] for what in small}
        for _ in range(BATCHES):
            for what, read in small.items():
                batches[what].append([(await _milliseconds(_nothing), await _milliseconds(read)) for _ in range(RUNS)])
        grown = {what: [await _milliseconds(read) for _ in range(RUNS)] for what, read in larger.items()}
    finally:
        await services.close()
    return batches, grown


def _bars(
    rebuilds: Sequence[tuple[float, float]], batches: dict[str, list[list[tuple[float, float]]]], slowest: float
) -> list[Bar]:
    reads = max(best_ratio(each) for each in batches.values())
    rebuild = min(seconds / reading for reading, seconds in rebuilds)
    return [
        Bar(what="a small read, times a thread", limit=READ_TIMES_FLOOR, seen=reads, holds=reads <= READ_TIMES_FLOOR),
        Bar(
            what="rebuild, times reading",
            limit=REBUILD_TIMES_READING,
            seen=rebuild,
            holds=rebuild <= REBUILD_TIMES_READING,
        ),
        Bar(what="milliseconds, p95 of the slowest small read", limit=QUIET_READ_MS, seen=slowest, holds=None),
        Bar(what="rebuild, s", limit=QUIET_REBUILD_S, seen=min(seconds for _, seconds in rebuilds), holds=None),
    ]


def main() -> int:
    """Measure, print, and return the exit code."""
    as_json = wants_json(__doc__ or "")
    with tempfile.TemporaryDirectory(prefix="rune-bench-") as folder:
        home = asyncio.run(a_home(Path(folder), _events()))
        rebuilds = _rebuilt(home)
        batches, larger = asyncio.run(_reads(home))
    small = [figures(what, "ms", [seen for batch in each for _, seen in batch]) for what, each in batches.items()]
    rows = [
        figures("floor: to a thread and back", "ms", [low for each in batches.values() for b in each for low, _ in b]),
        *small,
        *(figures(what, "ms", values) for what, values in larger.items()),
        figures(f"reading {EVENTS:,} events", "s", [reading for reading, _ in rebuilds]),
        figures(f"rebuild of {EVENTS:,} events", "s", [seconds for _, seconds in rebuilds]),
    ]
    bars = _bars(rebuilds, batches, max(row.p95 for row in small))
    return report("views", rows, bars, facts=fingerprint(["apsw", "msgspec"]), as_json=as_json)


if __name__ == "__main__":
    sys.exit(main())
