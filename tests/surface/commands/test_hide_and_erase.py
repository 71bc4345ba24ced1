"""/hide, /erase, and what /export and /help fork say to who knows nothing of ids."""

from pathlib import Path

import pytest

from rune.errors import UsageError
from rune.models.scripted import says
from rune.surface.found_text import OF_EACH
from tests.surface.commands.test_conversations import run
from tests.turn.rig import rig


async def test_a_hidden_conversation_is_in_no_list_and_a_new_one_is_begun(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", lambda _: says("yes")) as it:
        said = await it.say("about rivers")
        result = await run(it, "/hide", said.conversation_id)
        assert result.opens not in (None, said.conversation_id)
        assert f"rune sessions unhide {said.conversation_id}" in result.text
        assert said.conversation_id not in [row.id for row in await it.services.surface.views.rows()]
        for line in ("/hide now", "/hide"):
            with pytest.raises(UsageError) as refused:
                await run(it, line)
            assert refused.value.hint


async def test_erase_erases_nothing_and_says_how_it_is_done(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", lambda _: says("yes")) as it:
        said = await it.say("about rivers")
        assert "rune erase ID" in (await run(it, "/erase")).text
        text = (await run(it, "/erase it", said.conversation_id)).text
        assert f"this conversation is {said.conversation_id}" in text
        assert (await it.services.surface.views.conversation(said.conversation_id)).messages == 2


async def test_an_empty_conversation_is_not_exported(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", []) as it:
        begun = (await run(it, "/new")).opens
        with pytest.raises(UsageError, match="nothing was said") as refused:
            await run(it, "/export empty.md", begun)
        assert refused.value.hint
        assert not (it.folder / "empty.md").exists()


async def test_help_says_what_a_message_of_a_fork_is(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", []) as it:
        text = " ".join((await run(it, "/help fork")).text.split())
        assert "MESSAGE: up to the message of that id" in text


async def test_what_occurs_often_in_one_conversation_leaves_room_for_others(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", lambda _: says("yes")) as it:
        rare = await it.say("one river in a longer sentence about many other things that nobody asked for")
        often = await it.say("river")
        for _ in range(4):
            await it.say("river", often.conversation_id)
        found = await it.services.surface.views.search("river", of_each=OF_EACH, limit=4)
        assert [hit.conversation_id for hit in found] == [*[often.conversation_id] * 3, rare.conversation_id]
        assert [hit.more for hit in found] == [0, 0, 2, 0]
        assert "and 2 more in this conversation" in (await run(it, "/search river")).text
        assert len(await it.services.surface.views.search("river")) == 6
