"""Damage in a slot that is not one's own: everything is opened for reading, and what finds it later writes no more."""

import resource
import shutil
from pathlib import Path

import pytest

from rune.bootstrap import Services
from rune.errors import CorruptJournalError, StorageError, StorageUnavailableError
from rune.surface.commands.command import CommandCall
from tests.store.journals import segment
from tests.two_slots import OTHER, a_rune, damage, say, two_slots


async def health(services: Services) -> str:
    call = CommandCall(argument="", folder="/", channel="task", conversation_id=None)
    return (await services.surface.commands.run("/health", call)).text


async def test_a_home_with_damage_in_another_slot_is_opened_for_reading(tmp_path: Path) -> None:
    home = tmp_path / "home"
    await two_slots(home)
    damage(home)
    before = {path.name: path.read_bytes() for path in (home / "journal").glob("*.jsonl")}
    services = a_rune(home)
    await services.start()
    try:
        why = services.surface.refusal()
        assert isinstance(why, CorruptJournalError)
        assert why.file.endswith(OTHER)
        assert len(await services.surface.views.conversations()) == 2
        assert "reading only" in await health(services)
        journal = [row for row in services.health.snapshot() if row.subsystem == "journal"]
        assert [(row.failures, row.context) for row in journal] == [(1, "opening it")]
    finally:
        await services.close()
    assert {path.name: path.read_bytes() for path in (home / "journal").glob("*.jsonl")} == before


async def test_damage_that_comes_up_later_ends_the_writing_and_not_the_app(tmp_path: Path) -> None:
    home = tmp_path / "home"
    await two_slots(home)
    services = a_rune(home)
    await services.start()
    try:
        assert await say(services, "name a river") == "answered"
        identity = (await services.surface.views.conversations())[-1].record.id
        damage(home)
        for path in home.glob("views-*"):
            path.unlink()  # so that all of the journal is read again
        with pytest.raises(StorageUnavailableError, match=OTHER):
            await services.surface.operator.hold(identity)
        assert "reading only" in await health(services)
        (journal,) = [row for row in services.health.snapshot() if row.subsystem == "journal"]
        assert (journal.failures, journal.tier, journal.context) == (1, 1, "reading it")
        assert await services.surface.views.conversations() != []
    finally:
        await services.close()


async def test_a_conversation_that_is_open_is_told_why_its_next_message_is_not_taken(tmp_path: Path) -> None:
    home = tmp_path / "home"
    await two_slots(home)
    services = a_rune(home)
    await services.start()
    try:
        assert await say(services, "name a river") == "answered"
        damage(home)
        for path in home.glob("views-*"):
            path.unlink()
        with pytest.raises(StorageUnavailableError, match=f"nothing can be written, only read: .*{OTHER}"):
            await say(services, "and another?")
        with pytest.raises(StorageUnavailableError, match=OTHER):
            await say(services, "and another?")
        assert "reading only" in await health(services)
    finally:
        await services.close()


async def test_while_nothing_can_be_written_the_journal_is_failing_and_then_it_works_again(tmp_path: Path) -> None:
    home = tmp_path / "home"
    services = a_rune(home)
    await services.start()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        assert await say(services, "name a river") == "answered"
        # As on a full disk: no file may grow.
        resource.setrlimit(resource.RLIMIT_FSIZE, (segment(home, "w000-000001.jsonl").stat().st_size, limits[1]))
        with pytest.raises(StorageUnavailableError):
            await say(services, "and another?")
        assert services.health.is_failing("journal")
        assert "journal       reading only" in await health(services)
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert await say(services, "and another?") == "answered"
        assert "journal       ok" in await health(services)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        await services.close()


async def test_a_home_that_was_removed_is_no_journal_that_is_ok(tmp_path: Path) -> None:
    home = tmp_path / "home"
    services = a_rune(home)
    await services.start()
    try:
        assert await say(services, "name a river") == "answered"
        shutil.rmtree(home)
        with pytest.raises(StorageError):
            await say(services, "and another?")
        assert f"journal       reading only  {home / 'journal'}" in await health(services)
    finally:
        await services.close()
