import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import aclosing
from pathlib import Path

import pytest

from rune.errors import ContextOverflowError, ModelError, ModelNotFoundError, ModelUnavailableError
from rune.models.embedded.transport import EmbeddedTransport
from rune.models.probe import Prober, ProbeStep
from rune.models.probe_tasks import TASKS, Answer, Call, ProbeTask
from rune.models.scripted import ERRORS, Pause, ScriptedTransport, Step, breaks, says
from rune.models.transport import ChatRequest, ModelInfo
from rune.records.models import ActionProtocol, ProbeOutcome
from rune.records.tools import ToolCall
from tests.embedded_model import real_model_file
from tests.models.side import SideRig, a_model
from tests.turn.rig import until

WINDOW = 8192
Reply = Callable[[ProbeTask, ActionProtocol], Sequence[Step]]


def task_of(request: ChatRequest) -> ProbeTask:
    said = next(each["content"] for each in json.loads(request.messages) if each["role"] == "user")
    return next(task for task in TASKS if task.says == said)


def answering(reply: Reply) -> ScriptedTransport:
    def answer(request: ChatRequest) -> Sequence[Step]:
        return reply(task_of(request), "native" if request.format is None else "constrained")

    return ScriptedTransport(answer)


def right(task: ProbeTask, protocol: ActionProtocol) -> Sequence[Step]:
    match task.expected:
        case Call(tool=tool, arguments=arguments) if protocol == "constrained":
            return says(json.dumps({"tool": tool, "arguments": arguments}))
        case Call(tool=tool, arguments=arguments):
            return says("", calls=[ToolCall(id="call_1", name=tool, arguments=arguments)])
        case Answer(saying=saying) if protocol == "constrained":
            return says(json.dumps({"answer": f"It is {saying}."}))
        case Answer(saying=saying):
            return says(f"It is {saying}.")


async def probed(
    model: ScriptedTransport, info: ModelInfo | None = None, *, rig: SideRig | None = None, window: int = WINDOW
) -> list[ProbeStep]:
    rig = rig or SideRig()
    prober = Prober(rig.calls, rig.card, rig.clock)
    return [step async for step in prober.probe(model, info or a_model(), window)]


def rows(steps: Sequence[ProbeStep], protocol: ActionProtocol) -> list[ProbeOutcome]:
    found = [step.outcome for step in steps if step.outcome is not None]
    return [outcome for outcome in found if outcome.protocol == protocol]


async def test_a_model_that_does_everything_right_passes_every_task_both_ways() -> None:
    rig, model = SideRig(), answering(right)
    steps = await probed(model, a_model(parameters="70B"), rig=rig)
    for protocol in ("native", "constrained"):
        assert [(each.task, each.passed) for each in rows(steps, protocol)] == [(task.name, True) for task in TASKS]
    score = steps[-1].score
    assert score is not None
    assert (score.protocol, score.basis, len(score.probe)) == ("native", "measured", 2 * len(TASKS))
    assert rig.scores.kept == [(score, False)]


async def test_it_tells_of_each_task_as_it_begins_and_as_it_ends() -> None:
    steps = await probed(answering(right))
    total = 2 * len(TASKS)
    assert [(step.done, step.outcome is None) for step in steps] == [
        each for done in range(total) for each in ((done, True), (done + 1, False))
    ]
    assert {step.total for step in steps} == {total}
    assert [step.score is not None for step in steps] == [False] * (2 * total - 1) + [True]


async def test_the_same_model_gets_the_same_score_and_every_call_has_the_window_and_a_trace_of_its_own() -> None:
    rig, model = SideRig(), answering(right)
    first, second = await probed(model, rig=rig), await probed(model, rig=rig)
    assert first[-1].score == second[-1].score
    half = len(model.requests) // 2
    assert model.requests[:half] == model.requests[half:]
    assert {request.options.num_ctx for request in model.requests} == {WINDOW}
    assert {request.temperature for request in model.requests} == {0.0}
    sent = [trace.requests[0].messages_hash for trace in rig.traces.traces]
    assert len(sent) == len(model.requests)


