"""A home that cannot be written, or that goes away under the app: it stays usable, and nothing typed is lost."""

import shutil
from collections.abc import Generator
from pathlib import Path

import pytest

from rune.models.scripted import says
from rune.tui.widgets.notice_bar import NoticeBar, warning_lines
from tests.small_disk import SmallDisk, needs_root, small_disk
from tests.tui.stage import Stage, stage
from tests.two_slots import OTHER, damage, two_slots

ANSWERS = [says("the Danube")]
WIDE = (160, 24)  # a message with a path in it is not broken just where a test looks


@pytest.fixture
def disk(tmp_path: Path) -> Generator[SmallDisk]:
    with small_disk(tmp_path / "home") as mounted:
        yield mounted


async def talked(running: Stage) -> None:
    """Say something and get its answer."""
    await running.say("river?")
    await running.until_shown("the Danube")
    await running.idle()


@needs_root
@pytest.mark.parametrize("kind", ["full", pytest.param("read-only", marks=pytest.mark.slow)])
async def test_a_home_that_cannot_be_written_is_read_and_what_is_typed_stays(
    tmp_path: Path, disk: SmallDisk, kind: str
) -> None:
    async with stage(tmp_path, ANSWERS, size=WIDE) as running:
        await talked(running)
    disk.fill() if kind == "full" else disk.make_read_only()
    async with stage(tmp_path, ANSWERS, size=WIDE, carry_on=True) as running:
        await running.until_shown("nothing can be written:", "again.", "river?")
        await running.say("more?")
        await running.until_shown("not sent: nothing can be written", "more?")
        assert running.app.chat.prompts()["task"] == "more?"
        assert running.model.requests == []
        assert not running.shows("kept over a crash")
        await running.pilot.press("ctrl+u")
        await running.say("/new")
        await running.until_gone("river?")
        await running.say("/resume")
        await running.until_shown("2 messages")
        await running.pilot.press("enter")
        await running.until_shown("the Danube")
        await running.type("stays")
        running.app.leave()
        await running.until(lambda: running.app.return_code is not None, "the end")
        kept = running.app.goodbye
    assert [line for line in kept if "stays" in line] == ["not sent: stays"]
    disk.make_room() if kind == "full" else disk.make_writable()
    async with stage(tmp_path, [says("the Rhine")], size=WIDE, carry_on=True) as running:
        await running.say("more?")
        await running.until_shown("the Rhine")
        assert not running.shows("nothing can be written")


@needs_root
async def test_a_disk_that_gets_full_costs_no_message_and_no_restart(tmp_path: Path, disk: SmallDisk) -> None:
    async with stage(tmp_path, [*ANSWERS, says("the Rhine"), says("the Elbe")]) as running:
        await talked(running)
        disk.fill()
        await running.say("more?")
        await running.until_shown("No space left on device", "waiting 1/1", "more?")
        assert len(running.model.requests) == 1
        await running.say("/resume")
        await running.until_shown("open here")
        await running.pilot.press("escape")
        disk.make_room()
        await running.say("last?")
        await running.until_shown("the Rhine", "the Elbe")
        await running.idle()
    async with stage(tmp_path, size=WIDE, carry_on=True) as running:
        await running.until_shown("river?", "more?", "the Rhine", "last?", "the Elbe")


@needs_root
async def test_a_disk_that_gets_read_only_costs_no_message_and_no_restart(tmp_path: Path, disk: SmallDisk) -> None:
    async with stage(tmp_path, [*ANSWERS, says("the Rhine")], size=WIDE) as running:
        with disk.covered():
            await running.say("river?")
            await running.until_shown("Read-only file system", "waiting 1/1", "river?")
            assert running.model.requests == []
        await running.pilot.press("enter")
        await running.until_shown("the Danube")


