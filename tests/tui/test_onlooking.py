"""A conversation that another Rune has open is followed here, and goes on here once it is free."""

from pathlib import Path

from rune.models.scripted import says
from rune.tui.widgets.held_bar import HeldBar
from tests.tui.stage import open_in_two, said, stage


async def test_what_is_said_there_is_shown_here_and_once_it_is_closed_there_it_is_open_here(tmp_path: Path) -> None:
    async with open_in_two(tmp_path, there=[says("The Oder."), says("The Spree.")]) as (first, second, identity):
        assert "rune sessions" not in second.text()
        await said(first, "another", "The Oder.")
        await second.until_shown("another", "The Oder.")
        await second.pilot.press("escape")
        await second.until_gone("esc: only read")
        assert second.shows("\N{MIDDLE DOT} f6 fork")
        await said(first, "one more", "The Spree.")
        await second.until_shown("one more", "The Spree.")
        assert second.text().count("The Oder.") == 1
        assert second.shows("\N{MIDDLE DOT} f6 fork")
        await first.say("/new")
        await second.until_gone("f6")
        assert not second.talk.held_elsewhere
        assert second.surface.operator.holds(identity)


async def test_what_waits_is_sent_once_it_is_closed_there(tmp_path: Path) -> None:
    async with open_in_two(tmp_path, [says("The Elbe.")]) as (first, second, identity):
        await second.say("another")
        await second.until_shown("what you sent waits")
        await first.say("/new")
        await second.until_shown("The Elbe.")
        await second.idle()
        assert second.talk.conversation_id == identity
        assert not second.app.chat.query_one(HeldBar).display


async def test_however_often_the_key_is_pressed_there_is_one_fork(tmp_path: Path) -> None:
    async with open_in_two(tmp_path, [says("The Elbe.")]) as (_first, second, identity):
        await second.say("another")
        await second.until_shown("what you sent waits")
        await second.pilot.press("f6", "f6", "f6")
        await second.until_shown("The Elbe.")
        await second.idle()
        await second.settled()
        assert len(await second.surface.views.rows()) == 2
        assert second.talk.conversation_id != identity


async def test_a_fork_is_told_by_its_title_and_the_figure_of_its_parent_is_shown_at_once(tmp_path: Path) -> None:
    async with stage(tmp_path, [says("The Rhine."), says("The Elbe.")], size=(120, 24)) as at:
        await said(at, "name a river", "The Rhine.")
        use = at.talk.context
        assert use is not None
        await at.say("/fork")
        await at.until_shown('a fork of "name a river": 2 messages are shared, the original stays as it is')
        assert at.talk.context == use
        assert not at.shows("cnv_")
        await said(at, "another", "The Elbe.")
        await at.say("/fork 1 back")
        await at.until_shown("2 messages are shared, the original stays as it is")
        await at.until_gone("The Elbe.")
        assert at.talk.context is None
