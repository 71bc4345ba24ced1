"""/resume, /new and /context, as a person uses them."""

from pathlib import Path

import pytest

from rune.errors import LeaseHeldError, NotFoundError, UsageError
from rune.models.scripted import says
from rune.surface.commands.command import CommandCall
from rune.surface.results import CommandResult
from tests.turn.rig import Rig, rig


async def run(it: Rig, line: str, conversation_id: str | None = None) -> CommandResult:
    call = CommandCall(argument="", folder=str(it.folder), channel="task", conversation_id=conversation_id)
    return await it.services.surface.commands.run(line, call)


async def test_resume_lists_the_conversations_here_and_who_has_them_open(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", lambda _: says("yes")) as it, rig(tmp_path / "home", []) as other:
        assert (await run(it, "/resume")).text == "no conversation in this folder yet"
        one, two = await it.say("about rivers " * 9), await it.say("about lakes")
        lines = (await run(it, "/resume", two.conversation_id)).text.splitlines()
        assert lines[0].split(maxsplit=4) == ["*", f"…{two.conversation_id[-6:]}", "just", "now", "about lakes"]
        assert lines[1].startswith(f"  …{one.conversation_id[-6:]}  just now ")
        assert "about rivers about rivers about rivers" in lines[1]
        elsewhere = await run(other, "/resume")
        holder = await other.services.surface.views.holder(one.conversation_id)
        assert holder is not None
        assert [line.endswith(f"(open in process {holder.pid})") for line in elsewhere.text.splitlines()] == [True] * 2
        assert max(len(line) for line in [*lines, *elsewhere.text.splitlines()]) <= 80
        assert [row["id"] for row in elsewhere.data["conversations"]] == [two.conversation_id, one.conversation_id]


async def test_resume_opens_the_conversation_that_is_meant(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", lambda _: says("yes")) as it:
        said = await it.say("about rivers")
        for named in (said.conversation_id[-8:], f"…{said.conversation_id[-6:]}"):
            opened = await run(it, f"/resume {named}")
            assert opened.opens == said.conversation_id
        assert opened.text == f"{said.conversation_id}: about rivers, 2 messages"
        with pytest.raises(NotFoundError) as refused:
            await run(it, "/resume zzzz")
        assert "/resume" in refused.value.hint


async def test_new_says_where_the_surface_goes(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", lambda _: says("yes")) as it:
        said = await it.say("about rivers")
        fresh = await run(it, "/new", said.conversation_id)
        assert fresh.opens == fresh.data["conversation_id"] != said.conversation_id
        assert not it.operator.holds(said.conversation_id)


async def test_new_is_refused_where_another_process_has_the_conversation(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", lambda _: says("yes")) as it, rig(tmp_path / "home", []) as other:
        said = await it.say("about rivers")
        with pytest.raises(LeaseHeldError):
            await run(other, "/new", said.conversation_id)


async def test_context_shows_the_newest_prompt_of_the_conversation(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", lambda _: says("yes")) as it:
        empty = await run(it, "/context")
        assert (empty.text, empty.data) == (
            "nothing was sent to a model in this conversation yet",
            {"context": None},
        )
        said = await it.say("about rivers " * 500)
        await it.say("another conversation")
        shown = await run(it, "/context", said.conversation_id)
        assert shown.text.startswith("green: ")
        assert "your message" in shown.text
        assert shown.data["blocks"]["user"] > 500
        assert shown.data["context"]["level"] == "green"
        fresh = await run(it, "/new", said.conversation_id)
        assert (await run(it, "/context", fresh.opens)).data == {"context": None}
        with pytest.raises(UsageError):
            await run(it, "/context now", said.conversation_id)
