"""Views that something else changed: they are made anew once, and no error of SQLite gets out."""

from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from rune.errors import DamagedViewsError, RuneError, StorageUnavailableError
from rune.records.envelope import EventEnvelope
from rune.records.events import SessionEnded
from rune.records.record import Record
from rune.store.event_index import last_pseq
from rune.store.event_store import Offset
from rune.store.projections import ProjectionEngine
from tests.store.builders import CONVERSATION, an_id
from tests.store.spine import (
    STORY,
    Reports,
    Spine,
    a_memory_store,
    a_spine,
    a_store_with_a_story,
    count_of,
    hashes,
    notes,
    open_views,
)

TABLES = (
    "cursor", "events", "forks", "lost", "conversations", "messages", "archived", "tasks", "turns", "traces",
    "searchable", "search",
)  # fmt: skip
ROWS = (
    "messages SET record = x'7b7d'",
    "messages SET record = x'ff'",
    "messages SET record = 5",
    "conversations SET record = 'text'",
    "conversations SET last_said = 'soon'",
    "conversations SET last_said = 4611686018427387904, said_at = ''",
    "conversations SET title = CAST(x'ff' AS TEXT)",
    "tasks SET record = x'5b5d'",
    "turns SET record = x'00'",
    "traces SET summary = x'7b7d'",
    "searchable SET message_id = place",
    "events SET segment = 'first'",
    "events SET position = x'00'",
    "events SET writer = x'00'",
    "events SET pseq = 'last'",
    "cursor SET seq = 'far'",
    "cursor SET seq = 1000",
    "cursor SET position = NULL",
)


def damage(views: Path, statement: str) -> None:
    """Do to the file what a curious person or another program might."""
    connection = apsw.Connection(str(views))
    connection.execute(statement).fetchall()
    connection.close()


async def everything(spine: Spine) -> list[object]:
    """Return what every reader tells."""
    engine = spine.engine
    return [
        await spine.conversations.get(CONVERSATION),
        await spine.conversations.messages(CONVERSATION),
        await spine.conversations.archived_ids(CONVERSATION),
        await spine.tasks.get(an_id("tsk", 1)),
        await spine.turns.turns(CONVERSATION),
        await spine.traces.summaries(),
        await spine.traces.newest(),
        await engine.query(lambda connection: last_pseq(connection, CONVERSATION)),
        engine.find(an_id("evt", 4)),
        list(engine.recent(None, 3)),
        (await engine.caught_up()).forks,
        await spine.conversations.search("rivers three"),
        hashes(engine),
        engine.state_hash("lost"),
    ]


@pytest.mark.parametrize("running", [True, False], ids=["found while running", "found by the next start"])
@pytest.mark.parametrize("change", [*(f"DROP TABLE {table}" for table in TABLES), *(f"UPDATE {row}" for row in ROWS)])
async def test_a_lost_table_or_a_changed_row_is_mended_once(change: str, running: bool, views: Path) -> None:
    store = await a_store_with_a_story()
    async with a_spine(views, store) as spine:
        before = await everything(spine)
        if running:
            damage(views, change)
            assert await everything(spine) == before
            assert len(spine.reports.views) == 1
            assert await everything(spine) == before
            assert len(spine.reports.views) == 1
            return
    damage(views, change)
    async with a_spine(views, store) as spine:
        assert await everything(spine) == before
        assert len(spine.reports.views) == 1


async def test_what_is_damaged_again_is_mended_again(views: Path) -> None:
    engine = open_views(views, await a_store_with_a_story())
    before = hashes(engine)
    for _ in range(3):
        damage(views, "DROP TABLE turns")
        assert hashes(engine) == before
    engine.close()


APSW = sorted(
    (found for found in vars(apsw).values() if isinstance(found, type) and issubclass(found, apsw.Error)),
    key=lambda kind: kind.__name__,
)


@pytest.mark.parametrize("kind", APSW, ids=lambda kind: kind.__name__)
async def test_no_error_of_sqlite_leaves_the_store(kind: type[apsw.Error], views: Path) -> None:
    store = await a_store_with_a_story()
    engine = open_views(views, store)

    def fail(_: apsw.Connection) -> object:
        raise kind("as SQLite says it")

    projecting = ProjectionEngine(
        views.with_name("other.db"), store, lambda _: SessionEnded(id=""), (Failing(kind),), Reports().views.append
    )
    acts: tuple[Callable[[], object], ...] = (lambda: engine.read(fail), projecting.catch_up, projecting.rebuild)
    for act in acts:
        for _ in range(2):
            with pytest.raises(StorageUnavailableError) as raised:
                act()
            assert raised.value.hint
    with pytest.raises(RuneError):
        await engine.query(fail)
    assert count_of(engine) == len(STORY)
    engine.close()
    projecting.close()


class Failing:
    """A projection whose SQL fails at every event."""

    name = "failing"
    ddl = "CREATE TABLE seen (id TEXT);"
    tables = ("seen",)

    def __init__(self, kind: type[apsw.Error]) -> None:
        self._kind = kind
        self.tries = 0

    def apply(self, connection: apsw.Connection, offset: Offset, envelope: EventEnvelope, body: Record) -> None:
        self.tries += 1
        raise self._kind("as SQLite says it")


async def test_what_a_new_file_does_not_mend_is_not_rebuilt_again_and_again(views: Path) -> None:
    store, failing, reports = a_memory_store(), Failing(apsw.SQLError), Reports()
    await store.append_many(notes(3))
    engine = ProjectionEngine(views, store, lambda _: SessionEnded(id=""), (failing,), reports.views.append)
    for _ in range(5):
        with pytest.raises(StorageUnavailableError, match="made anew"):
            engine.catch_up()
    assert failing.tries == 6
    assert [type(error) for error in reports.views] == [DamagedViewsError]
    engine.close()
