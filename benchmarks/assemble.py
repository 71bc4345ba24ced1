"""A prompt out of a conversation of 10,000 messages, as the next turn of it needs one, by the real broker.

Bar: p95 at most 10 ms on a quiet machine, also where most of the history no longer fits. The floor is joining the
rendered messages and hashing them, which no prompt can do without; CI holds the prompt that takes in everything to a
multiple of it. The first prompt of a process and reading the history from the views are shown too.
"""

import asyncio
import hashlib
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from _journal import Speaker, a_home, conversation_events, views_of
from _measure import Bar, Figures, best_ratio, figures, fingerprint, paired, report, wants_json

from rune.context.blocks import AssemblyRequest
from rune.context.broker import ContextBroker
from rune.context.contributors import standard_contributors
from rune.host.paths import Home
from rune.records.messages import ConversationMessageRecord
from rune.store.rows import read_record
from rune.text.tokens import estimate

MESSAGES = 10_000
RUNS = 6
FIRSTS = 3
_MESSAGES = "SELECT record FROM messages ORDER BY conversation_id, rank"
QUIET_MS = 10.0
# As the test beside it: four to five times on a quiet machine, with a slack.
TIMES_FLOOR = 12.0
# So short that a model of today could take in all of them.
WORDS = (10, 20)
WHOLE, USUAL = 1_000_000, 32_768


def _milliseconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def _history(home: Home) -> tuple[list[ConversationMessageRecord], list[float]]:
    """Return the messages of the only conversation, and the milliseconds that reading them took, each time."""
    engine = views_of(home)
    engine.catch_up()
    found = list[ConversationMessageRecord]()

    def read() -> None:
        rows = engine.read(lambda connection: connection.execute(_MESSAGES).fetchall())
        found[:] = [read_record(row[0], ConversationMessageRecord) for row in rows]

    spent = [_milliseconds(read) for _ in range(FIRSTS)]
    engine.close()
    return found, spent


def _broker() -> ContextBroker:
    return ContextBroker(standard_contributors(), estimate, _failed)


def _failed(name: str, error: BaseException) -> None:
    raise RuntimeError(f"{name} failed") from error


def _next(messages: Sequence[ConversationMessageRecord], window: int) -> tuple[ContextBroker, AssemblyRequest, float]:
    """Return a broker that has built a prompt of this conversation, what the next one is built from, and the
    milliseconds that the first took.
    """
    broker = _broker()
    request = AssemblyRequest(
        conversation_id=messages[0].conversation_id,
        message=messages[-1],
        history=messages[:-1],
        archived=frozenset(),
        frozen=None,
        last_messages=b"",
        tools=(),
        model="llama3.2",
        dialect="ollama",
        window=window,
        project=(),
    )
    began = time.perf_counter()
    capsule, trace = broker.assemble(request)
    first = (time.perf_counter() - began) * 1000
    following = msgspec.structs.replace(
        request,
        archived=frozenset(trace.archived_now),
        frozen=capsule.frozen,
        last_messages=capsule.messages,
    )
    return broker, following, first


def _rows(home: Home) -> tuple[list[Figures], list[list[tuple[float, float]]], float]:
    messages, read = _history(home)
    if len(messages) != MESSAGES:
        raise RuntimeError(f"{len(messages)} messages instead of {MESSAGES}")
    whole, everything, _ = _next(messages, WHOLE)
    usual, cut, _ = _next(messages, USUAL)
    firsts = [_next(messages, WHOLE)[2] for _ in range(FIRSTS)]
    objects = [bytes(part) for part in everything.last_messages.split(b"},{")]

    def floor() -> float:
        return _milliseconds(lambda: hashlib.sha256(b",".join(objects)).hexdigest())

    batches = paired(floor, lambda: _milliseconds(lambda: whole.assemble(everything)), runs=RUNS)
    window = [_milliseconds(lambda: usual.assemble(cut)) for _ in range(RUNS * 5)]
    rows = [
        figures("floor: joined and hashed", "ms", [low for batch in batches for low, _ in batch]),
        figures(f"all {MESSAGES:,} fit", "ms", [seen for batch in batches for _, seen in batch]),
        figures(f"window of {USUAL:,}, the rest archived", "ms", window),
        figures("the first prompt of a process", "ms", firsts),
        figures("reading the history from the views", "ms", read),
    ]
    return rows, batches, max(rows[1].p95, rows[2].p95)


def main() -> int:
    """Measure, print, and return the exit code."""
    as_json = wants_json(__doc__ or "")
    with tempfile.TemporaryDirectory(prefix="rune-bench-") as folder:
        home = asyncio.run(a_home(Path(folder), conversation_events(MESSAGES, Speaker(), words=WORDS)))
        rows, batches, slowest = _rows(home)
    ratio = best_ratio(batches)
    bars = [
        Bar(what="all fit, times the floor", limit=TIMES_FLOOR, seen=ratio, holds=ratio <= TIMES_FLOOR),
        Bar(what="milliseconds, p95 of the slower", limit=QUIET_MS, seen=slowest, holds=None),
    ]
    return report("assemble", rows, bars, facts=fingerprint(["msgspec", "apsw"]), as_json=as_json)


if __name__ == "__main__":
    sys.exit(main())
