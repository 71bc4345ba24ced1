"""A conversation that the person leaves is given back, and one for which they choose a model keeps it."""

import asyncio
import json
from pathlib import Path

import pytest

from rune.errors import (
    CapabilityMissingError,
    LeaseHeldError,
    ModelNotFoundError,
    ModelUnavailableError,
    NotFoundError,
    RemoteRefusedError,
    StorageUnavailableError,
)
from rune.models.scripted import ScriptedTransport, Step, says
from rune.models.transport import Capability, ModelInfo
from rune.records.turns import StopReason
from rune.turn.events import TurnEvent, TurnOpened
from rune.turn.request import TurnRequest
from tests.turn.rig import Rig, closing, rig, until
from tests.turn.test_turn_edges import a_full_disk

CHATS: frozenset[Capability] = frozenset({"chat"})
MODELS = [
    ModelInfo(name="small", provider="scripted", capabilities=CHATS, context_length=8192, digest="1"),
    ModelInfo(name="large", provider="scripted", capabilities=CHATS, context_length=8192, digest="2"),
    ModelInfo(name="far", provider="scripted", capabilities=CHATS, context_length=8192, remote=True),
    ModelInfo(name="vectors", provider="scripted", capabilities=frozenset({"embedding"}), context_length=512),
]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def several() -> ScriptedTransport:
    return ScriptedTransport(lambda _: says("yes"), models=MODELS)


def gated(gate: asyncio.Event) -> list[Step]:
    return [*says("one two")[:-1], gate, says("one two")[-1]]


async def watch(it: Rig, request: TurnRequest, conversations: list[str]) -> StopReason:
    """Run a turn; its conversation is noted as soon as it is opened."""
    events: list[TurnEvent] = []
    async for event in it.operator.send_task(request):
        events.append(event)
        if isinstance(event, TurnOpened):
            conversations.append(event.conversation_id)
    return closing(events).stop_reason


async def test_a_conversation_that_was_left_can_be_taken_by_another_process(home: Path) -> None:
    async with rig(home, lambda _: says("yes")) as it, rig(home, lambda _: says("no")) as other:
        first = await it.say()
        with pytest.raises(LeaseHeldError):
            await other.say("mine", first.conversation_id)
        assert await it.operator.leave(first.conversation_id)
        assert (await other.say("mine", first.conversation_id)).answer == "no"
        assert await other.operator.leave(first.conversation_id)
        assert (await it.say("mine again", first.conversation_id)).answer == "yes"
        sent = json.loads(it.model.requests[-1].messages)
        assert [message["content"] for message in sent[1:]][-3:] == ["mine", "no", "mine again"]


async def test_leaving_what_is_not_held_is_no_error(home: Path) -> None:
    async with rig(home, []) as it:
        assert await it.operator.leave("cnv_00000000000000000000000000")


async def test_a_conversation_left_in_mid_turn_is_given_back_when_the_turn_ends(home: Path) -> None:
    gate = asyncio.Event()
    async with rig(home, [gated(gate)]) as it, rig(home, [says("no")]) as other:
        conversations: list[str] = []
        turn = asyncio.create_task(watch(it, it.request(), conversations))
        await until(lambda: bool(it.model.requests))
        assert not await it.operator.leave(conversations[0])
        with pytest.raises(LeaseHeldError):
            await other.say("mine", conversations[0])
        gate.set()
        assert await turn is StopReason.ANSWERED
        assert not it.operator.holds(conversations[0])
        assert (await other.say("mine", conversations[0])).answer == "no"


async def test_a_message_after_leaving_keeps_the_conversation(home: Path) -> None:
    gate = asyncio.Event()
    async with rig(home, [gated(gate), says("three")]) as it:
        conversations: list[str] = []
        turn = asyncio.create_task(watch(it, it.request(), conversations))
        await until(lambda: bool(it.model.requests))
        assert not await it.operator.leave(conversations[0])
        back = asyncio.create_task(it.say("back again", conversations[0]))
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(turn, back)
        assert back.result().answer == "three"
        assert it.operator.holds(conversations[0])


async def test_what_waits_for_the_turn_is_answered_before_the_conversation_is_given_back(home: Path) -> None:
    gate = asyncio.Event()
    async with rig(home, [gated(gate), says("three")]) as it:
        conversations: list[str] = []
        turn = asyncio.create_task(watch(it, it.request(), conversations))
        await until(lambda: bool(it.model.requests))
        waiting = asyncio.create_task(it.say("next", conversations[0]))
        await until(lambda: len(it.operator.running) == 2)
        for _ in range(50):  # until it stands in line for the conversation
            await asyncio.sleep(0)
        assert not await it.operator.leave(conversations[0])
        gate.set()
        await asyncio.gather(turn, waiting)
        assert waiting.result().answer == "three"
        assert not it.operator.holds(conversations[0])


