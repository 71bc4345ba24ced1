"""What screens read: conversations with their holders, ends of turns, models, how full the context is."""

import asyncio
from pathlib import Path

import pytest

from rune.errors import ModelUnavailableError, NotFoundError, StreamBrokenError
from rune.models.scripted import ScriptedTransport, breaks, says
from rune.models.transport import Capability, ModelInfo
from rune.records.turns import StopReason
from rune.surface.rows import ContextUse, TurnEnd
from tests.turn.rig import rig, until
from tests.turn.test_operator import copy_home

CHATS: frozenset[Capability] = frozenset({"chat", "tools"})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


async def test_rows_are_the_newest_first_of_a_folder_and_channel(home: Path) -> None:
    async with rig(home, lambda _: says("yes")) as it:
        views = it.services.surface.views
        first, second = await it.say("first"), await it.say("second")
        await it.say("more", first.conversation_id)
        rows = await views.rows(str(it.folder), "task")
        assert [(row.title, row.messages) for row in rows] == [("first", 4), ("second", 2)]
        assert [row.id for row in await views.rows(limit=1)] == [first.conversation_id]
        assert list(await views.rows("/elsewhere")) == []
        assert list(await views.rows(channel="chat")) == []
        row = await views.conversation(second.conversation_id)
        assert row == rows[1]
        assert (row.channel, row.folder, row.model, row.private) == ("task", str(it.folder), "scripted", False)
        with pytest.raises(NotFoundError):
            await views.conversation("cnv_00000000000000000000000000")


async def test_only_another_holder_of_a_conversation_is_named(home: Path) -> None:
    async with rig(home, lambda _: says("yes")) as it, rig(home, []) as other:
        said = await it.say("mine")
        ours, theirs = it.services.surface.views, other.services.surface.views
        assert (await ours.conversation(said.conversation_id)).held_by is None
        assert await ours.holder(said.conversation_id) is None
        holder = await theirs.holder(said.conversation_id)
        assert holder is not None
        assert [row.held_by for row in await theirs.rows()] == [holder.pid]
        await it.operator.leave(said.conversation_id)
        assert await theirs.holder(said.conversation_id) is None


async def test_ends_say_what_made_a_turn_fail_also_in_the_next_process(home: Path) -> None:
    broken = StreamBrokenError("the server went away", hint="Start it again.")
    async with rig(home, [says("yes"), [broken], breaks("half", broken)]) as it:
        first = await it.say("one")
        failed = await it.say("two", first.conversation_id)
        half = await it.say("three", first.conversation_id)
    expected = {
        first.turn_id: TurnEnd(reason=StopReason.ANSWERED),
        failed.turn_id: TurnEnd(reason=StopReason.FAILED, error="the server went away", hint="Start it again."),
        half.turn_id: TurnEnd(reason=StopReason.INCOMPLETE, error="the server went away", hint="Start it again."),
    }
    async with rig(home, []) as it:
        assert await it.services.surface.views.ends(first.conversation_id) == expected


async def test_the_context_of_a_conversation_is_that_of_its_newest_prompt(home: Path) -> None:
    async with rig(home, lambda _: says("yes")) as it:
        views = it.services.surface.views
        assert await views.context_use("cnv_00000000000000000000000000") is None
        first = await it.say("one")
        before = await views.context_use(first.conversation_id)
        await it.say("two " * 3000, first.conversation_id)
        after = await views.context_use(first.conversation_id)
        trace = await views.trace(None)
    assert before is not None
    assert after is not None
    assert after == ContextUse(
        used=trace.prompt_tokens_estimated, budget=trace.input_budget, window=8192, level="yellow", served=False
    )
    assert before.level == "green"
    assert before.used < after.used


async def test_after_a_kill_in_mid_answer_the_context_is_that_of_the_newest_prompt_that_was_traced(home: Path) -> None:
    async with rig(home, [says("yes"), [asyncio.Event()]]) as dying:
        first = await dying.say("one")
        before = await dying.services.surface.views.context_use(first.conversation_id)
        watching = asyncio.create_task(dying.turn("two", first.conversation_id))
        await until(lambda: len(dying.model.requests) == 2)
        copy_home(home, home.parent / "after-kill")
        dying.operator.cancel()
        await watching
    async with rig(home.parent / "after-kill", []) as it:
        assert before is not None
        assert await it.services.surface.views.context_use(first.conversation_id) == before


class Describing(ScriptedTransport):
    """Lists less about its models than it says when it is asked for one."""

    async def describe(self, model: str) -> ModelInfo:
        if model == "bare":
            return ModelInfo(name="bare", provider="scripted", capabilities=CHATS, context_length=4096)
        if model == "mute":
            raise ModelUnavailableError("it does not say")
        return await super().describe(model)


class Down(ScriptedTransport):
    """A server that does not answer."""

    async def models(self) -> list[ModelInfo]:
        raise ModelUnavailableError("nobody answers", hint="Start it.")
