"""What a person could not know and the answer does not say: told once, in a sentence."""

import asyncio
from pathlib import Path

import pytest

from rune.errors import ModelNotFoundError
from rune.models.scripted import says
from rune.turn.events import Notice, TurnEvent
from rune.turn.request import TurnRequest
from tests.turn.rig import Rig, rig, until
from tests.turn.test_operator import copy_home


def told(events: list[TurnEvent]) -> str:
    return " | ".join(event.text for event in events if isinstance(event, Notice))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


async def test_an_ordinary_turn_tells_nothing(home: Path) -> None:
    async with rig(home, [says("yes")]) as it:
        assert told(await it.turn()) == ""


async def test_an_answer_that_a_kill_lost_is_said_once(home: Path) -> None:
    async with rig(home, [[asyncio.Event()]]) as dying:
        watching = asyncio.create_task(dying.turn())
        await until(lambda: bool(dying.model.requests))
        copy_home(home, home.parent / "after-kill")
        dying.operator.cancel()
        await watching
    async with rig(home.parent / "after-kill", lambda _: says("yes")) as it:
        conversation = it.facts()[0].partition_key
        assert "was lost" in told(await it.turn("go on", conversation))
        assert told(await it.turn("and on", conversation)) == ""


async def test_a_masked_secret_is_said(home: Path) -> None:
    async with rig(home, [says("yes")]) as it:
        assert "masked" in told(await it.turn("use " + "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"))
        assert b"ghp_" not in it.model.requests[0].messages


async def test_instructions_that_are_not_read_are_said_when_that_matters(home: Path) -> None:
    async with rig(home, lambda _: says("yes")) as it:
        (it.folder / "AGENTS.md").write_text("Answer in French.")
        first = await it.turn()
        assert told(first) == "AGENTS.md of this project is not read until you allow it: `/trust` shows it"
        conversation = it.facts()[0].partition_key
        assert told(await it.turn("again", conversation)) == ""
        await trust(it)
        assert told(await it.turn("again", conversation)) == ""
        (it.folder / "AGENTS.md").write_text("Answer in German.")
        assert "changed since you trusted it" in told(await it.turn("again", conversation))


async def trust(it: Rig) -> None:
    from rune.surface.commands.command import CommandCall

    call = CommandCall(argument="", folder=str(it.folder), channel="task", conversation_id=None)
    assert (await it.services.surface.commands.run("/trust yes", call)).ok


async def test_a_model_that_was_mistyped_leaves_nothing_behind(home: Path) -> None:
    async with rig(home, [says("yes")]) as it:
        request = TurnRequest(text="hello", folder=str(it.folder), model="scriptde")
        with pytest.raises(ModelNotFoundError) as refused:
            [event async for event in it.operator.send_task(request)]
        assert "Did you mean scripted?" in refused.value.hint
        assert it.facts() == []
