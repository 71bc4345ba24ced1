"""A conversation that a person has open is theirs alone, before its first turn in this process."""

import asyncio
from pathlib import Path

import pytest

from rune.errors import LeaseHeldError, NotFoundError, UsageError
from rune.models.scripted import says
from rune.records.turns import StopReason
from tests.turn.rig import rig, until
from tests.turn.test_leaving import gated, watch
from tests.turn.test_turn_edges import a_full_disk


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


async def a_conversation(home: Path) -> str:
    """Leave one behind, as an earlier process does."""
    async with rig(home, [says("yes")]) as it:
        return (await it.say()).conversation_id


async def test_what_is_held_is_open_in_one_process_until_it_is_left(home: Path) -> None:
    conversation = await a_conversation(home)
    async with rig(home, [says("one")]) as it, rig(home, [says("two")]) as other:
        await it.operator.hold(conversation)
        await it.operator.hold(conversation)
        assert it.operator.holds(conversation)
        with pytest.raises(LeaseHeldError):
            await other.operator.hold(conversation)
        with pytest.raises(LeaseHeldError):
            await other.say("mine", conversation)
        assert await it.operator.leave(conversation)
        await other.operator.hold(conversation)
        with pytest.raises(LeaseHeldError):
            await it.operator.hold(conversation)
        assert (await other.say("mine", conversation)).answer == "two"


async def test_what_is_held_is_passed_over_elsewhere_and_found_here(home: Path) -> None:
    older, newer = await a_conversation(home), await a_conversation(home)
    async with rig(home, []) as it, rig(home, []) as other:
        await it.operator.hold(newer)
        found, passed = await other.services.surface.views.latest_free(str(other.folder), "task")
        assert (found, len(passed)) == (older, 1)
        assert await it.services.surface.views.latest_free(str(it.folder), "task") == (newer, ())
        row = await other.services.surface.views.conversation(newer)
        assert row.held_by == passed[0].pid


async def test_what_does_not_exist_cannot_be_held(home: Path) -> None:
    unknown = "cnv_00000000000000000000000000"
    async with rig(home, []) as it, rig(home, []) as other:
        for each in (it, other):
            with pytest.raises(NotFoundError):
                await each.operator.hold(unknown)
            assert not each.operator.holds(unknown)


async def test_holding_does_not_wait_for_a_turn_and_undoes_leaving_in_mid_turn(home: Path) -> None:
    gate = asyncio.Event()
    async with rig(home, [gated(gate)]) as it:
        conversations: list[str] = []
        turn = asyncio.create_task(watch(it, it.request(), conversations))
        await until(lambda: bool(it.model.requests))
        assert not await it.operator.leave(conversations[0])
        await it.operator.hold(conversations[0])
        assert not turn.done()
        gate.set()
        assert await turn is StopReason.ANSWERED
        assert it.operator.holds(conversations[0])


async def test_holding_at_any_moment_of_leaving_keeps_the_conversation(home: Path) -> None:
    conversation = await a_conversation(home)
    async with rig(home, []) as it, rig(home, []) as other:
        for ticks in [*range(20), *range(20, 100, 10)]:
            await it.operator.hold(conversation)
            leaving = asyncio.create_task(it.operator.leave(conversation))
            for _ in range(ticks):
                await asyncio.sleep(0)
            await it.operator.hold(conversation)
            await leaving
            assert it.operator.holds(conversation)
            with pytest.raises(LeaseHeldError):
                await other.operator.hold(conversation)


async def test_holding_while_what_is_owed_is_written_keeps_the_conversation(home: Path) -> None:
    gates = [asyncio.Event() for _ in range(6)]
    async with rig(home, [says("one"), *(gated(gate) for gate in gates)]) as it:
        conversation = (await it.say()).conversation_id
        for ticks, gate in enumerate(gates, start=1):
            turn = asyncio.create_task(it.say("more", conversation))
            await until(lambda ticks=ticks: len(it.model.requests) == ticks + 1)
            with a_full_disk(home / "journal"):
                gate.set()
                await turn
            leaving = asyncio.create_task(it.operator.leave(conversation))
            for _ in range(ticks):
                await asyncio.sleep(0)
            await it.operator.hold(conversation)
            await leaving
            assert it.operator.holds(conversation)


@pytest.mark.parametrize("queued", [False, True])
async def test_done_and_new_are_refused_at_once_while_a_turn_runs_there(home: Path, *, queued: bool) -> None:
    gate = asyncio.Event()
    async with rig(home, [says("zero"), gated(gate), says("two"), says("three")]) as it:
        here, folder = (await it.say()).conversation_id, str(it.folder)
        turns = [asyncio.create_task(it.say("first", here))]
        await until(lambda: len(it.model.requests) == 2)
        if queued:
            turns.append(asyncio.create_task(it.say("second", here)))
            await until(lambda: len(it.operator.running) == 2)
        for refused in (
            it.operator.done(here),
            it.operator.new(folder=folder, conversation_id=here),
            it.operator.new(folder=folder),
        ):
            with pytest.raises(UsageError, match="a turn runs in this conversation") as caught:
                await asyncio.wait_for(refused, 5)
            assert caught.value.hint == "Stop it, or wait for its end."
        gate.set()
        await asyncio.gather(*turns)
        assert (await it.operator.done(here)).conversation_id == here


async def test_the_turn_of_another_conversation_is_in_nobodys_way(home: Path) -> None:
    gate = asyncio.Event()
    async with rig(home, [says("zero"), gated(gate)]) as it:
        quiet = (await it.say()).conversation_id
        turn = asyncio.create_task(it.say("elsewhere"))
        await until(lambda: len(it.model.requests) == 2)
        await it.operator.done(quiet)
        fresh = await it.operator.new(folder=str(it.folder), conversation_id=quiet)
        assert it.operator.holds(fresh.id)
        gate.set()
        assert (await turn).stop_reason is StopReason.ANSWERED


async def test_done_at_any_moment_of_a_turn_is_refused_or_comes_before_or_after_it(home: Path) -> None:
    async with rig(home, lambda _: says("yes")) as it:
        here = (await it.say()).conversation_id
        for ticks in [*range(30), *range(30, 200, 15)]:
            turn = asyncio.create_task(it.say(f"after {ticks}", here))
            for _ in range(ticks):
                await asyncio.sleep(0)
            try:
                task = await asyncio.wait_for(it.operator.done(here), 5)
            except UsageError as error:
                assert error.message in {"a turn runs in this conversation", "there is no open task here"}
            else:
                assert task.conversation_id == here
            assert (await turn).stop_reason is StopReason.ANSWERED
