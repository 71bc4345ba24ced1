"""Views follow the journal whatever happens between the two."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import msgspec
import pytest

from rune.errors import CorruptJournalError, JournalMovedError, NotFoundError, StorageError, StorageUnavailableError
from rune.records.envelope import EventEnvelope
from rune.records.events import Event, JournalForked, SessionEnded
from rune.records.record import Record
from rune.records.turns import StopReason
from rune.store.codec import ErasedBody, content_of
from rune.store.event_index import unreported_forks
from rune.store.event_store import Cursor, Offset
from rune.store.memory_store import MemoryEventStore
from rune.store.projections import CaughtUp, ProjectionEngine, UnknownBody
from rune.store.tasks import TaskViews
from tests.store.builders import (
    CONVERSATION,
    a_conversation,
    a_message,
    a_task,
    a_trace,
    a_turn,
    an_id,
    archived,
    renamed,
)
from tests.store.spine import AnotherStore, Reports, a_memory_store, an_event, events, hashes, open_views

STORY: tuple[tuple[str, Record], ...] = (
    ("conversation.created", a_conversation()),
    ("task.created", a_task(1)),
    ("turn.started", a_turn(1)),
    ("user.message", a_message(1)),
    ("response.generated", a_message(2, role="assistant")),
    ("turn.finished", a_turn(1, stop_reason=StopReason.ANSWERED)),
    ("inference.traced", a_trace(1)),
    ("history.archived", archived(an_id("msg", 1))),
    ("conversation.renamed", renamed("Rivers")),
)


@pytest.fixture
def views(tmp_path: Path) -> Path:
    return tmp_path / "views-1.db"


async def a_store_with_a_story() -> MemoryEventStore:
    store = a_memory_store()
    await store.append_many(events(*STORY, partition=CONVERSATION))
    return store


def notes(count: int, start: int = 51) -> list[Event]:
    """Return events of no conversation."""
    return [
        an_event(number, "session.ended", SessionEnded(id=an_id("ses", number)), "system")
        for number in range(start, start + count)
    ]


def delete(views: Path) -> None:
    """Delete the file, and not its -wal: whoever does so does not think of that one."""
    views.unlink()


def replace(views: Path, content: bytes) -> None:
    """Put other bytes in the file's place, and no -wal beside it."""
    for side in views.parent.glob("views-1.db-*"):
        side.unlink()
    views.write_bytes(content)


def first_page_of(views: Path) -> bytes:
    return views.read_bytes()[:4096]


def count_of(engine: ProjectionEngine) -> int:
    return engine.read(lambda connection: connection.execute("SELECT count(*) FROM events").get)


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


async def test_a_deleted_file_is_rebuilt_equal(views: Path) -> None:
    store = await a_store_with_a_story()
    engine = open_views(views, store)
    before = hashes(engine)
    engine.close()
    delete(views)

    engine = open_views(views, store)
    assert hashes(engine) == before
    engine.close()


async def test_a_file_deleted_while_it_is_open_is_rebuilt_in_every_thread(views: Path) -> None:
    store = await a_store_with_a_story()
    engine = open_views(views, store)
    assert await engine.query(lambda connection: connection.execute("SELECT count(*) FROM turns").get) == 1
    before = hashes(engine)
    delete(views)
    await store.append_many(notes(1))
    assert await engine.query(lambda connection: connection.execute("SELECT count(*) FROM turns").get) == 1
    assert count_of(engine) == len(STORY) + 1
    assert {**hashes(engine), "identities": ""} == {**before, "identities": ""}
    engine.close()


async def test_a_new_file_is_filled_even_if_it_got_the_old_ones_inode(views: Path) -> None:
    engine = open_views(views, await a_store_with_a_story())
    for _ in range(5):
        # One thread alone has it open: once deleted its inode is free.
        assert count_of(engine) == len(STORY)
        delete(views)
    engine.close()


