"""/thinking, as a person uses it."""

from pathlib import Path

import pytest

from rune.errors import CapabilityMissingError, LeaseHeldError, UsageError
from rune.models.scripted import ScriptedTransport, says
from rune.models.transport import ModelInfo
from rune.surface.commands.command import CommandCall
from rune.surface.results import CommandResult
from tests.turn.rig import Rig, rig

THINKER = ModelInfo(name="thinker", provider="scripted", capabilities=frozenset({"chat", "thinking"}))
PLAIN = ModelInfo(name="plain", provider="scripted", capabilities=frozenset({"chat"}))


def both() -> ScriptedTransport:
    return ScriptedTransport(lambda _: says("yes"), models=[THINKER, PLAIN])


async def run(it: Rig, line: str, conversation_id: str | None = None, *, model: str | None = None) -> CommandResult:
    call = CommandCall(argument="", folder=str(it.folder), channel="task", conversation_id=conversation_id, model=model)
    return await it.services.surface.commands.run(line, call)


async def test_it_shows_the_levels_and_marks_the_one_in_force(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", [], model=both()) as it:
        assert (await run(it, "/thinking")).text.startswith("* auto ")
        said = await it.say()
        chosen = await run(it, "/thinking high", said.conversation_id)
        assert (chosen.thinking, chosen.data) == ("high", {"thinking": "high", "previous": "auto"})
        assert chosen.text.startswith("thinking high from the next message on")
        assert "* high " in (await run(it, "/thinking", said.conversation_id)).text
        await it.say("again", said.conversation_id)
        assert it.model.requests[-1].think == "high"


async def test_before_the_first_message_it_is_passed_on_with_that(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", [], model=both()) as it:
        chosen = await run(it, "/thinking low")
        assert chosen.thinking == "low"
        assert "first message" in chosen.text
        assert it.facts() == []
        with pytest.raises(CapabilityMissingError):
            await run(it, "/thinking low", model="plain")
        assert (await run(it, "/thinking off", model="plain")).thinking == "off"


@pytest.mark.parametrize("argument", ["loud", "HIGH", "high low", "high\x1b[2J"])
async def test_anything_else_is_refused_with_its_usage(tmp_path: Path, argument: str) -> None:
    async with rig(tmp_path / "home", [], model=both()) as it:
        with pytest.raises(UsageError, match="is none of auto, off, on, low, medium, high") as refused:
            await run(it, f"/thinking {argument}")
        assert refused.value.hint == "Usage: /thinking [LEVEL]"
        assert "\x1b" not in refused.value.message


async def test_its_levels_complete(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", [], model=both()) as it:
        call = CommandCall(argument="", folder=str(it.folder), channel="task", conversation_id=None)
        found = await it.services.surface.commands.candidates("/thinking h", call)
        assert [option.text for option in found.options] == ["auto", "off", "on", "low", "medium", "high"]
        assert "as it is now" in found.options[0].note


async def test_what_another_rune_has_open_is_left_alone(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", [], model=both()) as it:
        said = await it.say()
        async with rig(tmp_path / "home", [], model=both()) as other:
            with pytest.raises(LeaseHeldError):
                await run(other, "/thinking high", said.conversation_id)
            assert "* auto" in (await run(other, "/thinking", said.conversation_id)).text
