"""/model, as a person uses it: list, choose, and what else is done with models."""

from pathlib import Path

import pytest

from rune.errors import ModelNotFoundError, RemoteRefusedError, UsageError
from rune.models.scripted import ScriptedTransport, says
from rune.models.transport import ModelInfo
from rune.surface.commands.command import CommandCall
from rune.surface.results import WIDTH, CommandResult, ModelWork
from tests.surface.test_views import CHATS, Down
from tests.turn.rig import Rig, rig

MODELS = [
    ModelInfo(name="small", provider="scripted", capabilities=CHATS, context_length=8192, size=2_500_000_000),
    ModelInfo(name="large:latest", provider="scripted", capabilities=CHATS, context_length=32768, size=65_000_000),
    ModelInfo(name="far", provider="scripted", capabilities=CHATS, context_length=8192, remote=True),
]


def several(*more: ModelInfo) -> ScriptedTransport:
    return ScriptedTransport(lambda _: says("yes"), models=[*MODELS, *more])


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
        assert lines[1].split()[:7] == ["*", "small", "scripted", "local", "2.5", "GB", "8k"]
        assert lines[2].split()[:6] == ["large:latest", "scripted", "local", "65", "MB", "32k"]
        assert lines[3].split()[:4] == ["far", "scripted", "remote", "-"]
        assert "cannot answer: far (not on this machine, and `model.local_only` is on)" in lines
        assert max(len(line) for line in lines) <= WIDTH
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
        assert listed.text.splitlines() == [
            "not seen: nobody answers",
            "          Start it.",
            "small is chosen and cannot be seen now",
        ]
        assert "no model: start Ollama" in (await run(it, "/model")).text


async def test_what_takes_long_is_handed_to_the_surface(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", [], model=several()) as it:
        assert (await run(it, "/model pull qwen3:4b")).runs == ModelWork(kind="pull", model="qwen3:4b")
        assert (await run(it, "/model probe small")).runs == ModelWork(kind="probe", model="small")


async def test_show_says_everything_about_one(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", [], model=several()) as it:
        shown = await run(it, "/model show large")
        assert shown.text.splitlines()[0] == "large:latest"
        assert "trained for 32,768 tokens" in shown.text
        assert shown.data["row"]["name"] == "large:latest"


async def test_a_protocol_is_fixed_shown_and_taken_back(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", [], model=several()) as it:
        guessed = (await run(it, "/model show small")).data["row"]["protocol"]
        other = "native" if guessed == "constrained" else "constrained"
        assert (
            await run(it, f"/model protocol small {other}")
        ).text == f"small acts by the {other} protocol from now on"
        fixed = (await run(it, "/model show small")).data["row"]
        assert (fixed["protocol"], fixed["protocol_basis"]) == (other, "owner")
        listed = (await run(it, "/model")).data["models"]
        assert next(row["protocol"] for row in listed) == other
        assert f"by the {guessed} protocol from now on (" in (await run(it, "/model protocol small auto")).text


@pytest.mark.parametrize(
    "line", ["pull", "rm", "show a b", "protocol small", "protocol small sometimes", "one two", "probe a b c"]
)
async def test_what_is_not_understood_shows_the_usage(tmp_path: Path, line: str) -> None:
    async with rig(tmp_path / "home", [], model=several()) as it:
        with pytest.raises(UsageError) as refused:
            await run(it, f"/model {line}")
        assert refused.value.hint.startswith("Usage: /model [NAME]")


async def test_a_model_whose_name_is_one_of_the_words_can_be_chosen(tmp_path: Path) -> None:
    odd = ModelInfo(name="show", provider="scripted", capabilities=CHATS, context_length=8192)
    async with rig(tmp_path / "home", [], model=several(odd)) as it:
        assert (await run(it, "/model show")).model == "show"
        assert (await run(it, "/model show show")).data["row"]["name"] == "show"
