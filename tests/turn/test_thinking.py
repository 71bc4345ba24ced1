"""How much a model thinks: chosen with a message or between them, kept, never asked of a model that cannot."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from rune.errors import CapabilityMissingError
from rune.models.scripted import ScriptedTransport, says
from rune.models.transport import ModelInfo
from rune.records.models import Thinking
from rune.records.turns import StopReason
from rune.turn.events import Notice, TurnClosed, TurnOpened
from tests.turn.rig import Rig, closing, rig, until

PLAIN = ModelInfo(name="plain", provider="scripted", capabilities=frozenset({"chat"}), context_length=8192)
THINKER = msgspec.structs.replace(PLAIN, name="thinker", capabilities=frozenset({"chat", "thinking"}))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def models(*infos: ModelInfo) -> ScriptedTransport:
    return ScriptedTransport(lambda _: says("yes"), models=infos or (THINKER, PLAIN))


async def say(
    it: Rig, conversation_id: str | None = None, *, thinking: Thinking | None = None, model: str | None = None
) -> tuple[TurnClosed, list[str]]:
    """Send a message; returns its end and what was told."""
    request = msgspec.structs.replace(it.request("hi", conversation_id), thinking=thinking, model=model)
    events = [event async for event in it.operator.send_task(request)]
    return closing(events), [event.text for event in events if isinstance(event, Notice)]


def asked(it: Rig) -> list[str | None]:
    return [request.think for request in it.model.requests]


async def test_nothing_is_asked_for_until_it_is_chosen(home: Path) -> None:
    async with rig(home, [], model=models()) as it:
        await say(it)
        assert asked(it) == [None]
        assert "thinking.selected" not in it.names()


async def test_what_is_chosen_with_the_first_message_holds_for_the_conversation(home: Path) -> None:
    async with rig(home, [], model=models()) as it:
        first, _ = await say(it, thinking="high")
        await say(it, first.conversation_id)
        await say(it, first.conversation_id, thinking="auto")
        await say(it, first.conversation_id)
        assert asked(it) == ["high", "high", None, None]
        assert it.names().count("thinking.selected") == 2
        assert (await say(it))[0].conversation_id != first.conversation_id
        assert asked(it)[-1] is None


async def test_it_holds_after_a_restart_and_in_a_fork(home: Path) -> None:
    async with rig(home, [], model=models()) as it:
        first, _ = await say(it, thinking="low")
    async with rig(home, [], model=models()) as it:
        assert await it.operator.thinking(first.conversation_id) == "low"
        fork = await it.operator.fork(first.conversation_id)
        await say(it, fork.id)
        await say(it, first.conversation_id)
        assert asked(it) == ["low", "low"]
        await it.operator.choose_thinking(fork.id, "auto")
        assert await it.operator.thinking(first.conversation_id) == "low"
        assert (await it.services.surface.views.conversation(fork.id)).thinking == "auto"


async def test_a_choice_between_messages_is_one_fact_of_the_owners(home: Path) -> None:
    async with rig(home, [], model=models()) as it:
        first, _ = await say(it)
        await it.operator.choose_thinking(first.conversation_id, "off")
        await it.operator.choose_thinking(first.conversation_id, "off")
        chosen = [event for event in it.facts() if event.event_type == "thinking.selected"]
        assert [event.actor_id for event in chosen] == ["owner"]
        await say(it, first.conversation_id)
        assert asked(it) == [None, "off"]


async def test_a_running_turn_keeps_what_it_has(home: Path) -> None:
    gate = asyncio.Event()
    model = ScriptedTransport([[gate, *says("yes")], says("no")], models=[THINKER])
    async with rig(home, [], model=model) as it:
        events = it.operator.send_task(it.request())
        opened = await anext(events)
        assert isinstance(opened, TurnOpened)
        assert opened.thinking == "auto"
        await until(lambda: bool(model.requests))
        await it.operator.choose_thinking(opened.conversation_id, "high")
        gate.set()
        async for _ in events:
            pass
        await say(it, opened.conversation_id)
        assert asked(it) == [None, "high"]


async def test_the_opened_turn_tells_what_was_chosen(home: Path) -> None:
    async with rig(home, [], model=models()) as it:
        request = msgspec.structs.replace(it.request(), thinking="medium")
        opened, *_ = [event async for event in it.operator.send_task(request)]
        assert isinstance(opened, TurnOpened)
        assert opened.thinking == "medium"


@pytest.mark.parametrize("level", ["on", "low", "medium", "high"])
async def test_a_model_that_cannot_think_refuses_before_anything_is_stored(home: Path, level: Thinking) -> None:
    async with rig(home, [], model=models(PLAIN)) as it:
        with pytest.raises(CapabilityMissingError, match="plain does not support thinking") as refused:
            await say(it, thinking=level)
        assert "--think auto" in refused.value.hint
        assert all(row.healthy_since for row in it.services.surface.views.health())
        with pytest.raises(CapabilityMissingError):
            await it.operator.choose_thinking(None, level)
        assert (it.facts(), asked(it)) == ([], [])


async def test_off_and_auto_are_always_taken(home: Path) -> None:
    async with rig(home, [], model=models(PLAIN)) as it:
        first, _ = await say(it, thinking="off")
        await it.operator.choose_thinking(first.conversation_id, "auto")
        await say(it, first.conversation_id)
        assert asked(it) == ["off", None]


async def test_which_model_would_answer_the_first_message_decides(home: Path) -> None:
    async with rig(home, [], model=models(PLAIN, THINKER)) as it:
        await it.operator.choose_thinking(None, "high", requested="thinker")
        with pytest.raises(CapabilityMissingError):
            await it.operator.choose_thinking(None, "high", requested="plain")


async def test_a_choice_waits_while_another_model_answers_that_cannot(home: Path) -> None:
    async with rig(home, [], model=models()) as it:
        first, told = await say(it, thinking="high")
        assert told == []
        _, told = await say(it, first.conversation_id, model="plain")
        assert told == ["plain cannot think: `/thinking high` waits for a model that can"]
        _, told = await say(it, first.conversation_id)
        assert told == []
        await say(it, first.conversation_id, model="thinker")
        assert asked(it) == ["high", None, None, "high"]


async def test_a_server_that_does_not_say_what_its_models_can_is_asked(home: Path) -> None:
    class Untold(ScriptedTransport):
        """Speaks like a server of which Rune knows only its name."""

        @property
        def provider(self) -> str:
            return "workshop"

    model = Untold(lambda _: says("yes"), models=[msgspec.structs.replace(PLAIN, provider="workshop")])
    async with rig(home, [], model=model) as it:
        await say(it, thinking="high")
        assert asked(it) == ["high"]


async def test_a_server_that_refuses_after_all_ends_the_turn_plainly(home: Path) -> None:
    model = ScriptedTransport([[CapabilityMissingError("thinker", "thinking")], says("yes")], models=[THINKER])
    async with rig(home, [], model=model) as it:
        closed, _ = await say(it, thinking="on")
        assert (closed.stop_reason, closed.error) == (StopReason.FAILED, "thinker does not support thinking")
        assert "/thinking auto" in closed.hint
        closed, _ = await say(it, closed.conversation_id, thinking="off")
        assert closed.stop_reason is StopReason.ANSWERED
