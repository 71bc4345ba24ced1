"""Backups before a change of schema, what a start recovers, and what goes by itself."""

import asyncio
import json
import os
import shutil
from pathlib import Path

import msgspec
import pytest

from rune.bootstrap.core import VIEWS_VERSION
from rune.bootstrap.upkeep import keep_before_change, report_turns, report_views
from rune.errors import DamagedViewsError, StorageUnavailableError
from rune.host.paths import Home
from rune.models.scripted import says
from rune.observability.health import SubsystemHealthRegistry
from rune.records.tools import PreparedCall, ToolCall
from rune.store.mending.backups import BackupBook, Schemas
from rune.turn.recovery import Recovered
from tests.fakes.clock import CountedClock
from tests.store.builders import a_turn
from tests.store.journals import of_a_later_format
from tests.turn.rig import rig, until


def the_home(top: Path) -> Home:
    return Home(config_dir=top, data_dir=top, state_dir=top)


def written_by(home: Path, **changes: object) -> None:
    """Note that another Rune wrote this home."""
    file = home / "state" / "schemas.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


async def test_opening_a_home_of_another_schema_keeps_a_backup_first(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with rig(home, lambda _: says("yes")) as it:
        await it.say()
    assert not (home / "backups").exists()
    before = (home / "journal" / "w000-000001.jsonl").read_bytes()
    written_by(home, views=VIEWS_VERSION - 1, rune="0.0.9")
    for _ in range(2):
        async with rig(home, []):
            pass
    (kept,) = (home / "backups").iterdir()
    assert kept.name.endswith("-0.0.9")
    assert (kept / "journal" / "w000-000001.jsonl").read_bytes() == before


@pytest.mark.parametrize("journal", [1, 0], ids=["same-format", "other-format"])
async def test_without_room_only_what_can_be_taken_back_goes_on(tmp_path: Path, journal: int) -> None:
    home = tmp_path / "home"
    async with rig(home, []):
        pass
    written_by(home, views=VIEWS_VERSION - 1, journal=journal)
    health = SubsystemHealthRegistry(CountedClock(), None)
    full = BackupBook(the_home(home), CountedClock(), free=lambda _: 1000)
    refusal = keep_before_change(full, VIEWS_VERSION, health)
    if journal == 1:
        assert refusal is None
        assert [(row.subsystem, row.tier) for row in health.snapshot()] == [("backup", 1)]
    else:
        assert isinstance(refusal, StorageUnavailableError)
        assert "no room for a backup" in refusal.message
    assert not list((home / "backups").glob("*"))


async def test_a_home_of_a_newer_format_is_not_noted_as_ours(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with rig(home, []):
        pass
    written_by(home, journal=99)
    segment = home / "journal" / "w000-000001.jsonl"
    segment.write_bytes(of_a_later_format(segment.read_bytes()))
    before = (home / "state" / "schemas.json").read_bytes()
    health = SubsystemHealthRegistry(CountedClock(), None)
    assert keep_before_change(BackupBook(the_home(home), CountedClock()), VIEWS_VERSION, health) is None
    assert (home / "state" / "schemas.json").read_bytes() == before


async def test_a_note_of_the_future_beside_a_journal_of_today_does_not_stop_a_backup(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    async with rig(home, lambda _: says("yes")) as it:
        await it.say()
    written_by(home, journal=99, rune="9.9")
    book = BackupBook(the_home(home), CountedClock())
    assert keep_before_change(book, VIEWS_VERSION, SubsystemHealthRegistry(CountedClock(), None)) is None
    assert [Path(backup.folder).name[-3:] for backup in book.kept()] == ["9.9"]


async def test_a_turn_that_a_kill_left_open_is_said_to_be_recovered(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with rig(tmp_path / "dying", [[asyncio.Event()]]) as dying:
        watching = asyncio.create_task(dying.turn())
        await until(lambda: bool(dying.model.requests))
        shutil.copytree(tmp_path / "dying", home)  # as a kill leaves it
        dying.operator.cancel()
        await watching
    async with rig(home, []) as it:
        (row,) = it.services.health.snapshot()
        assert (row.subsystem, row.failures) == ("turns", 0)
        assert row.recovered[0].what.startswith("1 turn was cut off when Rune was killed")


def test_calls_that_may_have_run_are_counted_with_their_turns() -> None:
    health = SubsystemHealthRegistry(CountedClock(), None)
    call = PreparedCall(
        id="c1",
        turn_id=a_turn(1).id,
        call=ToolCall(id="c1", name="write", arguments={}),
        effect="",
        detail="",
        preconditions={},
        digest="",
        confinement="",
        why="",
        rule="",
    )
    report_turns(health, ())
    assert health.snapshot() == ()
    report_turns(health, (Recovered(turn=a_turn(1), may_have_run=(call,)), Recovered(turn=a_turn(2))))
    (fact,) = health.snapshot()[0].recovered
    assert fact.what.startswith("2 turns were cut off")
    assert "what was still being written of an answer is lost" in fact.what
    assert "1 tool call in them may have run" in fact.what


def test_views_that_were_replaced_are_recovered_and_what_else_they_report_has_failed() -> None:
    health = SubsystemHealthRegistry(CountedClock(), None)
    report_views(health, DamagedViewsError("not a database"))
    assert [(row.subsystem, row.failures, len(row.recovered)) for row in health.snapshot()] == [("views", 0, 1)]
    report_views(health, StorageUnavailableError("the disk is full"))
    assert health.snapshot()[0].failures == 1


async def test_damaged_views_are_made_anew_and_said_to_be(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with rig(home, lambda _: says("yes")) as it:
        await it.say()
    (home / f"views-{VIEWS_VERSION}.db").write_bytes(b"garbage" * 1000)
    async with rig(home, []) as it:
        assert [row.subsystem for row in it.services.health.snapshot()] == ["views"]
        assert "made anew" in it.services.health.snapshot()[0].recovered[0].what


async def test_what_is_due_goes_in_the_background_of_a_start(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with rig(home, []):
        pass
    old = home / "undo" / "project" / "1"
    old.parent.mkdir(parents=True)
    old.write_bytes(b"before")
    os.utime(old, (0, 0))
    async with rig(home, []) as it:
        await until(lambda: not old.exists())
        assert it.services.health.snapshot() == ()


def test_the_note_of_schemas_reads_back() -> None:
    schemas = Schemas(journal=1, views=2, rune="0.1.0")
    assert msgspec.json.decode(msgspec.json.encode(schemas), type=Schemas) == schemas
    assert not schemas.differs(msgspec.structs.replace(schemas, rune="0.2.0"))
    assert schemas.differs(msgspec.structs.replace(schemas, views=3))