async def test_leaving_on_a_full_disk_keeps_the_conversation_and_what_its_turn_owes(home: Path) -> None:
    gate = asyncio.Event()
    async with rig(home, [says("one"), gated(gate)]) as it:
        first = await it.say("first")
        second = asyncio.create_task(it.say("second", first.conversation_id))
        await until(lambda: len(it.model.requests) == 2)
        with a_full_disk(home / "journal"):
            gate.set()
            await second
            with pytest.raises(StorageUnavailableError):
                await it.operator.leave(first.conversation_id)
            assert it.operator.holds(first.conversation_id)
        assert await it.operator.leave(first.conversation_id)
        assert it.names()[-1] == "turn.finished"
        assert not it.operator.holds(first.conversation_id)


async def test_a_chosen_model_answers_from_then_on_and_the_choice_is_the_owners(home: Path) -> None:
    async with rig(home, [], model=several()) as it:
        first = await it.say()
        assert first.model == "small"
        assert (await it.operator.choose_model(first.conversation_id, "large")).name == "large"
        assert (await it.say("again", first.conversation_id)).model == "large"
        chosen = [event for event in it.facts() if event.event_type == "model.selected"]
        assert [event.actor_id for event in chosen] == ["owner"]
        assert json.loads(bytes(chosen[0].body))["previous"] == "small"
    async with rig(home, [], model=several()) as it:
        assert (await it.say("later", first.conversation_id)).model == "large"


async def test_choosing_the_model_that_answers_already_writes_nothing(home: Path) -> None:
    async with rig(home, [], model=several()) as it:
        first = await it.say()
        before = it.names()
        await it.operator.choose_model(first.conversation_id, "small")
        assert it.names() == before


@pytest.mark.parametrize(
    ("name", "error"),
    [("far", RemoteRefusedError), ("vectors", CapabilityMissingError), ("smal", ModelNotFoundError)],
)
@pytest.mark.parametrize("begun", [False, True])
async def test_a_model_that_may_not_answer_is_refused_and_nothing_changes(
    home: Path, name: str, error: type[Exception], *, begun: bool
) -> None:
    async with rig(home, [], model=several()) as it:
        conversation_id = (await it.say()).conversation_id if begun else None
        before = it.names()
        with pytest.raises(error):
            await it.operator.choose_model(conversation_id, name)
        assert it.names() == before


async def test_without_a_conversation_choosing_only_looks(home: Path) -> None:
    async with rig(home, [], model=several()) as it:
        assert (await it.operator.choose_model(None, "large")).name == "large"
        assert it.facts() == []
        chosen = TurnRequest(text="hello", folder=str(it.folder), model="large")
        assert await watch(it, chosen, []) is StopReason.ANSWERED
        assert it.model.requests[0].model == "large"


async def test_a_model_is_not_chosen_for_a_conversation_that_is_open_elsewhere_or_unknown(home: Path) -> None:
    async with rig(home, [], model=several()) as it, rig(home, [], model=several()) as other:
        first = await it.say()
        with pytest.raises(LeaseHeldError):
            await other.operator.choose_model(first.conversation_id, "large")
        with pytest.raises(NotFoundError):
            await other.operator.choose_model("cnv_00000000000000000000000000", "large")


async def test_a_choice_made_in_mid_turn_holds_from_the_next_turn_on(home: Path) -> None:
    gate = asyncio.Event()
    answers = [gated(gate), says("three")]
    async with rig(home, [], model=ScriptedTransport(answers, models=MODELS)) as it:
        conversations: list[str] = []
        turn = asyncio.create_task(watch(it, it.request(), conversations))
        await until(lambda: bool(it.model.requests))
        await it.operator.choose_model(conversations[0], "large")
        gate.set()
        await turn
        assert (await it.say("next", conversations[0])).model == "large"
        assert it.names().count("model.selected") == 1


async def test_a_choice_at_any_moment_of_a_turn_is_not_lost(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", [], model=several()) as it:
        first = await it.say()
        names = ["large", "small"]
        for ticks in [*range(30), *range(30, 200, 15)]:
            wanted = names[ticks % 2]
            turn = asyncio.create_task(it.say(f"after {ticks}", first.conversation_id))
            for _ in range(ticks):
                await asyncio.sleep(0)
            await it.operator.choose_model(first.conversation_id, wanted)
            await turn
            assert (await it.services.surface.views.conversation(first.conversation_id)).model == wanted


async def test_no_server_is_said_when_a_model_is_chosen(home: Path) -> None:
    class Down(ScriptedTransport):
        async def models(self) -> list[ModelInfo]:
            raise ModelUnavailableError("nobody answers")

    async with rig(home, [], model=Down()) as it:
        with pytest.raises(ModelUnavailableError):
            await it.operator.choose_model(None, "large")
