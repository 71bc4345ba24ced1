"""Views follow the journal whatever happens between the two."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import msgspec
import pytest

from rune.errors import CorruptJournalError, StorageError, StorageUnavailableError
from rune.records.envelope import EventEnvelope
from rune.records.events import Event, SessionEnded
from rune.records.record import Record
from rune.store.codec import ErasedBody
from rune.store.event_index import unreported_forks
from rune.store.event_store import Cursor, Offset
from rune.store.memory_store import MemoryEventStore
from rune.store.projection import UnknownBody
from rune.store.projections import ProjectionEngine
from rune.store.tasks import TaskViews
from rune.store.view_pass import CaughtUp, Pass
from tests.store.builders import an_id
from tests.store.spine import (
    STORY,
    AnotherStore,
    Reports,
    a_memory_store,
    a_store_with_a_story,
    count_of,
    hashes,
    notes,
    open_views,
)


async def test_what_was_durable_before_a_crash_is_in_the_views_after_it(views: Path) -> None:
    store = await a_store_with_a_story()
    engine = open_views(views, store)
    assert engine.catch_up().applied == len(STORY)
    engine.close()
    await store.append_many(notes(3))

    engine = open_views(views, store)
    assert engine.catch_up() == CaughtUp(applied=3, forks=())
    assert engine.catch_up().applied == 0
    assert count_of(engine) == len(STORY) + 3
    engine.close()


async def test_a_query_alone_brings_new_views_up_to_date(views: Path) -> None:
    engine = open_views(views, await a_store_with_a_story())
    assert count_of(engine) == len(STORY)
    engine.close()


async def test_applying_every_event_again_changes_nothing(views: Path) -> None:
    engine = open_views(views, await a_store_with_a_story())
    engine.catch_up()
    before = hashes(engine)
    engine.read(lambda connection: connection.execute("DELETE FROM cursor").fetchall())
    assert engine.catch_up().applied == len(STORY)
    assert hashes(engine) == before
    engine.close()


async def test_a_failure_in_the_middle_leaves_neither_rows_nor_offset(views: Path) -> None:
    store = a_memory_store()
    await store.append_many(notes(5))
    engine = ProjectionEngine(
        views, store, lambda envelope: SessionEnded(id=envelope.event_id), (FailsAt(3),), Reports().views.append
    )
    with pytest.raises(ArithmeticError):
        engine.catch_up()
    raw = apsw.Connection(str(views))
    counts = "SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM seen), (SELECT count(*) FROM cursor)"
    assert raw.execute(counts).fetchone() == (0, 0, 0)
    raw.close()
    engine.close()


class FailsAt:
    """A projection with a bug."""

    name = "failing"
    ddl = "CREATE TABLE seen (id TEXT);"
    tables = ("seen",)

    def __init__(self, seq: int) -> None:
        self._seq = seq

    def apply(self, connection: apsw.Connection, offset: Offset, envelope: EventEnvelope, body: Record) -> None:
        connection.execute("INSERT INTO seen VALUES (?)", (envelope.event_id,))
        if offset.seq == self._seq:
            raise ArithmeticError(str(body))


async def test_a_rebuild_goes_in_steps_and_tells_how_far_it_is(views: Path) -> None:
    store = a_memory_store()
    await store.append_many(notes(1100))
    engine = open_views(views, store)
    engine.catch_up()
    before, steps = hashes(engine), list[Pass]()
    assert engine.rebuild(steps.append).applied == 1100
    assert steps == [Pass(500, 1100), Pass(1000, 1100), Pass(1100, 1100)]
    assert hashes(engine) == before
    engine.close()


async def test_engines_that_catch_up_at_once_share_the_work(views: Path) -> None:
    store = a_memory_store()
    await store.append_many(notes(1500))
    engines = [open_views(views, store) for _ in range(4)]
    done = await asyncio.gather(*(asyncio.to_thread(engine.catch_up) for engine in engines))
    assert sum(each.applied for each in done) == 1500
    assert count_of(engines[0]) == 1500
    for engine in engines:
        engine.close()


@pytest.mark.parametrize("shorter", [notes(3), [*notes(4), *notes(1, start=77)]], ids=["fewer", "others"])
async def test_views_that_are_ahead_of_the_journal_are_rebuilt(shorter: list[Event], views: Path) -> None:
    longer = a_memory_store()
    await longer.append_many(notes(5))
    engine = open_views(views, longer)
    engine.catch_up()
    engine.close()

    store, reports = a_memory_store(), Reports()
    await store.append_many(shorter)
    engine = open_views(views, store, reports=reports)
    engine.catch_up()
    assert count_of(engine) == len(shorter)
    assert len(reports.views) == 1
    engine.close()


async def test_an_erased_body_leaves_no_trace_in_the_views(views: Path) -> None:
    store = await a_store_with_a_story()
    engine = ProjectionEngine(
        views, store, lambda _: ErasedBody(erased=an_id("evt", 99)), (TaskViews(),), Reports().views.append
    )
    assert engine.catch_up().applied == len(STORY)
    assert engine.read(lambda connection: connection.execute("SELECT count(*) FROM tasks").get) == 0
    assert count_of(engine) == len(STORY)
    engine.close()


async def test_a_gap_in_a_slot_is_an_error_and_not_skipped(views: Path) -> None:
    store = a_memory_store()
    await store.append_many(notes(5))
    engine = open_views(views, WithGap(store))
    with pytest.raises(StorageError, match="gap"):
        engine.catch_up()
    engine.close()


class WithGap(AnotherStore):
    """Lacks its third event."""

    def read(self, after: Cursor, *, seen: Cursor | None = None) -> Iterator[tuple[Offset, EventEnvelope]]:
        return (item for item in self.whole.read(after, seen=seen) if item[0].seq != 3)


async def test_what_lies_before_damage_stays_readable_and_the_damage_is_told(views: Path) -> None:
    store = a_memory_store()
    await store.append_many(notes(700))
    reports = Reports()
    engine = open_views(views, Damaged(store), reports=reports)
    assert count_of(engine) == 599
    assert [type(error) for error in reports.views] == [CorruptJournalError]
    with pytest.raises(CorruptJournalError):
        engine.catch_up()
    assert count_of(engine) == 599
    assert len(reports.views) == 1
    engine.close()


class Damaged(AnotherStore):
    """Cannot be read from its 600th event on."""

    def read(self, after: Cursor, *, seen: Cursor | None = None) -> Iterator[tuple[Offset, EventEnvelope]]:
        for item in self.whole.read(after, seen=seen):
            if item[0].seq == 600:
                raise CorruptJournalError("its checksum does not match", file="w000-000001.jsonl", line=601, byte=9)
            yield item


async def test_a_full_disk_is_a_typed_error_and_what_is_there_stays_readable(views: Path) -> None:
    store = a_memory_store()
    await store.append_many(notes(10))
    engine = open_views(views, store)
    engine.catch_up()
    engine.read(lambda connection: connection.pragma("max_page_count", connection.pragma("page_count")))
    await store.append_many(notes(900, start=100))
    with pytest.raises(StorageUnavailableError, match="full"):
        engine.catch_up()
    assert count_of(engine) < 910
    engine.read(lambda connection: connection.pragma("max_page_count", 1_000_000))
    engine.catch_up()
    assert count_of(engine) == 910
    engine.close()


async def test_an_event_of_a_later_version_is_indexed_and_holds_nothing_up(views: Path) -> None:
    store = await a_store_with_a_story()
    engine = open_views(views, Later(store))
    assert engine.catch_up().applied == len(STORY)
    assert engine.read(lambda connection: connection.execute("SELECT count(*) FROM turns").get) == 0
    step = engine.find(an_id("evt", 3))
    assert step is not None
    assert isinstance(step[2], UnknownBody)
    engine.close()


class Later(AnotherStore):
    """Holds turns under a name that is not registered."""

    def read(self, after: Cursor, *, seen: Cursor | None = None) -> Iterator[tuple[Offset, EventEnvelope]]:
        for offset, envelope in self.whole.read(after, seen=seen):
            name = envelope.event_type.replace("turn.", "turn.quantum_")
            yield offset, msgspec.structs.replace(envelope, event_type=name)


async def test_callers_that_come_during_a_pass_share_the_next(views: Path) -> None:
    store = a_memory_store()
    await store.append_many(notes(2))
    slow = Gated(store)
    engine = open_views(views, slow)
    first = asyncio.create_task(engine.caught_up())
    await asyncio.to_thread(slow.entered.wait, 10)
    later = [asyncio.create_task(engine.caught_up()) for _ in range(20)]
    await asyncio.sleep(0)
    later[0].cancel()  # one that goes away does not take the pass with it
    await store.append_many(notes(3, start=60))
    slow.gate.set()
    assert (await first).applied == 5
    assert {(await each).applied for each in later[1:]} == {0}
    assert slow.reads == 2
    engine.close()


class Gated(AnotherStore):
    """Stands still in its first read until the gate is opened."""

    def __init__(self, whole: MemoryEventStore) -> None:
        super().__init__(whole)
        self.gate = threading.Event()
        self.entered = threading.Event()
        self.reads = 0

    def read(self, after: Cursor, *, seen: Cursor | None = None) -> Iterator[tuple[Offset, EventEnvelope]]:
        self.reads += 1
        self.entered.set()
        assert self.gate.wait(10)
        yield from self.whole.read(after, seen=seen)


async def test_a_closed_engine_says_so(views: Path) -> None:
    engine = open_views(views, a_memory_store())
    engine.catch_up()
    engine.close()
    engine.close()
    for act in (engine.catch_up, lambda: engine.lookup(an_id("evt", 1))):
        with pytest.raises(StorageUnavailableError, match="closed"):
            act()
    for wait in (engine.caught_up, lambda: engine.query(unreported_forks)):
        with pytest.raises(StorageUnavailableError, match="closed"):
            await wait()
