"""Views are held against a fresh rebuild up to the event that they took in last."""

import contextlib
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path

import apsw
import pytest

from rune.host.clock import SystemClock
from rune.host.ids import UlidSource
from rune.records.events import Event
from rune.store.event_store import EventStore
from rune.store.mending.views_comparison import Comparison, TooLongError, compare_views
from rune.store.projections import ProjectionEngine
from tests.store.mending.test_journal_inspection import content
from tests.store.samples import ended
from tests.store.spine import a_store_with_a_story, open_views


@pytest.fixture
async def store(views: Path) -> AsyncGenerator[EventStore]:
    """Give a store with a story, and leave views of it behind."""
    store = await a_store_with_a_story()
    engine = open_views(views, store)
    engine.catch_up()
    engine.close()
    yield store
    await store.close()


def anew(path: Path, store: EventStore) -> ProjectionEngine:
    return open_views(path, store)


def compared(views: Path, store: EventStore, tmp_path: Path) -> Comparison:
    return compare_views(views, store, partial(anew, tmp_path / "unused.db"), tmp_path / "scratch.db")


def one_more() -> Event:
    return ended(UlidSource(SystemClock()))


def changed_by_hand(views: Path, statement: str) -> None:
    with contextlib.closing(apsw.Connection(str(views))) as connection:
        connection.execute(statement)


async def test_views_that_say_what_the_journal_says_do_not_differ(
    views: Path, store: EventStore, tmp_path: Path
) -> None:
    before = content(views.parent)
    assert compared(views, store, tmp_path) == Comparison()
    after = content(views.parent)
    assert {name: after[name] for name in before} == before


async def test_rows_that_somebody_deleted_are_noticed(views: Path, store: EventStore, tmp_path: Path) -> None:
    changed_by_hand(views, "DELETE FROM messages")
    assert compared(views, store, tmp_path).differing == ("conversations",)


async def test_a_table_that_is_gone_is_noticed(views: Path, store: EventStore, tmp_path: Path) -> None:
    changed_by_hand(views, "DROP TABLE tasks")
    assert compared(views, store, tmp_path).differing == ("tasks",)


async def test_events_that_came_since_make_no_difference(views: Path, store: EventStore, tmp_path: Path) -> None:
    await store.append_many([one_more() for _ in range(3)])
    assert compared(views, store, tmp_path) == Comparison()


async def test_views_that_somebody_has_open_are_compared_too(views: Path, store: EventStore, tmp_path: Path) -> None:
    engine = open_views(views, store)
    with contextlib.closing(engine):
        await store.append(one_more())
        engine.catch_up()
        assert compared(views, store, tmp_path) == Comparison()


async def test_a_look_that_takes_too_long_says_that_nothing_was_compared(
    views: Path, store: EventStore, tmp_path: Path
) -> None:
    def go_on(events: int) -> None:
        if events > 2:
            raise TooLongError

    found = compare_views(views, store, partial(anew, tmp_path / "unused.db"), tmp_path / "scratch.db", go_on)
    assert (found.differing, "too long" in found.not_compared) == ((), True)


async def test_views_of_another_form_are_not_compared(views: Path, store: EventStore, tmp_path: Path) -> None:
    changed_by_hand(views, "PRAGMA user_version = 7")
    assert "another form" in compared(views, store, tmp_path).not_compared


async def test_bodies_that_were_lost_since_are_no_reason_to_make_anew(
    views: Path, store: EventStore, tmp_path: Path
) -> None:
    changed_by_hand(views, "INSERT INTO lost VALUES ('evt_00000000000000000000000000')")
    assert "evidence" in compared(views, store, tmp_path).not_compared