async def test_a_file_replaced_by_another_process_is_followed(views: Path) -> None:
    store = await a_store_with_a_story()
    first, second = open_views(views, store), open_views(views, store)
    first.catch_up()
    second.catch_up()
    delete(views)
    second.catch_up()
    await store.append_many(notes(2))
    assert (first.catch_up().applied, second.catch_up().applied) == (2, 0)
    assert hashes(first) == hashes(second)
    first.close()  # what it closes must not be the other's log
    await store.append_many(notes(1, start=60))
    assert second.catch_up().applied == 1
    second.close()
    third = open_views(views, store)
    assert third.catch_up().applied == 0
    third.close()


@pytest.mark.parametrize("damage", [b"", b"not a database, but long enough to look like one" * 100])
async def test_a_damaged_file_is_replaced(damage: bytes, views: Path) -> None:
    store = await a_store_with_a_story()
    engine = open_views(views, store)
    before = hashes(engine)
    engine.close()
    replace(views, damage)

    reports = Reports()
    engine = open_views(views, store, reports=reports)
    assert hashes(engine) == before
    assert [type(error) for error in reports.views] == ([apsw.NotADBError] if damage else [])
    engine.close()


async def test_damage_found_by_a_query_is_repaired_and_reported(views: Path) -> None:
    store = await a_store_with_a_story()
    await store.append_many(notes(400))
    engine = open_views(views, store)
    before = hashes(engine)
    engine.read(lambda connection: connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())
    engine.close()
    replace(views, first_page_of(views) + b"\xa5" * 400_000)

    reports = Reports()
    engine = open_views(views, store, reports=reports)
    assert hashes(engine) == before
    assert reports.views
    engine.close()


async def test_a_file_of_other_tables_is_replaced(views: Path) -> None:
    store = await a_store_with_a_story()
    first = ProjectionEngine(views, store, lambda _: SessionEnded(id=""), (TaskViews(),), Reports().views.append)
    first.catch_up()
    first.close()
    engine = open_views(views, store)
    assert engine.catch_up().applied == len(STORY)
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
    before, steps = hashes(engine), list[int]()
    assert engine.rebuild(steps.append).applied == 1100
    assert steps == [500, 1000, 1100]
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


async def test_a_place_given_twice_keeps_both_and_is_reported_until_it_is_recorded(views: Path) -> None:
    store = a_memory_store()
    await store.append_many(
        [
            an_event(1, "user.message", a_message(1), CONVERSATION, 1),
            an_event(2, "user.message", a_message(2), CONVERSATION, 2),
            an_event(3, "user.message", a_message(3), CONVERSATION, 2),
        ]
    )
    fork = JournalForked(conversation_id=CONVERSATION, pseq=2, event_ids=(an_id("evt", 2), an_id("evt", 3)))
    engine = open_views(views, store)
    assert engine.catch_up().forks == (fork,)
    assert engine.catch_up().forks == (fork,)
    assert engine.read(lambda connection: connection.execute("SELECT count(*) FROM messages").get) == 3
    await store.append(an_event(4, "journal.forked", fork, "system"))
    assert engine.catch_up().forks == ()
    assert engine.rebuild().forks == ()
    engine.close()


async def test_a_report_read_before_what_it_is_about_counts(views: Path) -> None:
    store = a_memory_store()
    fork = JournalForked(conversation_id=CONVERSATION, pseq=2, event_ids=(an_id("evt", 2), an_id("evt", 3)))
    await store.append(an_event(1, "journal.forked", fork, "system"))
    for number in (2, 3):
        await store.append(an_event(number, "user.message", a_message(number), CONVERSATION, 2))
    engine = open_views(views, store)
    assert engine.catch_up().forks == ()
    assert engine.read(unreported_forks) == ()
    engine.close()