async def test_calls_that_are_only_printed_are_no_native_calls() -> None:
    def prints(task: ProbeTask, protocol: ActionProtocol) -> Sequence[Step]:
        if protocol == "native" and isinstance(task.expected, Call):
            return says(json.dumps({"name": task.expected.tool, "arguments": task.expected.arguments}))
        return right(task, protocol)

    steps = await probed(answering(prints), a_model(parameters="70B"))
    calls = [each for each in rows(steps, "native") if each.task.startswith(("choose", "fill"))]
    assert [each.passed for each in calls] == [False] * 4
    assert all("printed as text" in each.seen for each in calls)
    assert steps[-1].score is not None
    assert steps[-1].score.protocol == "constrained"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("It is sunny in Paris, 21 degrees at port 8471 of start.py", "an answer"),
        ('<tools> <function name="get_weather"/> Paris 21 8471 start.py', "markup"),
        ('{"city": "Paris", "sum": 21, "port": 8471, "file": "start.py"}', "markup"),
        ("", "nothing"),
    ],
)
async def test_an_answer_is_words_and_not_what_looks_like_a_call(text: str, kind: str) -> None:
    steps = await probed(answering(lambda _task, _protocol: says(text)))
    answered = [each.passed for each in rows(steps, "native") if each.task.startswith(("use", "answer", "none"))]
    assert answered == [kind == "an answer"] * 6
    called = [each.passed for each in rows(steps, "native") if each.task.startswith(("choose", "fill"))]
    assert called == [False] * 4


@pytest.mark.parametrize(
    ("task", "arguments", "passed"),
    [
        ("fill arguments: typed", {"folder": "./checks/", "timeout_seconds": 90, "verbose": True}, True),
        ("fill arguments: typed", {"folder": "checks", "timeout_seconds": 60, "verbose": True}, False),
        ("fill arguments: typed", {"folder": "checks", "timeout_seconds": 90, "verbose": False}, False),
        ("fill arguments: typed", {"folder": "checks", "timeout_seconds": 90}, False),
        ("fill arguments: nested", {"path": "calc.py", "edits": [{"old": "a - b", "new": "a + b"}]}, True),
        ("fill arguments: nested", {"path": "calc.py", "edits": [{"old": "a + b", "new": "a - b"}]}, False),
        ("fill arguments: nested", {"path": "calc.py", "edits": {"old": "a - b", "new": "a + b"}}, False),
        ("fill arguments: nested", {"path": "calc.py", "edits": [{"old": "a - b", "new": "a + b"}] * 2}, False),
    ],
)
def test_arguments_count_when_they_are_what_was_said(task: str, arguments: dict[str, object], passed: bool) -> None:
    wanted = next(each for each in TASKS if each.name == task)
    assert isinstance(wanted.expected, Call)
    call = ToolCall(id="call_1", name=wanted.expected.tool, arguments=arguments)
    assert wanted.passed("", [call]) is passed
    assert not wanted.passed("", [call, call])
    assert not wanted.passed("I will do it.", [])


async def test_a_model_without_tools_is_not_asked_natively() -> None:
    model = answering(right)
    steps = await probed(model, a_model(parameters="70B", capabilities=frozenset({"chat"})))
    assert {(each.passed, each.seen, each.milliseconds) for each in rows(steps, "native")} == {
        (False, "does not support tools", None)
    }
    assert all(request.format is not None for request in model.requests)
    assert steps[-1].score is not None
    assert steps[-1].score.protocol == "constrained"


async def test_a_server_that_knows_no_tools_after_all_is_an_outcome() -> None:
    def refuses(task: ProbeTask, protocol: ActionProtocol) -> Sequence[Step]:
        return right(task, protocol) if protocol == "constrained" else breaks("", ERRORS["capability_missing"]())

    steps = await probed(answering(refuses))
    assert {each.seen for each in rows(steps, "native")} == {"does not support tools"}


@pytest.mark.parametrize("kind", sorted(set(ERRORS) - {"unavailable", "model_not_found", "capability_missing"}))
async def test_a_failure_of_the_model_is_the_outcome_of_its_task(kind: str) -> None:
    steps = await probed(answering(lambda _task, _protocol: breaks("", ERRORS[kind]())))
    assert {each.passed for each in (*rows(steps, "native"), *rows(steps, "constrained"))} == {False}
    assert {each.seen for each in rows(steps, "native")} == {ERRORS[kind]().message}


