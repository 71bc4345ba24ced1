"""Following the journal: everything once, in order, through rotation and through rewritten segments."""

import asyncio
import threading
from pathlib import Path

from rune.store.durable_store import DurableEventStore
from rune.store.journal_tail import JournalTail
from tests.fakes.clock import CountedClock
from tests.fakes.ids import CountedIds
from tests.store.journals import event_ids, fill, no_sync, open_now, opened, segment
from tests.store.samples import ended

OTHER = "w001-000001.jsonl"


def a_tail(home: Path, store: DurableEventStore) -> JournalTail:
    tail = JournalTail(store, home / "journal")
    tail.begin()
    return tail


def given(tail: JournalTail) -> list[str]:
    return [envelope.event_id for _, envelope in tail.fresh()]


async def test_what_is_appended_is_given_once(tmp_path: Path) -> None:
    ids = CountedIds()
    await fill(tmp_path, ids, [3])
    reader = open_now(tmp_path, ids=ids, read_only=True)
    tail = a_tail(tmp_path, reader)
    assert given(tail) == []
    more = await fill(tmp_path, ids, [1, 3, 1])
    assert given(tail) == event_ids(more)
    assert given(tail) == []
    again = await fill(tmp_path, ids, [2])
    assert given(tail) == event_ids(again)


async def test_it_begins_before_there_is_a_journal_and_goes_on_through_rotation(tmp_path: Path) -> None:
    ids = CountedIds()
    (tmp_path / "journal").mkdir(mode=0o700)
    tail = a_tail(tmp_path, open_now(tmp_path, ids=ids, read_only=True))
    everything: list[str] = []
    seen: list[str] = []
    for _ in range(6):
        everything += event_ids(await fill(tmp_path, ids, [2, 2], segment_bytes=1500))
        seen += given(tail)
    assert len(list((tmp_path / "journal").glob("*.jsonl"))) > 3
    assert seen == everything


async def test_a_line_that_follows_another_slot_s_is_given_after_it(tmp_path: Path) -> None:
    ids, clock = CountedIds(), CountedClock()
    async with opened(tmp_path, ids=ids, clock=clock) as one, opened(tmp_path, ids=ids, clock=clock) as two:
        tail = a_tail(tmp_path, open_now(tmp_path, ids=ids, read_only=True))
        written: list[str] = []

        async def write(*stores: DurableEventStore) -> None:
            for store in stores:
                clock.advance(0.001)
                event = ended(ids)
                await store.append(event)
                written.append(event.event_id)

        await write(two, one, two, one)
        assert given(tail) == written
        await write(one, two, two)
        pieces = tail.fresh()
        # Now the end of the first slot is reached, and both go on while the second one is still being read.
        seen = [next(pieces)[1].event_id, next(pieces)[1].event_id]
        await write(one, two)
        seen += [envelope.event_id for _, envelope in pieces]
        assert [*seen, *given(tail)] == written[4:]


async def test_what_is_unfinished_is_given_when_it_is_whole(tmp_path: Path) -> None:
    ids = CountedIds()
    await fill(tmp_path, ids, [1])
    reader = open_now(tmp_path, ids=ids, read_only=True)
    tail = a_tail(tmp_path, reader)
    (event,) = await fill(tmp_path, ids, [1])
    path = segment(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert given(tail) == []
    path.write_bytes(whole)
    assert given(tail) == [event.event_id]


async def test_what_its_writer_took_back_is_not_waited_for(tmp_path: Path) -> None:
    ids = CountedIds()
    await fill(tmp_path, ids, [1])
    before = segment(tmp_path).read_bytes()
    reader = open_now(tmp_path, ids=ids, read_only=True)
    tail = a_tail(tmp_path, reader)
    (lost,) = await fill(tmp_path, ids, [1])
    assert given(tail) == [lost.event_id]
    segment(tmp_path).write_bytes(before)
    assert given(tail) == []
    later = await fill(tmp_path, ids, [2])
    assert given(tail) == event_ids(later)


async def test_a_slot_that_comes_later_is_followed_too(tmp_path: Path) -> None:
    ids = CountedIds()
    async with opened(tmp_path, ids=ids) as one:
        await one.append(ended(ids))
        tail = a_tail(tmp_path, open_now(tmp_path, ids=ids, read_only=True, sync=no_sync))
        events = await fill(tmp_path, ids, [2])
        assert (tmp_path / "journal" / OTHER).exists()
        assert given(tail) == event_ids(events)


async def test_what_this_process_writes_is_given_once_it_is_durable(tmp_path: Path) -> None:
    syncing, durable = threading.Event(), threading.Event()

    def sync(_: int) -> None:
        syncing.set()
        durable.wait()

    ids = CountedIds()
    await fill(tmp_path, ids, [1])
    async with opened(tmp_path, ids=ids, sync=sync) as store:
        tail = a_tail(tmp_path, store)
        event = ended(ids)
        appending = asyncio.create_task(store.append(event))
        await asyncio.to_thread(syncing.wait)
        assert given(tail) == []
        durable.set()
        await appending
        assert given(tail) == [event.event_id]
