"""Full-text search over 100,000 messages: rare and common words, two of them, words together, a word begun.

Bar: p95 at most 50 ms for each on a quiet machine. The floor is what SQLite takes to find the 1,000 newest messages
that hold a common word, without ranking, filtering or showing them; CI holds the slowest query to a multiple of it.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import apsw
from _journal import Speaker, a_home, messages_alone, views_of
from _measure import BATCHES, Bar, Figures, best_ratio, figures, fingerprint, report, wants_json

from rune.store.projections import ProjectionEngine
from rune.store.search import find_messages

MESSAGES = 100_000
RUNS = 6
QUIET_MS = 50.0
TIMES_FLOOR = 100.0


def _queries(speaker: Speaker) -> dict[str, Callable[[apsw.Connection], object]]:
    common, second, rare = speaker.words[0], speaker.words[1], speaker.words[15_000]
    texts = {
        "rare word": f"{rare} ",
        "common word (in half)": f"{common} ",
        "two common words": f"{common} {second}",
        "common and rare": f"{common} {rare}",
        "together (in half)": '"the river"',
        "a word begun": speaker.words[3_000][:3],
        "one letter": "b",
        "nothing": "zzzzqx",
        "part of an identifier": f"{rare}_{second}.py",
    }
    found: dict[str, Callable[[apsw.Connection], object]] = {
        what: partial(find_messages, text=text) for what, text in texts.items()
    }
    found["common, of a folder"] = partial(find_messages, text="the river", folder="/home/project")
    found["common, of no folder"] = partial(find_messages, text="the river", folder="/home/another")
    found["common, listed only"] = partial(find_messages, text="the river", with_hidden=False)
    return found


def _milliseconds(engine: ProjectionEngine, query: Callable[[apsw.Connection], object]) -> float:
    began = time.perf_counter()
    engine.read(query)
    return (time.perf_counter() - began) * 1000


def _floor(connection: apsw.Connection) -> object:
    return connection.execute(
        "SELECT rowid FROM search WHERE search MATCH 'river' ORDER BY rowid DESC LIMIT 1000"
    ).fetchall()


def main() -> int:
    """Measure, print, and return the exit code."""
    as_json = wants_json(__doc__ or "")
    speaker = Speaker()
    with tempfile.TemporaryDirectory(prefix="rune-bench-") as folder:
        home = asyncio.run(a_home(Path(folder), messages_alone(MESSAGES, speaker)))
        engine = views_of(home)
        began = time.perf_counter()
        engine.catch_up()
        filled = time.perf_counter() - began
        queries = _queries(speaker)
        batches: dict[str, list[list[tuple[float, float]]]] = {what: [] for what in queries}
        for _ in range(BATCHES):
            for what, query in queries.items():
                pairs = [(_milliseconds(engine, _floor), _milliseconds(engine, query)) for _ in range(RUNS)]
                batches[what].append(pairs)
        engine.close()
    rows: list[Figures] = [
        figures("floor: 1,000 newest, bare", "ms", [low for each in batches.values() for b in each for low, _ in b]),
        *(figures(what, "ms", [seen for b in each for _, seen in b]) for what, each in batches.items()),
    ]
    slowest = max(rows[1:], key=lambda row: row.p95)
    ratio = max(best_ratio(each) for each in batches.values())
    bars = [
        Bar(what="the slowest query, times the floor", limit=TIMES_FLOOR, seen=ratio, holds=ratio <= TIMES_FLOOR),
        Bar(what=f"p95 of the slowest ({slowest.what}), ms", limit=QUIET_MS, seen=slowest.p95, holds=None),
    ]
    facts = fingerprint(["apsw"]) | {"messages": f"{MESSAGES:,}, filled in {filled:.1f} s"}
    return report("search", rows, bars, facts=facts, as_json=as_json)


if __name__ == "__main__":
    sys.exit(main())
