"""Reading the journal again is cheap, and takes no more memory the longer it is (quality.md, replay)."""

import asyncio
import hashlib
import time
import tracemalloc
from pathlib import Path

import msgspec
import pytest

from rune.records.envelope import EventEnvelope
from rune.store.event_store import Offset
from tests.fakes.ids import CountedIds
from tests.store.journals import lines_of, open_now, opened, segment
from tests.store.samples import said

EVENTS = 5000
# The bar of benchmarks/replay.py is 2.5; a busy machine is given as much again.
TIMES_FLOOR = 2 * 2.5
MOST_BYTES = 2_000_000


async def write(home: Path) -> None:
    ids = CountedIds()
    async with opened(home, segment_bytes=1_000_000) as store:
        for start in range(1, EVENTS, 500):
            await store.append_many([said(ids, f"name river {n}", pseq=n) for n in range(start, start + 500)])


@pytest.fixture
def home(memory_home: Path) -> Path:
    asyncio.run(write(memory_home))
    return memory_home


def replayed(home: Path) -> float:
    store = open_now(home, read_only=True)
    began = time.process_time()
    assert sum(1 for _ in store.replay()) == EVENTS
    return time.process_time() - began


def bare(home: Path) -> float:
    decode = msgspec.json.Decoder(EventEnvelope).decode
    began = time.process_time()
    for path in sorted((home / "journal").glob("*.jsonl")):
        with path.open("rb") as file:
            next(file)
            for whole in file:
                line = whole[:-1]
                decode(line)
                hashlib.sha256(line).hexdigest()
    return time.process_time() - began


def test_replaying_costs_a_small_multiple_of_decoding_and_hashing(home: Path) -> None:
    pairs = [(bare(home), replayed(home)) for _ in range(5)]
    assert min(seen for _, seen in pairs) <= TIMES_FLOOR * min(low for low, _ in pairs)


def test_what_follows_a_place_is_read_without_what_is_before_it(home: Path) -> None:
    offsets = [offset for offset, _ in open_now(home, read_only=True).replay()]
    store = open_now(home, read_only=True)
    whole = replayed(home)
    began = time.process_time()
    assert sum(1 for _ in store.read({"w000": offsets[-101]})) == 100
    assert time.process_time() - began < whole / 4
    # A place whose line lies elsewhere by now is found, too.
    moved = Offset("w000", offsets[-101].seq, offsets[-101].segment, offsets[-101].position - 1)
    assert sum(1 for _ in store.read({"w000": moved})) == 100


def test_the_memory_of_a_replay_does_not_grow_with_the_journal(home: Path) -> None:
    assert sum(len(lines_of(path)) for path in (home / "journal").glob("*.jsonl")) > EVENTS
    assert segment(home, "w000-000004.jsonl").is_file()
    tracemalloc.start()
    try:
        for _ in open_now(home, read_only=True).replay():
            pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MOST_BYTES