async def test_a_home_that_is_deleted_under_the_app_is_told_and_the_app_stays(tmp_path: Path) -> None:
    async with stage(tmp_path, [*ANSWERS, says("the Rhine")], size=WIDE) as running:
        await talked(running)
        shutil.rmtree(tmp_path / "home")
        await running.say("more?")
        await running.until_shown("Start Rune again", "waiting 1/1", "more?")
        assert len(running.model.requests) == 1
        await running.say("/resume")
        await running.settled()
        await running.pilot.press("escape")
        await running.say("/sessions")
        await running.until_shown("the folder of the journal is gone")
        assert not running.shows("There is no conversation")
        await running.pilot.press("escape")
        await running.say("/health")
        await running.until_shown("/health")
        assert running.app.return_code is None


async def test_that_nothing_is_kept_in_the_history_is_told_once(tmp_path: Path) -> None:
    async with stage(tmp_path, size=WIDE) as running:
        (tmp_path / "home" / "state" / "prompt_history").mkdir()  # which nothing can be written into
        for line in ("/copy", "/copy 2", "/copy 3"):
            await running.say(line)
            await running.settled()
        await running.until_shown("what you send is not kept in the history")
        assert running.text().count("kept in the history") == 1


async def test_where_there_are_few_rows_the_prompt_keeps_its_own(tmp_path: Path) -> None:
    async with stage(tmp_path, size=(20, 8)) as running:
        notice = running.app.chat.query_one(NoticeBar)
        notice.warn("nothing can be written: the disk is full. " * 4)
        await running.until_shown("nothing can be", "\u2026", "> message")
        assert notice.size.height == 2
        await running.pilot.resize_terminal(20, 15)
        await running.until(lambda: notice.size.height == 5, "more rows of it")


async def test_what_is_typed_is_kept_before_it_is_sent(tmp_path: Path) -> None:
    async with stage(tmp_path) as running:
        await running.type("a")
        drafts = tmp_path / "home" / "state" / "drafts"
        await running.until(lambda: any('"a"' in each.read_text() for each in drafts.glob("*.json")), "the draft")
        await running.type("b")
        await running.until(lambda: any('"ab"' in each.read_text() for each in drafts.glob("*.json")), "the draft")


async def test_views_that_are_deleted_under_the_app_are_made_anew(tmp_path: Path) -> None:
    async with stage(tmp_path, [*ANSWERS, says("the Rhine")], size=WIDE) as running:
        await talked(running)
        for part in (tmp_path / "home").glob("views-*"):
            part.unlink()
        await running.say("more?")
        await running.until_shown("the Rhine")
        await running.idle()
        await running.say("/resume")
        await running.until_shown("4 messages")


@pytest.mark.parametrize("width", [1, 9, 40, 80])
def test_why_nothing_can_be_written_is_whole_at_every_width(width: int) -> None:
    rows = warning_lines("nothing can be written:\n/home is \x1b[2Jfull", width)
    assert all(row.cells <= max(width, 2) for row in rows)
    said = "".join("".join(span.text for span in row.spans).strip() for row in rows)
    assert "\x1b" not in said
    assert said.replace(" ", "").startswith("nothingcanbewritten:/homeis")
    assert warning_lines("", width) == ()


@pytest.mark.parametrize("after", ["a message", "a list"])
async def test_damage_that_comes_up_while_the_app_runs_is_said_from_then_on(tmp_path: Path, after: str) -> None:
    home = tmp_path / "home"
    await two_slots(home)
    async with stage(tmp_path, [*ANSWERS, *ANSWERS], size=WIDE) as running:
        await talked(running)
        assert running.app.chat.query_one(NoticeBar).size.height == 0
        damage(home)
        for part in home.glob("views-*"):
            part.unlink()  # so that all of the journal is read again
        if after == "a message":
            await running.say("more?")
            await running.until_shown("waiting 1/1")
        else:
            await running.say("/sessions")
            await running.until_shown("Conversations of all folders")
            await running.settled()
            await running.pilot.press("escape")
        await running.until_shown("nothing can be written", OTHER)
        await running.until(lambda: running.app.chat.query_one(NoticeBar).size.height > 0, "the row above the prompt")
        await running.say("last?")
        await running.until_shown("not sent: nothing can be written")
        assert running.app.chat.prompts()["task"] == "last?"
        assert len(running.model.requests) == 1
