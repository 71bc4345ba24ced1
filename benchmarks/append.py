"""How long an event takes from `append` to its acknowledgement, against a bare write + fdatasync of the same bytes.

Bars: p95 at most three times the floor's or 0.3 ms above it; fifty producers at once need at most an eighth of
the time an event (where a sync takes 0.1 ms or more).
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from _journal import usual_messages
from _measure import BATCHES, Bar, Figures, figures, fingerprint, report, wants_json

from rune.host.clock import SystemClock
from rune.host.ids import UlidSource
from rune.records.events import Event
from rune.store.codec import CHAIN_START, Place, prepare, seal
from rune.store.durable_store import DurableEventStore
from rune.store.evidence_store import EvidenceStore

RUNS = 200
PRODUCERS = 50
EACH = 20
TIMES_FLOOR = 3.0
ABOVE_FLOOR_MS = 0.3
SLOW_SYNC_MS = 0.1
PART_OF_ONE = 1 / 8

CLOCK = SystemClock()
IDS = UlidSource(CLOCK)


def _line() -> bytes:
    place = Place(writer="w000", seq=1, hlc=CLOCK.now_ms(), more=0, prev=CHAIN_START, device_id=IDS.new_id("dev"))
    return seal(prepare(next(usual_messages())), place).line


def _bare(descriptor: int, line: bytes) -> float:
    began = time.perf_counter()
    os.write(descriptor, line)
    os.fdatasync(descriptor)
    return (time.perf_counter() - began) * 1000


async def _alone(store: DurableEventStore, said: Iterator[Event]) -> float:
    event = next(said)
    began = time.perf_counter()
    await store.append(event)
    return (time.perf_counter() - began) * 1000


async def _together(store: DurableEventStore, said: Iterator[Event]) -> float:
    """Return the milliseconds an event of PRODUCERS that append at once, EACH one after the other."""
    events = [[next(said) for _ in range(EACH)] for _ in range(PRODUCERS)]

    async def produce(mine: list[Event]) -> None:
        for event in mine:
            await store.append(event)

    began = time.perf_counter()
    await asyncio.gather(*(produce(mine) for mine in events))
    return (time.perf_counter() - began) * 1000 / (PRODUCERS * EACH)


async def _measure(folder: Path) -> tuple[list[list[float]], list[list[float]], list[float]]:
    """Return bare and durable appends, batch by batch, and the time an event of many producers in each batch."""
    store = await asyncio.to_thread(
        DurableEventStore.open,
        folder / "journal",
        clock=CLOCK,
        ids=IDS,
        device_id=IDS.new_id("dev"),
        evidence=EvidenceStore(folder / "evidence", CLOCK),
    )
    descriptor = os.open(folder / "bare", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    line, said = _line(), usual_messages()
    bare, durable, together = list[list[float]](), list[list[float]](), list[float]()
    for _ in range(BATCHES):
        bare.append([])
        durable.append([])
        for _ in range(RUNS):
            bare[-1].append(await asyncio.to_thread(_bare, descriptor, line))
            durable[-1].append(await _alone(store, said))
        together.append(await _together(store, said))
    os.close(descriptor)
    await store.close()
    return bare, durable, together


def _p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20, method="inclusive")[-1]


def main() -> int:
    """Measure, print, and return the exit code."""
    as_json = wants_json(__doc__ or "")
    with tempfile.TemporaryDirectory(prefix="rune-bench-") as folder:
        bare, durable, together = asyncio.run(_measure(Path(folder)))
    rows: list[Figures] = [
        figures("write + fdatasync", "ms", [value for batch in bare for value in batch]),
        figures("append, 1 producer", "ms", [value for batch in durable for value in batch]),
        figures(f"append, {PRODUCERS} producers, an event", "ms", together),
    ]
    pairs = [(_p95(low), _p95(high)) for low, high in zip(bare, durable, strict=True)]
    floor, seen = min(pairs, key=lambda pair: pair[1] / pair[0])
    limit = max(TIMES_FLOOR * floor, floor + ABOVE_FLOOR_MS)
    part = min(many / statistics.mean(one) for many, one in zip(together, durable, strict=True))
    slow = statistics.median(value for batch in bare for value in batch) >= SLOW_SYNC_MS
    bars = [
        Bar(what="p95 of the best batch, ms", limit=round(limit, 3), seen=seen, holds=seen <= limit),
        Bar(
            what=f"{PRODUCERS} producers, part of the time of one",
            limit=PART_OF_ONE,
            seen=part,
            holds=part <= PART_OF_ONE if slow else None,
        ),
    ]
    return report("append", rows, bars, facts=fingerprint(["msgspec"]), as_json=as_json)


if __name__ == "__main__":
    sys.exit(main())
