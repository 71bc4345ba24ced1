"""The loop of a turn with tools: what runs at once, what is fed back, and when it stops (tools.md, The loop)."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from rune.models.scripted import ScriptedTransport, Step, says
from rune.models.transport import ChatRequest
from rune.records.tools import ToolCall
from rune.records.turns import StopReason
from rune.turn import events as shown
from rune.turn.flight import CancelToken
from tests.turn.rig import closing, rig, until
from tests.turn.test_action_protocols import large
from tests.turn.tools import Act, Look, Note, call


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def calls(*made: ToolCall) -> list[Step]:
    return says("", calls=made)


def sent(request: ChatRequest) -> list[dict[str, Any]]:
    return json.loads(request.messages)


async def test_results_go_back_to_the_model_and_all_of_it_is_kept(home: Path) -> None:
    look = Look()
    async with rig(home, (), model=large(calls(call("look", name="danube")), says("A river.")), tools=[look]) as it:
        events = await it.turn()
        first, second = it.model.requests
        names = it.names()
        closed = closing(events)
    assert (closed.stop_reason, closed.answer, closed.iterations_used) == (StopReason.ANSWERED, "A river.", 2)
    assert second.messages.startswith(first.messages.removesuffix(b"]"))
    assert [each["role"] for each in sent(second)] == ["system", "user", "assistant", "tool"]
    assert "it is danube" in sent(second)[3]["content"]
    assert names[-7:-3] == ["response.generated", "tool.result", "tool.message", "response.generated"]
    steps = [(each.used, each.budget) for each in events if isinstance(each, shown.StepTaken)]
    assert steps == [(1, 24), (2, 24)]
    finished = next(each for each in events if isinstance(each, shown.ToolFinished))
    assert (finished.outcome, finished.summary, finished.text) == ("ok", "found danube", "it is danube")


async def test_the_next_turn_sends_the_rounds_as_they_were(home: Path) -> None:
    model = large(calls(call("look", name="a")), says("one"), says("two"))
    async with rig(home, (), model=model, tools=[Look()]) as it:
        closed = await it.say()
        await it.say("again", closed.conversation_id)
        before, after = it.model.requests[1:]
    assert after.messages.startswith(before.messages.removesuffix(b"]"))


async def test_reads_run_side_by_side_and_their_results_stand_in_the_order_asked(home: Path) -> None:
    gate = asyncio.Event()
    look = Look(waits={"slow": gate})
    made = [call("look", number, name=name) for number, name in enumerate(["slow", "b", "c", "d", "e"], 1)]
    async with rig(home, (), model=large(calls(*made), says("done")), tools=[look]) as it:
        turn = asyncio.ensure_future(it.turn())
        await until(lambda: look.looked == ["b", "c", "d"])
        assert look.begun == ["slow", "b", "c", "d"]  # four at once
        gate.set()
        await turn
        results = [each["content"] for each in sent(it.model.requests[1]) if each["role"] == "tool"]
    assert [name in text for name, text in zip(["slow", "b", "c", "d", "e"], results, strict=True)] == [True] * 5


async def test_the_same_call_twice_in_one_answer_runs_once(home: Path) -> None:
    look = Look()
    made = [call("look", 1, name="a"), call("look", 2, name="a")]
    async with rig(home, (), model=large(calls(*made), says("done")), tools=[look]) as it:
        await it.say()
        results = [each["content"] for each in sent(it.model.requests[1]) if each["role"] == "tool"]
    assert look.looked == ["a"]
    assert "same call" in results[1]


async def test_calls_of_one_id_each_get_their_result(home: Path) -> None:
    made = [call("look", 1, name="a"), call("look", 1, name="b")]
    async with rig(home, (), model=large(calls(*made), says("done")), tools=[Look()]) as it:
        closed = await it.say()
        results = [each["content"] for each in sent(it.model.requests[1]) if each["role"] == "tool"]
    assert closed.stop_reason is StopReason.ANSWERED
    assert ["a" in results[0], "b" in results[1]] == [True, True]


async def test_a_tool_that_there_is_not_is_told_the_model(home: Path) -> None:
    answers = [calls(call("fly", name="a")), says('{"tool": "fly", "arguments": {}}'), says('{"answer": "no"}')]
    async with rig(home, (), model=large(*answers), tools=[Look()]) as it:
        closed = await it.say()
    assert closed.stop_reason in (StopReason.ANSWERED, StopReason.FAILED)


def looping(*rounds: list[ToolCall]) -> ScriptedTransport:
    """Return a model that makes these rounds again and again."""
    return large(*[calls(*rounds[number % len(rounds)]) for number in range(40)])


SHAPES: dict[str, list[list[ToolCall]]] = {
    "the same call": [[call("look", name="a")]],
    "two in turn": [[call("look", name="a")], [call("look", name="b")]],
    "three in turn": [[call("look", name="a")], [call("look", name="b")], [call("act", name="c")]],
    "one that fails": [[call("look", name="bad")]],
    "two in one answer": [[call("look", 1, name="a"), call("look", 2, name="b")]],
    "one that is failing beside another": [[call("look", 1, name="bad"), call("act", 2, name="fine")]],
}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
async def test_what_goes_in_circles_is_told_once_and_stopped(home: Path, shape: str) -> None:
    look, act = Look(), Act()
    act.kind = "read"
    async with rig(home, (), model=looping(*SHAPES[shape]), tools=[look, act]) as it:
        closed = await it.say()
        told = b"".join(request.messages for request in it.model.requests)
    assert closed.stop_reason is StopReason.LOOP
    assert closed.iterations_used <= 12
    if "fail" in shape:
        assert "look failed 2 consecutive times with identical arguments" in closed.error
    else:
        assert b"Do something else, or give your answer" in told
        assert "again and again" in closed.error


async def test_other_arguments_start_a_new_count_of_failures(home: Path) -> None:
    made = [[call("look", name=f"bad{number % 2}")] for number in range(6)]
    answers = [calls(*each) for each in made]
    async with rig(home, (), model=large(*answers, says("I give up")), tools=[Look()]) as it:
        closed = await it.say()
    assert closed.stop_reason in (StopReason.ANSWERED, StopReason.LOOP)
    assert closed.iterations_used >= 5


async def test_a_test_that_fails_again_after_an_edit_is_no_circle(home: Path) -> None:
    act, note = Act(code=1), Note()
    act.kind, note.kind = "read", "session"
    rounds = [[call("act", name="test")], [call("note", path="a.txt", text="{n}")]]
    answers: list[list[Step]] = []
    for number in range(5):
        answers += [calls(rounds[0][0]), calls(call("note", path="a.txt", text=str(number)))]
    async with rig(home, (), model=large(*answers, says("done")), tools=[act, note]) as it:
        closed = await it.say()
    assert (closed.stop_reason, len(act.acted)) == (StopReason.ANSWERED, 5)


async def test_the_steps_of_a_turn_are_limited(home: Path) -> None:
    answers = [calls(call("look", name=str(number))) for number in range(30)]
    async with rig(home, (), model=large(*answers), tools=[Look()]) as it:
        closed = await it.say()
    assert (closed.stop_reason, closed.iterations_used, closed.iteration_budget) == (StopReason.STEP_LIMIT, 24, 24)


async def test_a_long_result_is_cut_and_can_be_read_in_full(home: Path) -> None:
    text = "\n".join(f"line {number}" for number in range(5_000))
    model = large(calls(call("look", name="long")), says("ok"))
    async with rig(home, (), model=model, tools=[Look({"long": text})]) as it:
        events = await it.turn()
        result = sent(it.model.requests[1])[3]["content"]
    finished = next(each for each in events if isinstance(each, shown.ToolFinished))
    assert finished.output is not None
    assert len(result) < 9_000
    assert "line 0\n" in result
    assert "line 4999" in result
    assert f"read_artifact {finished.output.removeprefix('sha256:')[:12]}" in result


async def test_stopping_a_turn_ends_its_tool_and_keeps_what_came(home: Path) -> None:
    act = Act(waits=True)
    act.kind = "session"
    async with rig(home, (), model=large(calls(call("act", name="x")), says("never")), tools=[act]) as it:
        token = CancelToken()
        events: list[shown.TurnEvent] = []

        async def turn() -> None:
            events.extend([event async for event in it.operator.send_task(it.request(), token)])

        running = asyncio.ensure_future(turn())
        await act.began.wait()
        token.cancel()
        await running
        names = it.names()
    assert act.stopped
    assert closing(events).stop_reason is StopReason.CANCELLED
    assert "tool.result" in names
    assert next(each for each in events if isinstance(each, shown.ToolFinished)).outcome == "cancelled"
