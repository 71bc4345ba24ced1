"""A views file is looked at as it lies there: nothing is made, nothing changes."""

import contextlib
import os
from pathlib import Path

import pytest

from rune.store.event_store import EventStore
from rune.store.mending.views_inspection import inspect_views
from tests.small_disk import small_disk
from tests.store.mending.test_journal_inspection import content
from tests.store.spine import a_store_with_a_story, open_views


def scribble(views: Path, place: int, what: bytes) -> None:
    data = bytearray(views.read_bytes())
    data[place : place + len(what)] = what
    views.write_bytes(data)


def changed(folder: Path) -> int:
    """Return when a name in a folder came or went last."""
    return folder.stat().st_mtime_ns


def test_where_there_is_none_none_is_made(views: Path) -> None:
    state = inspect_views(views)
    assert (state.there, state.problem, state.fts5) == (False, "", True)
    assert list(views.parent.iterdir()) == []


async def test_closed_views_say_how_far_they_have_come(views: Path) -> None:
    store = await a_store_with_a_story()
    engine = open_views(views, store)
    engine.catch_up()
    engine.close()
    before, when = content(views.parent), changed(views.parent)
    state = inspect_views(views)
    assert (state.there, state.problem) == (True, "")
    assert {writer: at.seq for writer, at in state.cursor.items()} == {w: at.seq for w, at in store.head().items()}
    assert state.bytes == len(before[str(views)][0])
    assert (content(views.parent), changed(views.parent)) == (before, when)


async def test_views_that_somebody_has_open_are_read_with_their_log(views: Path) -> None:
    store = await a_store_with_a_story()
    engine = open_views(views, store)
    with contextlib.closing(engine):
        engine.catch_up()
        names = sorted(path.name for path in views.parent.iterdir())
        state = inspect_views(views)
        assert state.cursor.keys() == store.head().keys()
        assert sorted(path.name for path in views.parent.iterdir()) == names
        assert engine.catch_up().applied == 0


def test_garbage_is_a_problem_and_stays_as_it_is(views: Path) -> None:
    views.write_bytes(os.urandom(5000))
    before = content(views.parent)
    state = inspect_views(views)
    assert "not a database" in state.problem
    assert content(views.parent) == before


@pytest.mark.parametrize(
    ("place", "what"), [(36, b"\x00\x00\x00\x07"), (8192, b"\xff" * 200)], ids=["free-list", "page"]
)
async def test_damage_inside_is_found(views: Path, place: int, what: bytes) -> None:
    engine = open_views(views, await a_store_with_a_story())
    engine.catch_up()
    engine.close()
    scribble(views, place, what)
    assert inspect_views(views).problem


async def test_a_log_that_cannot_be_read_is_told_and_is_no_damage(tmp_path: Path) -> None:
    store = await a_store_with_a_story()
    with small_disk(tmp_path / "disk") as disk:
        views = leave_as_a_kill_does(disk.path / "views-1.db", store)
        assert not inspect_views(views).log_unread
        leave_as_a_kill_does(views, store)
        disk.make_read_only()
        state = inspect_views(views)
        assert (state.there, state.log_unread, state.problem) == (True, True, "")


def leave_as_a_kill_does(views: Path, store: EventStore) -> Path:
    """Make views of which all is still in their log."""
    views.unlink(missing_ok=True)
    log = Path(f"{views}-wal")
    with contextlib.closing(open_views(views, store)) as engine:
        engine.catch_up()
        parts = views.read_bytes(), log.read_bytes()
    for path, content_ in zip((views, log), parts, strict=True):
        path.write_bytes(content_)
    Path(f"{views}-shm").unlink(missing_ok=True)
    return views
