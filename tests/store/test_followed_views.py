"""Views that are deleted, and made anew by another process, at the very end of a pass."""

import asyncio
import contextlib
from functools import partial
from pathlib import Path

import apsw
import pytest

from rune.errors import CorruptJournalError, StorageError, StorageUnavailableError, ViewsStoppedError
from rune.records.envelope import EventEnvelope
from rune.records.events import BodyErased, Event
from rune.records.record import Record
from rune.store.codec import decode_body
from rune.store.conversation_views import ConversationViews
from rune.store.erasing.eraser import discard_views
from rune.store.erasing.rewriting import rewrite_segment
from rune.store.projections import ProjectionEngine
from rune.store.search import SearchViews
from tests.fakes.ids import CountedIds
from tests.store.builders import CONVERSATION, TIME, a_conversation, a_message, an_id
from tests.store.journals import lines_of, open_now, resealed, segment
from tests.store.mending.damaged import evidence_of
from tests.store.spine import Reports, count_of, events, hashes, notes, open_views


async def test_views_that_another_process_has_just_begun_are_not_taken_for_those_that_were_followed(
    memory_home: Path, ids: CountedIds
) -> None:
    store = open_now(memory_home, ids=ids)
    path = memory_home / "views-1.db"
    engine = open_views(path, store)

    first = engine.read(lambda _: path.stat().st_ino)

    def begin_anew(*_: object) -> None:
        if path.stat().st_ino != first:
            return
        path.unlink()
        another = open_views(path, open_now(memory_home, read_only=True))
        another.stop()
        with pytest.raises(ViewsStoppedError):
            another.catch_up()
        another.close()

    await store.append_many(notes(3))
    engine.catch_up(begin_anew)
    # Else the next place in a conversation would be one that is given already.
    assert engine.lookup(an_id("evt", 53)) is not None
    assert count_of(engine) == 3
    engine.close()
    await store.close()


async def test_bodies_read_before_the_views_were_thrown_away_do_not_come_into_new_ones(
    memory_home: Path, ids: CountedIds
) -> None:
    story = events(
        ("conversation.created", a_conversation()),
        ("user.message", a_message(1, content="sesame is the secret")),
        partition=CONVERSATION,
    )
    gone = story[1].event_id
    erasing = Event(
        event_id=an_id("evt", 90),
        event_type="body.erased",
        partition_key="system",
        actor_id="owner",
        timestamp=TIME,
        body=BodyErased(event_ids=(gone,), reason="asked for"),
    )
    store = open_now(memory_home, ids=ids)
    await store.append_many([*story, erasing])
    await store.close()
    store = open_now(memory_home, read_only=True)
    evidence = evidence_of(memory_home)
    pending = [gone]

    def decode(envelope: EventEnvelope) -> Record:
        body = decode_body(envelope, evidence)
        if envelope.event_id == erasing.event_id and pending:
            # Another process erases, while this one has read all bodies and applied none.
            rewrite_segment(memory_home / "journal", "w000", 1, {pending.pop(): erasing.event_id})
            discard_views(memory_home)
        return body

    path = memory_home / "views-1.db"
    engine = ProjectionEngine(path, store, decode, (ConversationViews(), SearchViews()), Reports().views.append)
    engine.catch_up()
    assert not pending
    engine.close()
    assert not any(b"sesame" in content for content in side_files(path))


def side_files(path: Path) -> list[bytes]:
    return [each.read_bytes() for each in path.parent.glob(f"{path.name}*")]


async def test_of_a_damaged_journal_too_only_the_file_that_was_followed_counts(
    memory_home: Path, ids: CountedIds
) -> None:
    store = open_now(memory_home, ids=ids)
    await store.append_many(notes(3))
    await store.close()
    lines = lines_of(segment(memory_home))
    segment(memory_home).write_bytes(b"".join([*lines, b'{"no":"line of ours"}\n']))
    store = open_now(memory_home, read_only=True)
    path = memory_home / "views-1.db"
    engine = open_views(path, store)
    beginnings: list[str] = []

    def begin_anew(*_: object) -> None:
        if beginnings:
            return
        beginnings.append("made")
        path.unlink()
        another = open_views(path, store)
        another.stop()
        with pytest.raises(ViewsStoppedError):
            another.catch_up()
        another.close()

    with pytest.raises(CorruptJournalError):
        engine.catch_up(begin_anew)
    assert engine.lookup(an_id("evt", 53)) is not None
    engine.close()


async def test_a_log_that_is_taken_from_under_open_views_has_them_made_anew(memory_home: Path, ids: CountedIds) -> None:
    store = open_now(memory_home, ids=ids)
    await store.append_many(notes(3))
    path = memory_home / "views-1.db"
    one, two = open_views(path, store), open_views(path, store)
    assert (count_of(one), count_of(two)) == (3, 3)
    # Who deletes the three files one by one may come to the last two when a Rune has made them anew already.
    path.unlink()
    assert count_of(one) == 3
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink()
    await store.append_many(notes(2, 71))
    for engine in (two, one, two):
        assert await asyncio.to_thread(caught_up, engine) == 5
        assert count_of(engine) == 5
    assert hashes(one) == hashes(two)
    for engine in (one, two):
        engine.close()
    await store.close()
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    assert connection.execute("PRAGMA integrity_check").get == "ok"
    connection.close()


def caught_up(engine: ProjectionEngine) -> int:
    engine.catch_up()
    return count_of(engine)


async def test_an_error_of_reading_has_the_views_opened_once_more(memory_home: Path, ids: CountedIds) -> None:
    store = open_now(memory_home, ids=ids)
    await store.append_many(notes(2))
    engine = open_views(memory_home / "views-1.db", store)
    used: list[apsw.Connection] = []

    def ask(times: int, connection: apsw.Connection) -> object:
        used.append(connection)
        if len(used) <= times:
            raise apsw.IOError("disk I/O error")
        return connection.execute("SELECT count(*) FROM events").get

    assert engine.read(partial(ask, 1)) == 2
    assert len(set(map(id, used))) == 2
    used.clear()
    with pytest.raises(StorageUnavailableError, match="disk I/O error"):
        engine.read(partial(ask, 9))
    assert len(used) == 2
    engine.close()
    await store.close()


@pytest.mark.parametrize("field", ["hlc", "seq", "pseq"])
@pytest.mark.parametrize("value", [-1, (1 << 62) + 1, 1 << 63, 1 << 70], ids=["below", "above", "63", "70"])
async def test_a_number_that_no_rune_can_have_given_is_damage_and_breaks_no_view(
    memory_home: Path, ids: CountedIds, field: str, value: int
) -> None:
    store = open_now(memory_home, ids=ids)
    await store.append_many(notes(1))
    await store.close()
    lines = lines_of(segment(memory_home))
    segment(memory_home).write_bytes(lines[0] + resealed(lines[1], **{field: value}))
    engine = open_views(memory_home / "views-1.db", open_now(memory_home, read_only=True))
    with contextlib.suppress(StorageError):
        engine.catch_up()
    assert count_of(engine) == 0
    engine.close()
