"""/model, /resume, /new and /context, as a person uses them."""

from pathlib import Path

import pytest

from rune.errors import LeaseHeldError, ModelNotFoundError, NotFoundError, RemoteRefusedError, UsageError
from rune.models.scripted import ScriptedTransport, says
from rune.models.transport import ModelInfo
from rune.surface.commands.command import CommandCall
from rune.surface.results import CommandResult
from tests.surface.test_views import CHATS, Down
from tests.turn.rig import Rig, rig

MODELS = [
    ModelInfo(name="small", provider="scripted", capabilities=CHATS, context_length=8192, size=2_500_000_000),
    ModelInfo(name="large:latest", provider="scripted", capabilities=CHATS, context_length=32768, size=65_000_000),
    ModelInfo(name="far", provider="scripted", capabilities=CHATS, context_length=8192, remote=True),
]


def several() -> ScriptedTransport:
    return ScriptedTransport(lambda _: says("yes"), models=MODELS)


async def run(it: Rig, line: str, conversation_id: str | None = None) -> CommandResult:
    call = CommandCall(argument="", folder=str(it.folder), channel="task", conversation_id=conversation_id)
    return await it.services.surface.commands.run(line, call)


async def test_model_lists_what_there_is_and_marks_the_one_in_use(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", [], model=several()) as it:
        nothing_yet = await run(it, "/model")
        assert "none is chosen" in nothing_yet.text
        assert nothing_yet.data["in_use"] is None
        said = await it.say()
        listed = await run(it, "/model", said.conversation_id)
        lines = listed.text.splitlines()
        assert lines[1].split() == ["*", "small", "2.5", "GB", "8,192", "local"]
        assert lines[2].split()[:5] == ["large:latest", "65", "MB", "32,768", "local"]
        assert lines[3].split()[:4] == ["far", "unknown", "8,192", "remote"]
        assert "local_only" in lines[3]
        assert listed.data["in_use"] == "small"
        assert [model["name"] for model in listed.data["models"]] == ["small", "large:latest", "far"]


async def test_model_chooses_for_this_conversation(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", [], model=several()) as it:
        said = await it.say()
        chosen = await run(it, "/model large", said.conversation_id)
        assert (chosen.model, chosen.data["model"]) == ("large:latest", "large:latest")
        assert "next message" in chosen.text
        assert "* large:latest" in (await run(it, "/model", said.conversation_id)).text
        assert (await it.say("again", said.conversation_id)).model == "large:latest"


async def test_model_without_a_conversation_is_passed_on_with_the_first_message(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", [], model=several()) as it:
        chosen = await run(it, "/model large")
        assert chosen.model == "large:latest"
        assert "first message" in chosen.text
        assert it.facts() == []


async def test_model_refuses_as_a_turn_would(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", [], model=several()) as it:
        with pytest.raises(RemoteRefusedError):
            await run(it, "/model far")
        with pytest.raises(ModelNotFoundError) as refused:
            await run(it, "/model smal")
        assert "small" in refused.value.hint


async def test_model_says_which_server_is_down_and_that_there_is_none(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", [], model=several()) as it:
        said = await it.say()
    async with rig(tmp_path / "home", [], model=Down()) as it:
        listed = await run(it, "/model", said.conversation_id)
        assert listed.text.splitlines() == ["not seen: nobody answers", "small is chosen and cannot be seen now"]
        assert "there is no model" in (await run(it, "/model")).text


async def test_resume_lists_the_conversations_here_and_who_has_them_open(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", lambda _: says("yes")) as it, rig(tmp_path / "home", []) as other:
        assert (await run(it, "/resume")).text == "no conversation in this folder yet"
        one, two = await it.say("about rivers " * 9), await it.say("about lakes")
        lines = (await run(it, "/resume", two.conversation_id)).text.splitlines()
        assert lines[0].split(maxsplit=4) == ["*", two.conversation_id, "just", "now", "about lakes"]
        assert lines[1].startswith(f"  {one.conversation_id}  just now ")
        elsewhere = await run(other, "/resume")
        holder = await other.services.surface.views.holder(one.conversation_id)
        assert holder is not None
        assert [line.endswith(f"(open in process {holder.pid})") for line in elsewhere.text.splitlines()] == [True] * 2
        assert max(len(line) for line in [*lines, *elsewhere.text.splitlines()]) <= 80
        assert [row["id"] for row in elsewhere.data["conversations"]] == [two.conversation_id, one.conversation_id]


async def test_resume_opens_the_conversation_that_is_meant(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", lambda _: says("yes")) as it:
        said = await it.say("about rivers")
        opened = await run(it, f"/resume {said.conversation_id[-8:]}")
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
