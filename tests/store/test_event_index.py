"""The index of events: where each lies, which are the newest, which places were given twice."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rune.errors import JournalMovedError, NotFoundError
from rune.records.envelope import EventEnvelope
from rune.records.events import JournalForked
from rune.store.codec import content_of
from rune.store.event_index import unreported_forks
from rune.store.event_store import Cursor, Offset
from tests.store.builders import CONVERSATION, a_message, an_id
from tests.store.spine import (
    STORY,
    AnotherStore,
    Reports,
    a_memory_store,
    a_store_with_a_story,
    an_event,
    notes,
    open_views,
)


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

    def read(self, after: Cursor, *, seen: Cursor | None = None) -> Iterator[tuple[Offset, EventEnvelope]]:
        if not self.given:
            self.given = True
            yield from super().read(after, seen=seen)


async def test_the_newest_events_are_read_from_the_end(views: Path) -> None:
    store = await a_store_with_a_story()
    await store.append_many(notes(20))
    engine = open_views(views, store)

    def ids(types: list[str] | None, limit: int) -> list[str]:
        return [envelope.event_id for _, envelope in engine.recent(types, limit)]

    assert ids(None, 3) == [an_id("evt", number) for number in (68, 69, 70)]
    assert ids(["user.message", "turn.started"], 5) == [an_id("evt", 3), an_id("evt", 4)]
    assert ids(["user.message"], 0) == []
    assert ids(None, -1) == []
    assert ids(None, -(10**30)) == []
    assert len(ids(None, 10**30)) == len(STORY) + 20
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

    def read(self, after: Cursor, *, seen: Cursor | None = None) -> Iterator[tuple[Offset, EventEnvelope]]:
        if self.moved and after:
            self.moved = False
            raise JournalMovedError("the segment is shorter")
        return self.whole.read(after, seen=seen)