async def test_identities_say_where_an_event_lies_and_what_it_says(views: Path) -> None:
    store = await a_store_with_a_story()
    engine = open_views(views, store)
    engine.catch_up()
    for offset, envelope in store.replay():
        known = engine.lookup(envelope.event_id)
        assert known is not None
        assert (known.offset, known.content) == (offset, content_of(envelope))
        assert engine.find(envelope.event_id) == (offset, envelope, STORY[offset.seq - 1][1])
    assert engine.lookup(an_id("evt", 99)) is None
    assert engine.find(an_id("evt", 99)) is None
    engine.close()


async def test_an_event_that_left_the_journal_is_not_found_in_silence(views: Path) -> None:
    engine = open_views(views, Shortened(await a_store_with_a_story()))
    with pytest.raises(NotFoundError, match="not in the journal"):
        engine.find(an_id("evt", 2))
    engine.close()


class Shortened(AnotherStore):
    """Gives everything once and nothing afterwards."""

    given = False

    def read(self, after: Cursor) -> Iterator[tuple[Offset, EventEnvelope]]:
        if not self.given:
            self.given = True
            yield from super().read(after)


async def test_the_newest_events_are_read_from_the_end(views: Path) -> None:
    store = await a_store_with_a_story()
    await store.append_many(notes(20))
    engine = open_views(views, store)

    def ids(types: list[str] | None, limit: int) -> list[str]:
        return [envelope.event_id for _, envelope in engine.recent(types, limit)]

    assert ids(None, 3) == [an_id("evt", number) for number in (68, 69, 70)]
    assert ids(["user.message", "turn.started"], 5) == [an_id("evt", 3), an_id("evt", 4)]
    assert ids(["user.message"], 0) == []
    assert ids(["no.such"], 5) == []
    assert ids([], 5) == []
    assert len(ids(None, 1000)) == len(STORY) + 20
    engine.close()


async def test_places_that_moved_are_learned_again(views: Path) -> None:
    store, reports = Moving(await a_store_with_a_story()), Reports()
    engine = open_views(views, store, reports=reports)
    engine.catch_up()
    store.moved = True
    step = engine.find(an_id("evt", 2))
    assert step is not None
    assert step[2] == STORY[1][1]
    store.moved = True
    assert len(list(engine.recent(None, 3))) == 3
    assert [type(error) for error in reports.views] == [JournalMovedError] * 2
    engine.close()


class Moving(AnotherStore):
    """Lost a place once: bodies were erased, lines are shorter now."""

    moved = False

    def read(self, after: Cursor) -> Iterator[tuple[Offset, EventEnvelope]]:
        if self.moved and after:
            self.moved = False
            raise JournalMovedError("the segment is shorter")
        return self.whole.read(after)


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

    def read(self, after: Cursor) -> Iterator[tuple[Offset, EventEnvelope]]:
        return (item for item in self.whole.read(after) if item[0].seq != 3)


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

    def read(self, after: Cursor) -> Iterator[tuple[Offset, EventEnvelope]]:
        for item in self.whole.read(after):
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

    def read(self, after: Cursor) -> Iterator[tuple[Offset, EventEnvelope]]:
        for offset, envelope in self.whole.read(after):
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

    def read(self, after: Cursor) -> Iterator[tuple[Offset, EventEnvelope]]:
        self.reads += 1
        self.entered.set()
        assert self.gate.wait(10)
        yield from self.whole.read(after)


async def test_a_place_where_no_file_can_be_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    engine = open_views(tmp_path / "file" / "views-1.db", a_memory_store())
    for act in (engine.catch_up, engine.rebuild, lambda: engine.lookup("evt_1")):
        with pytest.raises(StorageUnavailableError):
            act()
    engine.close()


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


async def test_only_the_owner_may_read_the_views(views: Path) -> None:
    engine = open_views(views, await a_store_with_a_story())
    engine.catch_up()
    assert {path.stat().st_mode & 0o777 for path in views.parent.iterdir()} == {0o600}
    engine.close()
