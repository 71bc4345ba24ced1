"""The file of the views: deleted, replaced or damaged, it is made anew."""

import contextlib
import threading
from pathlib import Path

import pytest

from rune.errors import DamagedViewsError, StorageUnavailableError, ViewsStoppedError
from rune.records.events import SessionEnded
from rune.store.projections import ProjectionEngine
from rune.store.tasks import TaskViews
from rune.store.view_pass import Pass
from rune.store.views_file import ViewsFile
from tests.store.spine import (
    STORY,
    Reports,
    Unreadable,
    a_memory_store,
    a_store_with_a_story,
    count_of,
    hashes,
    notes,
    open_views,
)


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
    assert [type(error) for error in reports.views] == ([DamagedViewsError] if damage else [])
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


async def test_a_place_where_no_file_can_be_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    engine = open_views(tmp_path / "file" / "views-1.db", a_memory_store())
    for act in (engine.catch_up, engine.rebuild, lambda: engine.lookup("evt_1")):
        with pytest.raises(StorageUnavailableError):
            act()
    engine.close()


EARLIER = ("views-2.db", "views-2.db-wal", "views-2.db-shm", "views-2.lock", "views-1.db-wal", "views-1.lock")
OTHERS = (
    "views-10.db",
    "views-10.db-wal",
    "views-10.lock",
    "views-2.db.bak",
    "views.db",
    "my-views-2.db",
    "views-2b.db",
)


@pytest.fixture
def third(tmp_path: Path) -> Path:
    """Return the place of views of version 3, among those of others."""
    for name in (*EARLIER, *OTHERS):
        (tmp_path / name).write_bytes(b"of another version")
    return tmp_path / "views-3.db"


def names(path: Path) -> set[str]:
    return {each.name for each in path.parent.iterdir()}


async def test_views_of_earlier_versions_go_once_the_new_ones_are_whole(third: Path) -> None:
    store = await a_store_with_a_story()
    await store.append_many(notes(900))
    engine = open_views(third, store)

    def stop(_: Pass) -> None:
        assert names(third) >= {*EARLIER, *OTHERS}
        engine.stop()

    with pytest.raises(ViewsStoppedError):
        engine.catch_up(stop)
    engine.close()
    assert names(third) >= {*EARLIER, *OTHERS}
    engine = open_views(third, store)
    engine.catch_up()
    engine.close()
    assert names(third) == {*OTHERS, "views-3.db", "views-3.lock"}


async def test_views_of_earlier_versions_stay_while_the_journal_cannot_be_read_to_its_end(third: Path) -> None:
    unreadable = Unreadable(await a_store_with_a_story())
    unreadable.unreadable = True
    engine = open_views(third, unreadable)
    with pytest.raises(StorageUnavailableError):
        engine.catch_up()
    engine.close()
    assert names(third) >= {*EARLIER, *OTHERS}


async def test_earlier_views_that_cannot_be_removed_are_told_and_hold_nothing_up(third: Path) -> None:
    third.with_name("views-0.db").mkdir()
    reports = Reports()
    engine = open_views(third, await a_store_with_a_story(), reports=reports)
    assert count_of(engine) == len(STORY)
    assert [type(error) for error in reports.views] == [StorageUnavailableError]
    engine.close()


async def test_a_large_file_that_is_deleted_is_made_anew_and_tells_how_far_it_is(views: Path) -> None:
    store = a_memory_store()
    await store.append_many(notes(1200))
    told = list[Pass]()
    whole = [Pass(500, 1200), Pass(1000, 1200), Pass(1200, 1200)]
    engine = ProjectionEngine(
        views, store, lambda _: SessionEnded(id=""), (), Reports().views.append, on_progress=told.append
    )
    assert count_of(engine) == 1200
    delete(views)
    assert await engine.query(lambda connection: connection.execute("SELECT count(*) FROM events").get) == 1200
    assert told == [*whole, *whole]
    engine.close()


async def test_only_the_owner_may_read_the_views(views: Path) -> None:
    engine = open_views(views, await a_store_with_a_story())
    engine.catch_up()
    assert {path.stat().st_mode & 0o777 for path in views.parent.iterdir()} == {0o600}
    engine.close()


def test_a_file_that_somebody_removes_while_it_is_opened_is_opened_once_more(tmp_path: Path) -> None:
    path, over = tmp_path / "views-1.db", threading.Event()

    def remove() -> None:
        left = 5  # fewer than the attempts there are
        while left and not over.is_set():
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
                left -= 1

    for _ in range(20):
        over.clear()
        remover = threading.Thread(target=remove)
        remover.start()
        file = ViewsFile(path, "CREATE TABLE one (number INTEGER);", lambda _: None)
        try:
            file.opened()
        finally:
            over.set()
            remover.join()
            file.close()
