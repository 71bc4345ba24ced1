"""Lines that another process has read, and shown in the shared views, before their writer has its sync."""

import asyncio
import errno
import os
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from rune.errors import JournalMovedError, StorageUnavailableError, ViewsStoppedError
from rune.records.events import Event
from rune.store.durable_store import DurableEventStore
from tests.fakes.ids import CountedIds
from tests.store.builders import an_id
from tests.store.journals import fill, lines_of, no_sync, open_now, segment
from tests.store.samples import ended
from tests.store.spine import Reports, count_of, hashes, notes, open_views


class SlowDisk:
    """A sync that stands still while `stuck`, and then fails when there is an error."""

    def __init__(self) -> None:
        self.error: OSError | None = None
        self.waiting = threading.Event()
        self.through = threading.Event()
        self.through.set()

    def __call__(self, _: int) -> None:
        self.waiting.set()
        assert self.through.wait(10)
        if self.error is not None:
            raise self.error

    def stick(self) -> None:
        self.waiting.clear()
        self.through.clear()


@asynccontextmanager
async def unsynced(
    store: DurableEventStore, disk: SlowDisk, *events: Event
) -> AsyncGenerator[asyncio.Task[object], None]:
    """Append these; inside they are written and not synced yet."""
    disk.stick()
    task = asyncio.create_task(store.append_many(events))
    assert await asyncio.to_thread(disk.waiting.wait, 10)
    try:
        yield task
    finally:
        disk.through.set()
        await asyncio.wait([task])


def another_reads(home: Path) -> None:
    """Bring the views up to date as another process does: from the files alone."""
    store = open_now(home, read_only=True)
    engine = open_views(home / "views-1.db", store)
    engine.catch_up()
    engine.close()


@pytest.fixture
def disk() -> SlowDisk:
    return SlowDisk()


async def test_a_writer_whose_line_another_has_read_before_its_sync_is_not_told_of_damage(
    memory_home: Path, ids: CountedIds, disk: SlowDisk
) -> None:
    reports = Reports()
    store = open_now(memory_home, sync=disk)
    engine = open_views(memory_home / "views-1.db", store, reports=reports)
    await store.append(ended(ids))
    engine.catch_up()
    event = ended(ids)
    async with unsynced(store, disk, event):
        another_reads(memory_home)
        assert engine.catch_up().applied == 0
        assert count_of(engine) == 2
        # What the views tell of can be had, too.
        found = engine.find(event.event_id)
        assert found is not None
        assert found[1].event_id == event.event_id
        assert [envelope.event_id for _, envelope in engine.recent(None, 1)] == [event.event_id]
        assert list(store.read({"w000": found[0]})) == []
        # And yet only what is durable counts as the end, and is read without being asked for.
        assert len(list(store.read({}))) == 1
        assert store.head()["w000"].seq == 1
    await store.append(ended(ids))
    assert engine.catch_up().applied == 1
    assert reports.views == []
    engine.close()
    await store.close()


async def test_a_writers_first_look_at_views_that_are_ahead_of_its_sync_rebuilds_nothing(
    memory_home: Path, ids: CountedIds, disk: SlowDisk
) -> None:
    reports = Reports()
    store = open_now(memory_home, sync=disk, segment_bytes=1000)
    for _ in range(3):
        await store.append(ended(ids))
    async with unsynced(store, disk, ended(ids), ended(ids)):
        another_reads(memory_home)
        engine = open_views(memory_home / "views-1.db", store, reports=reports)
        assert engine.catch_up().applied == 0
        assert count_of(engine) == 5
    assert reports.views == []
    engine.close()
    await store.close()


async def test_views_that_end_within_a_batch_that_is_not_synced_are_fine(
    memory_home: Path, ids: CountedIds, disk: SlowDisk
) -> None:
    reports = Reports()
    store = open_now(memory_home, sync=disk)
    engine = open_views(memory_home / "views-1.db", store, reports=reports)
    async with unsynced(store, disk, *[ended(ids) for _ in range(1200)]):
        stopped = open_views(memory_home / "views-1.db", open_now(memory_home, read_only=True))
        with pytest.raises(ViewsStoppedError):
            stopped.catch_up(lambda _: stopped.stop())
        stopped.close()
        assert engine.catch_up().applied == 0
        assert count_of(engine) == 500
        newest = list(engine.recent(None, 3))
        assert len(newest) == 3
        place = {"w000": newest[-1][0]}
        assert list(store.read(place, seen=place)) == []
    assert engine.catch_up().applied == 700
    assert reports.views == []
    engine.close()
    await store.close()


async def test_an_event_whose_sync_failed_is_not_acknowledged_because_another_has_read_it(
    memory_home: Path, ids: CountedIds, disk: SlowDisk
) -> None:
    event = ended(ids)
    await fill(memory_home, ids, [1])
    reader = open_views(memory_home / "views-1.db", open_now(memory_home, read_only=True))
    store = open_now(memory_home, sync=disk, lookup=reader.lookup)
    disk.error = OSError(errno.EIO, "Input/output error")
    async with unsynced(store, disk, event) as appending:
        reader.catch_up()
    with pytest.raises(StorageUnavailableError, match="did not confirm"):
        await appending
    assert reader.lookup(event.event_id) is not None
    with pytest.raises(StorageUnavailableError, match="did not confirm"):
        await store.append(event)
    await store.close()
    reader.close()


@pytest.mark.parametrize("follower", ["one that was reading all along", "one that starts", "the writer itself"])
@pytest.mark.parametrize("then", ["nothing", "another line of that length"])
async def test_a_line_that_was_read_and_then_cut_off_leaves_the_views(
    follower: str, then: str, memory_home: Path, ids: CountedIds
) -> None:
    reports = Reports()
    path = memory_home / "views-1.db"
    writer = open_now(memory_home)
    first, lost, other = notes(3)
    await writer.append(first)
    gone = await writer.append(lost)
    engine = open_views(path, open_now(memory_home, read_only=True), reports=reports)
    assert engine.catch_up().applied == 2
    await writer.close()

    os.truncate(segment(memory_home), len(b"".join(lines_of(segment(memory_home))[:-1])))
    writer = open_now(memory_home)
    if then != "nothing":
        assert await writer.append(other) == gone
    if follower != "one that was reading all along":
        engine.close()
        store = writer if follower == "the writer itself" else open_now(memory_home, read_only=True)
        engine = open_views(path, store, reports=reports)
    engine.catch_up()
    assert [type(error) for error in reports.views] == [JournalMovedError]
    assert engine.lookup(an_id("evt", 52)) is None
    assert count_of(engine) == (1 if then == "nothing" else 2)
    before = hashes(engine)
    engine.rebuild()
    assert hashes(engine) == before
    engine.close()
    await writer.close()


async def test_a_line_cut_back_for_want_of_room_was_never_seen(memory_home: Path, ids: CountedIds) -> None:
    store = open_now(memory_home, sync=no_sync)
    await store.append(ended(ids))
    batch = lines_of(segment(memory_home))[-1]
    with segment(memory_home).open("ab") as file:
        file.write(batch[:-1])  # all of a line but its newline: as far as a full disk may let it come
    engine = open_views(memory_home / "views-1.db", open_now(memory_home, read_only=True))
    assert engine.catch_up().applied == 1
    engine.close()
    await store.close()
