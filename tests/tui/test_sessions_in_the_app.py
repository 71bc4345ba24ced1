"""Conversations as a whole in the app: what another Rune has open, forks, searching, lists of all folders."""

import os
from pathlib import Path

from rune.models.scripted import says
from rune.tui.widgets.held_bar import HeldBar
from tests.tui.stage import Stage, open_in_two, said, stage


def sent(at: Stage) -> list[bytes]:
    return [request.messages for request in at.model.requests]


async def test_what_another_rune_holds_is_read_and_forked_by_one_key(tmp_path: Path) -> None:
    async with open_in_two(tmp_path, [says("The Elbe.")]) as (first, second, identity):
        await second.until_shown("The Rhine.", f"open in process {os.getpid()}", "f6 goes on in a fork")
        await second.pilot.press("f6")
        await second.until_shown("a fork of")
        await second.until_gone("f6 goes on")
        assert second.talk.conversation_id != identity
        await said(second, "another", "The Elbe.")
        assert b"name a river" in sent(second)[0]
        assert first.talk.conversation_id == identity


async def test_a_message_to_a_held_conversation_waits_and_goes_into_the_fork(tmp_path: Path) -> None:
    async with open_in_two(tmp_path, [says("The Elbe.")]) as (_first, second, identity):
        await second.pilot.press("escape")
        await second.until_gone("esc: only read")
        assert second.shows("The Rhine.")
        await second.say("another")
        await second.until_shown("what you sent waits", "waiting 1/1", "f6 sends it in a fork")
        assert sent(second) == []
        await second.pilot.press("f6")
        await second.until_shown("The Elbe.")
        await second.idle()
        assert second.outbox.waiting == ()
        assert not second.app.chat.query_one(HeldBar).display
        assert len(await second.surface.views.transcript(identity)) == 2


async def test_once_it_is_free_a_held_conversation_is_gone_on_with_itself(tmp_path: Path) -> None:
    async with open_in_two(tmp_path, [says("The Elbe.")]) as (first, second, identity):
        await second.until_shown("f6 goes on in a fork")
        await first.say("/new")
        await first.until_gone("The Rhine.")
        await second.say("another")
        await second.until_shown("The Elbe.")
        await second.idle()
        await second.until_gone("f6")
        assert second.talk.conversation_id == identity


async def test_carrying_on_where_all_are_open_elsewhere_reads_the_newest(tmp_path: Path) -> None:
    async with stage(tmp_path, [says("The Rhine.")]) as first:
        identity = await said(first, "name a river", "The Rhine.")
        async with stage(tmp_path, [], carry_on=True) as second:
            await second.until_shown("The Rhine.", "esc: only read")
            assert second.talk.conversation_id == identity


async def test_a_fork_of_ones_own_conversation_is_gone_to_and_says_so(tmp_path: Path) -> None:
    async with stage(tmp_path, lambda _: says("yes")) as at:
        identity = await said(at, "one river", "yes")
        await said(at, "two rivers", "two rivers")
        await at.say("/fork 1 back")
        await at.until_shown("a fork of")
        await at.until_gone("two rivers")
        assert at.talk.conversation_id != identity
        assert await at.surface.views.holder(identity) is None
        await at.pilot.press("f6")
        assert len(await at.surface.views.rows()) == 2


async def test_a_message_is_searched_and_its_conversation_opened(tmp_path: Path) -> None:
    async with stage(tmp_path, [says("It ends in the North Sea."), says("In the Baltic.")]) as at:
        identity = await said(at, "the Rhine?", "North Sea.")
        await at.say("/new")
        await at.until_gone("North Sea.")
        await said(at, "the Oder?", "Baltic")
        await at.say("/search")
        await at.until_shown("words to look for")
        await at.type("north")
        await at.until_shown("ends in the North Sea")
        await at.pilot.press("enter")
        await at.until_shown("you    the Rhine?")
        assert at.talk.conversation_id == identity
        await at.say("/search baltic")
        await at.until_shown("In the Baltic.")
        await at.pilot.press("escape")
        await at.until_gone("In the Baltic.")


async def test_sessions_lists_those_of_other_folders_too(tmp_path: Path) -> None:
    async with stage(tmp_path, [says("The Rhine.")], folder=tmp_path / "elsewhere") as at:
        identity = await said(at, "name a river", "The Rhine.")
    async with stage(tmp_path) as at:
        await at.say("/sessions elsewhere")
        await at.until_shown("Conversations of all folders", "name a river", "elsewhere")
        await at.pilot.press("enter")
        await at.until_shown("The Rhine.")
        assert at.talk.conversation_id == identity


async def test_title_and_file_are_told(tmp_path: Path) -> None:
    async with stage(tmp_path, [says("The Rhine.")]) as at:
        await said(at, "name a river", "The Rhine.")
        await at.say("/rename Old rivers")
        await at.until_shown("its title is now: Old rivers")
        await at.say("/export rivers.md")
        await at.until_shown("2 messages written to")
        assert (tmp_path / "project" / "rivers.md").read_text().startswith("# Old rivers\n")
        await at.say("/export rivers.md")
        await at.until_shown("nothing is overwritten")
