"""Health knows when no model can be had, and when the one that there is does not answer."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from rune.errors import (
    ContextTruncatedError,
    EmptyOutputError,
    ModelError,
    ModelNotFoundError,
    ModelTimeoutError,
    ModelUnavailableError,
    RemoteRefusedError,
    StreamBrokenError,
)
from rune.models.scripted import ScriptedTransport, Step, breaks, says
from rune.models.transport import Capability, ChatChunk, ChatRequest, ModelInfo
from rune.observability.health import SubsystemHealth
from rune.records.turns import StopReason
from rune.turn.request import TurnRequest
from tests.turn.rig import Rig, rig, until

CHATS: frozenset[Capability] = frozenset({"chat"})
SMALL = ModelInfo(name="small", provider="scripted", capabilities=CHATS, context_length=8192)
FAR = ModelInfo(name="far", provider="scripted", capabilities=CHATS, context_length=8192, remote=True)
GONE = StreamBrokenError("the server went away")


class Switched(ScriptedTransport):
    """A server that is there, or not."""

    up = True

    async def models(self) -> list[ModelInfo]:
        if not self.up:
            raise ModelUnavailableError("nobody answers", hint="Start it.")
        return await super().models()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def switched(*answers: list[Step]) -> Switched:
    return Switched(list(answers) or (lambda _: says("yes")), models=[SMALL, FAR])


def of_model(it: Rig) -> SubsystemHealth | None:
    return next((row for row in it.services.surface.views.health() if row.subsystem == "model"), None)


def failures(it: Rig) -> int:
    row = of_model(it)
    return row.failures if row is not None else 0


def broken(it: Rig) -> bool:
    row = of_model(it)
    return row is not None and row.healthy_since is None


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: [GONE], "StreamBrokenError: the server went away"),
        (lambda: breaks("half of it", GONE), "StreamBrokenError: the server went away"),
        (lambda: [ModelTimeoutError("silent", phase="first_byte")], "ModelTimeoutError: silent"),
        (lambda: [EmptyOutputError(generated=3)], "EmptyOutputError: the model ended without any output"),
    ],
)
async def test_an_answer_that_fails_counts_once_until_the_next_one_that_succeeds(
    home: Path, make: Callable[[], list[Step]], said: str
) -> None:
    async with rig(home, [make(), says("yes")]) as it:
        failed = await it.say()
        row = of_model(it)
        assert row is not None
        assert (row.tier, row.failures, row.context, row.healthy_since) == (0, 1, failed.turn_id, None)
        assert row.last_error.startswith(said)
        assert (await it.say("again", failed.conversation_id)).stop_reason is StopReason.ANSWERED
        assert (failures(it), broken(it)) == (1, False)


async def test_a_turn_for_which_there_is_no_model_counts(home: Path) -> None:
    async with rig(home, [], model=(model := switched())) as it:
        model.up = False
        failed = await it.say()
        assert (failed.stop_reason, failures(it), broken(it)) == (StopReason.FAILED, 1, True)
        model.up = True
        await it.say("again", failed.conversation_id)
        assert (failures(it), broken(it)) == (1, False)


async def test_looking_for_a_model_in_vain_counts_once_and_finding_one_mends_it(home: Path) -> None:
    async with rig(home, [], model=(model := switched())) as it:
        model.up = False
        for _ in range(3):
            with pytest.raises(ModelUnavailableError):
                await it.operator.next_model(None)
        assert (failures(it), broken(it)) == (1, True)
        await it.say()
        with pytest.raises(ModelUnavailableError):
            await it.operator.next_model(None)
        assert failures(it) == 2
        model.up = True
        await it.operator.next_model(None)
        assert (failures(it), broken(it)) == (2, False)


async def test_a_model_that_is_listed_and_did_not_answer_is_not_mended_by_looking(home: Path) -> None:
    async with rig(home, [[GONE], says("yes")]) as it:
        await it.say()
        await it.operator.next_model(None)
        assert broken(it)
        await it.say()
        assert not broken(it)


async def test_no_server_and_then_a_failed_answer_is_mended_by_an_answer_only(home: Path) -> None:
    async with rig(home, [], model=(model := switched([GONE], says("yes")))) as it:
        failed = await it.say()
        model.up = False
        with pytest.raises(ModelUnavailableError):
            await it.operator.next_model(failed.conversation_id)
        model.up = True
        await it.operator.next_model(failed.conversation_id)
        assert (failures(it), broken(it)) == (2, True)
        await it.say("again", failed.conversation_id)
        assert not broken(it)


@pytest.mark.parametrize("text", ["one two", ""])
async def test_a_turn_that_the_person_stops_is_no_failure(home: Path, text: str) -> None:
    async with rig(home, [[*says(text)[:-1], asyncio.Event()]]) as it:
        turn = asyncio.create_task(it.say())
        await until(lambda: bool(it.model.requests))
        it.operator.cancel()
        assert (await turn).stop_reason is StopReason.CANCELLED
        assert of_model(it) is None


async def test_a_connection_that_breaks_because_the_person_stops_is_no_failure(home: Path) -> None:
    class Breaking(ScriptedTransport):
        async def chat(self, request: ChatRequest) -> AsyncGenerator[ChatChunk]:
            try:
                async for chunk in super().chat(request):
                    yield chunk
            except asyncio.CancelledError as error:
                raise GONE from error

    async with rig(home, [], model=Breaking([[asyncio.Event()]])) as it:
        turn = asyncio.create_task(it.say())
        await until(lambda: bool(it.model.requests))
        it.operator.cancel()
        assert (await turn).error_type == "StreamBrokenError"
        assert of_model(it) is None


@pytest.mark.parametrize("long", [True, False])
async def test_a_message_that_does_not_fit_is_no_failure_of_the_model(home: Path, *, long: bool) -> None:
    cut = ContextTruncatedError("the prompt was cut", estimated=None, served=None, window=None)
    async with rig(home, [[cut]]) as it:
        closed = await it.say("words " * 50_000 if long else "words")
        assert closed.stop_reason is StopReason.CONTEXT_EXHAUSTED
        assert of_model(it) is None


@pytest.mark.parametrize(("name", "error"), [("smal", ModelNotFoundError), ("far", RemoteRefusedError)])
async def test_a_name_that_cannot_be_taken_is_no_failure(home: Path, name: str, error: type[ModelError]) -> None:
    async with rig(home, [], model=switched()) as it:
        with pytest.raises(error):
            await it.operator.choose_model(None, name)
        with pytest.raises(error):
            await it.operator.next_model(None, name)
        with pytest.raises(error):
            [event async for event in it.operator.send_task(TurnRequest(text="x", folder=str(it.folder), model=name))]
        assert of_model(it) is None


async def test_a_named_model_whose_server_is_down_is_a_failure(home: Path) -> None:
    async with rig(home, [], model=(model := switched())) as it:
        model.up = False
        with pytest.raises(ModelUnavailableError):
            [event async for event in it.operator.send_task(TurnRequest(text="x", folder=str(it.folder), model="far"))]
        assert (failures(it), broken(it)) == (1, True)


async def test_a_conversations_model_that_is_gone_is_a_failure_until_another_is_chosen(home: Path) -> None:
    async with rig(home, lambda _: says("yes")) as it:
        said = await it.say()
    async with rig(home, [], model=switched()) as it:
        with pytest.raises(ModelNotFoundError):
            await it.operator.next_model(said.conversation_id)
        assert (failures(it), broken(it)) == (1, True)
        await it.operator.choose_model(said.conversation_id, "small")
        assert not broken(it)


async def test_the_failure_is_told_once_in_the_turns_end_and_journaled_once(home: Path) -> None:
    async with rig(home, [[GONE]]) as it:
        events = await it.turn()
        assert [type(event).__name__ for event in events] == ["TurnOpened", "StepTaken", "TurnClosed"]
        assert it.names().count("turn.failed") == 1
        every = [event.event_type for event in it.services.surface.views.events(limit=1000)]
        assert not {"capability.failed", "background.failed"} & set(every)
