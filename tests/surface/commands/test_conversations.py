"""/search, /sessions, /fork, /rename, /export: what they do, offer, and refuse."""

import json
from pathlib import Path

import pytest

from rune.errors import NotFoundError, UsageError
from rune.models.scripted import says
from rune.surface.commands.command import CommandCall
from rune.surface.results import CommandResult
from tests.turn.rig import Rig, rig


def call(it: Rig, conversation_id: str | None = None) -> CommandCall:
    return CommandCall(argument="", folder=str(it.folder), channel="task", conversation_id=conversation_id)


async def run(it: Rig, line: str, conversation_id: str | None = None) -> CommandResult:
    return await it.services.surface.commands.run(line, call(it, conversation_id))


async def offered(it: Rig, line: str, conversation_id: str | None = None) -> dict[str, str]:
    found = await it.services.surface.commands.candidates(line, call(it, conversation_id))
    return {option.text: option.note for option in found.options}


async def three_turns(it: Rig) -> str:
    first = await it.say("one river")
    for text in ("two rivers", "three rivers"):
        await it.say(text, first.conversation_id)
    return first.conversation_id


async def told(it: Rig, conversation_id: str) -> list[str]:
    return [message.content for message in await it.services.surface.views.transcript(conversation_id)]


async def test_a_fork_shares_everything_or_goes_some_messages_back(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", lambda _: says("yes")) as it:
        conversation = await three_turns(it)
        everything = await told(it, conversation)
        for line, shared in (("/fork", 6), ("/fork 1 back", 4), ("/fork 2", 2)):
            result = await run(it, line, conversation)
            assert result.opens == result.data["conversation_id"]
            assert result.opens is not None
            assert await told(it, result.opens) == everything[:shared]
            assert f"{shared} messages are shared" in result.text
        last = (await it.services.surface.views.transcript(conversation))[2]
        named = await run(it, f"/fork {last.id[-10:]}", conversation)
        assert named.data["at"] == last.id
        row = (await it.services.surface.views.rows())[0]
        assert (row.id, row.forked_from, row.messages) == (named.opens, conversation, 3)
        assert await told(it, conversation) == everything


@pytest.mark.parametrize("line", ["/fork 3", "/fork 0 back", "/fork 9999 back", "/fork a b", "/fork 1 forward"])
async def test_a_fork_of_nothing_is_refused_with_what_is_possible(tmp_path: Path, line: str) -> None:
    async with rig(tmp_path / "home", lambda _: says("yes")) as it:
        conversation = await three_turns(it)
        with pytest.raises(UsageError) as refused:
            await run(it, line, conversation)
        assert refused.value.hint
        with pytest.raises(NotFoundError):
            await run(it, "/fork msg_00000000000000000000000000", conversation)
        with pytest.raises(UsageError):
            await run(it, "/fork")
        assert len(await it.services.surface.views.rows()) == 1


async def test_how_far_back_is_offered_with_the_words_it_goes_back_to(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", lambda _: says("yes")) as it:
        conversation = await three_turns(it)
        expected = {"1 back": "before: three rivers", "2 back": "before: two rivers"}
        assert await offered(it, "/fork ", conversation) == expected
        assert await offered(it, "/fork ") == {}
        assert await offered(it, "/rename ", conversation) == {"one river": "as it is now"}
        end = conversation[-6:]
        assert list(await offered(it, "/export ", conversation)) == [f"one-river-{end}.md", f"one-river-{end}.json"]
        assert await offered(it, "/sessions ") == {str(it.folder): ""}
        # What is typed freely must not be taken for the beginning of something else.
        for line in ("/search ri", "/sessions ri", "/rename one", "/export one"):
            assert await offered(it, line, conversation) == {}


async def test_sessions_lists_all_folders_and_narrows_by_title_folder_and_id(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", lambda _: says("yes")) as it:
        river = await it.say("about rivers")
        it.folder = tmp_path / "elsewhere"
        lake = await it.say("about lakes")
        listed = await run(it, "/sessions", river.conversation_id)
        assert [row["id"] for row in listed.data["conversations"]] == [lake.conversation_id, river.conversation_id]
        assert f"* …{river.conversation_id[-6:]}" in listed.text
        assert str(tmp_path / "elsewhere") in listed.text
        for text, found in (("RIVERS", river), ("elsewhere about", lake), (lake.conversation_id[-8:], lake)):
            (row,) = (await run(it, f"/sessions {text}")).data["conversations"]
            assert row["id"] == found.conversation_id
        assert (await run(it, "/sessions nothing")).data["conversations"] == []


async def test_search_says_where_each_message_is(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", lambda _: says("It ends in the North Sea.")) as it:
        said = await it.say("where does the Rhine end?")
        result = await run(it, '/search "north sea"')
        assert [hit["conversation_id"] for hit in result.data["found"]] == [said.conversation_id]
        assert result.text.splitlines()[0].startswith(said.conversation_id)
        assert (await run(it, "/search danube")).text == "nothing was found"
        with pytest.raises(UsageError) as refused:
            await run(it, "/search")
        assert "/search WORDS" in refused.value.hint


async def test_a_title_is_changed_and_kept_in_one_line(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", lambda _: says("yes")) as it:
        said = await it.say("about rivers")
        await run(it, "/rename Old rivers", said.conversation_id)
        assert (await it.services.surface.views.rows())[0].title == "Old rivers"
        with pytest.raises(UsageError):
            await run(it, "/rename", said.conversation_id)
        with pytest.raises(UsageError):
            await run(it, "/rename x")


async def test_an_export_lands_in_the_folder_of_the_conversation_s_person(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", lambda _: says("yes")) as it:
        said = await it.say("about rivers")
        result = await run(it, "/export", said.conversation_id)
        file = it.folder / f"about-rivers-{said.conversation_id[-6:]}.md"
        assert (result.data["file"], file.read_text().splitlines()[0]) == (str(file), "# about rivers")
        with pytest.raises(UsageError, match="nothing is overwritten"):
            await run(it, "/export", said.conversation_id)
        await run(it, "/export ../a name.JSON", said.conversation_id)
        assert json.loads((tmp_path / "a name.JSON").read_bytes())["version"] == 1
        with pytest.raises(UsageError):
            await run(it, "/export ~nobody-of-that-name/x.md", said.conversation_id)
        with pytest.raises(UsageError):
            await run(it, "/export")