@pytest.mark.parametrize("error", [ModelUnavailableError("nobody answers"), ModelNotFoundError("no such model")])
async def test_where_nothing_can_be_measured_nothing_is_kept(error: ModelError) -> None:
    rig = SideRig()
    with pytest.raises(type(error)):
        await probed(answering(lambda _task, _protocol: breaks("", error)), rig=rig)
    assert rig.scores.kept == []


async def test_a_window_that_is_too_small_for_the_tasks_is_said() -> None:
    rig = SideRig()
    with pytest.raises(ContextOverflowError):
        await probed(answering(right), rig=rig, window=512)
    assert rig.scores.kept == []


async def test_a_call_that_cannot_be_used_is_an_outcome() -> None:
    calls = [ToolCall(id="call_1", name="send_mail", arguments={})]
    steps = await probed(answering(lambda _task, _protocol: says("", calls=calls)))
    assert {each.seen for each in rows(steps, "native")} == {
        "a call that cannot be used: no tool of that name was offered"
    }


async def test_each_protocol_has_half_of_the_time_and_what_is_left_then_was_not_asked() -> None:
    rig = SideRig()

    async def slowly(seconds: float) -> None:
        rig.clock.advance(seconds)
        await asyncio.sleep(0)

    def slow(request: ChatRequest) -> Sequence[Step]:
        protocol: ActionProtocol = "native" if request.format is None else "constrained"
        return [Pause(100), *right(task_of(request), protocol)]

    prober = Prober(rig.calls, rig.card, rig.clock, seconds=600)
    model = ScriptedTransport(slow, sleep=slowly)
    steps = [step async for step in prober.probe(model, a_model(), WINDOW)]
    for protocol in ("native", "constrained"):
        assert [each.passed for each in rows(steps, protocol)] == [True] * 3 + [False] * 7
        assert {each.seen for each in rows(steps, protocol)[3:]} == {"not asked: the time was up"}
        assert [each.milliseconds for each in rows(steps, protocol)] == [100_000] * 3 + [None] * 7


async def test_a_model_that_hangs_is_left_when_the_time_is_up() -> None:
    rig = SideRig()
    prober = Prober(rig.calls, rig.card, rig.clock, tasks=TASKS[:1], seconds=0.1)
    model = ScriptedTransport(lambda _: [asyncio.Event()])
    async with asyncio.timeout(10):
        steps = [step async for step in prober.probe(model, a_model(), WINDOW)]
    assert [step.outcome.seen for step in steps if step.outcome] == ["did not finish in time"] * 2
    assert model.closed == 2


async def test_a_probe_that_is_closed_calls_the_model_off_and_keeps_nothing() -> None:
    rig, model = SideRig(), ScriptedTransport(lambda _: [asyncio.Event()])
    prober = Prober(rig.calls, rig.card, rig.clock)

    async def watch() -> None:
        async with aclosing(prober.probe(model, a_model(), WINDOW)) as steps:
            async for _ in steps:
                pass

    watching = asyncio.create_task(watch())
    await until(lambda: bool(model.requests))
    watching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await watching
    assert model.closed == 1
    assert rig.scores.kept == []
    assert [trace.stop_reason for trace in rig.traces.traces] == ["cancelled"]


@pytest.mark.model
async def test_the_embedded_model_can_be_probed(tmp_path: Path) -> None:
    rig = SideRig()
    model = EmbeddedTransport(real_model_file(), log_path=tmp_path / "worker.log", environ={})
    try:
        (info,) = await model.models()
        prober = Prober(rig.calls, rig.card, rig.clock)
        steps = [step async for step in prober.probe(model, info, WINDOW)]
    finally:
        await model.close()
    # What so small a model does is its own affair; that each of its answers is one move is ours.
    constrained = rows(steps, "constrained")
    assert [each.task for each in constrained] == [task.name for task in TASKS]
    assert all(each.seen.startswith(("answered", "read_", "list_", "edit_", "run_", "a call")) for each in constrained)
    assert {each.seen for each in rows(steps, "native")} == {"does not support tools"}
    assert steps[-1].score is not None
    assert steps[-1].score.protocol == "constrained"
    for trace in rig.traces.traces:
        assert trace.prompt_tokens_served is not None
        assert trace.prompt_tokens_served <= trace.prompt_tokens_estimated
    # One set of load options, one prompt in front: after the first call most of it is still there.
    assert all((trace.cached_tokens or 0) > 300 for trace in rig.traces.traces[1:])
