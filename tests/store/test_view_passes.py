"""Long passes: how a person sees them, and how they are called off."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rune.errors import StorageUnavailableError, ViewsStoppedError
from rune.records.envelope import EventEnvelope
from rune.records.events import SessionEnded
from rune.store.event_store import Cursor, EventStore, Offset
from rune.store.ledger import Draft, Ledger
from rune.store.memory_store import MemoryEventStore
from rune.store.projections import ProjectionEngine
from rune.store.view_pass import Pass
from tests.fakes.clock import CountedClock
from tests.fakes.ids import CountedIds
from tests.store.builders import an_id
from tests.store.spine import AnotherStore, Reports, a_memory_store, count_of, notes, open_views


async def a_long_store(count: int = 1200) -> MemoryEventStore:
    store = a_memory_store()
    await store.append_many(notes(count))
    return store


class Following:
    """Views that tell how far they are, and are called off at a number."""

    def __init__(self, path: Path, store: EventStore, stop_at: int = 0, *, by_closing: bool = False) -> None:
        self.told: list[Pass] = []
        self.halfway = threading.Event()
        self.go_on = threading.Event()
        self._stop_at = stop_at
        self._by_closing = by_closing
        self.engine = ProjectionEngine(
            path, store, lambda _: SessionEnded(id=""), (), Reports().views.append, on_progress=self.tell
        )

    def tell(self, told: Pass) -> None:
        self.told.append(told)
        if told.applied != self._stop_at:
            return
        if self._by_closing:
            self.halfway.set()
            assert self.go_on.wait(10)
        else:
            self.engine.stop()


async def test_a_long_pass_tells_how_far_it_is_and_a_short_one_does_not(views: Path) -> None:
    store = await a_long_store()
    following = Following(views, store)
    following.engine.catch_up()
    whole = [Pass(500, 1200), Pass(1000, 1200), Pass(1200, 1200)]
    assert following.told == whole
    await store.append_many(notes(10, start=5000))
    following.engine.catch_up()
    assert following.told == whole
    following.engine.rebuild()
    assert following.told[3:] == [Pass(500, 1210), Pass(1000, 1210), Pass(1210, 1210)]
    following.engine.close()


async def test_a_pass_that_is_called_off_keeps_what_it_applied_and_the_next_start_goes_on(views: Path) -> None:
    store = await a_long_store()
    following = Following(views, store, stop_at=500)
    with pytest.raises(ViewsStoppedError, match="stopped"):
        following.engine.catch_up()
    assert following.told == [Pass(500, 1200)]
    following.engine.close()

    again = Following(views, store)
    engine = again.engine
    assert engine.catch_up().applied == 700
    assert again.told == [Pass(500, 700), Pass(700, 700)]
    stopped = engine.state_hash("identities")
    engine.rebuild()
    assert engine.state_hash("identities") == stopped
    engine.close()


async def test_after_a_stop_no_pass_begins_and_no_half_of_the_views_is_read(views: Path) -> None:
    following = Following(views, await a_long_store(), stop_at=500)
    engine = following.engine
    with pytest.raises(ViewsStoppedError):
        await engine.caught_up()
    for act in (engine.catch_up, engine.rebuild, lambda: engine.lookup(an_id("evt", 51)), lambda: count_of(engine)):
        with pytest.raises(ViewsStoppedError):
            act()
    assert following.told == [Pass(500, 1200)]
    engine.close()


async def test_views_that_had_caught_up_are_read_after_a_stop(views: Path) -> None:
    store = await a_long_store(20)
    engine = open_views(views, store)
    engine.catch_up()
    engine.stop()
    await store.append_many(notes(1, start=5000))
    with pytest.raises(ViewsStoppedError):
        engine.rebuild()
    assert count_of(engine) == 20
    assert engine.lookup(an_id("evt", 51)) is not None
    engine.close()


async def test_closing_does_not_wait_for_a_long_pass(views: Path) -> None:
    following = Following(views, await a_long_store(), stop_at=500, by_closing=True)
    waiting = asyncio.create_task(following.engine.caught_up())
    assert await asyncio.to_thread(following.halfway.wait, 10)
    closing = asyncio.create_task(asyncio.to_thread(following.engine.close))
    with pytest.raises(StorageUnavailableError, match="closed"):
        while True:
            await following.engine.run(lambda: None)
    following.go_on.set()
    await closing
    with pytest.raises(StorageUnavailableError):
        await waiting
    assert following.told == [Pass(500, 1200)]


async def test_a_stop_within_a_transactions_worth_of_bodies_is_heard(views: Path) -> None:
    store = Stops(await a_long_store(), at=37)
    engine = open_views(views, store)
    store.engine = engine
    with pytest.raises(ViewsStoppedError):
        engine.catch_up()
    assert store.given <= 500
    engine.close()


class Stops(AnotherStore):
    """Calls its reader off when it gives its event number `at`."""

    engine: ProjectionEngine
    given = 0

    def __init__(self, whole: MemoryEventStore, at: int) -> None:
        super().__init__(whole)
        self._at = at

    def read(self, after: Cursor, *, seen: Cursor | None = None) -> Iterator[tuple[Offset, EventEnvelope]]:
        for item in self.whole.read(after, seen=seen):
            self.given += 1
            if self.given == self._at:
                self.engine.stop()
            yield item


async def test_what_is_emitted_after_a_stop_is_durable_and_no_failure(views: Path) -> None:
    store, reports = await a_long_store(20), Reports()
    engine = open_views(views, store, reports=reports)
    ledger = Ledger(store, engine, CountedClock(), CountedIds(), report=reports.of_ledger)
    engine.catch_up()
    engine.stop()
    await ledger.emit(Draft(event_type="session.ended", body=SessionEnded(id=an_id("ses", 1)), partition="system"))
    ledger.offer("session.ended", SessionEnded(id=an_id("ses", 2)), partition="system")
    await ledger.close()
    assert len(list(store.read({}))) == 22
    assert (reports.ledger, reports.views, ledger.dropped) == ([], [], 0)
    engine.close()
    engine = open_views(views, store)
    assert engine.catch_up().applied == 2
    engine.close()
