import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.context.reconstruct import rebuild_messages
from rune.errors import ContextOverflowError, ModelError, ProtocolError, StorageUnavailableError
from rune.models.prompt_files import prompt
from rune.models.scripted import ERRORS, ScriptedTransport, Step, breaks, says
from rune.models.side_call import SideRequest
from rune.models.side_messages import SideMessage, rendered
from rune.models.transport import ChatChunk, ChatRequest, Completed, TextDelta
from rune.records.tools import ToolCall
from rune.records.traces import InferenceTraceRecord
from rune.records.usage import Usage
from tests.models.side import SideRig, a_model
from tests.turn.rig import until

WINDOW = 8192
CALL = ToolCall(id="call_7", name="read_file", arguments={"path": "ä.txt"})


def asking(text: str = "name a river", **fields: Any) -> SideRequest:
    said: dict[str, Any] = {"task": "probe", "messages": (SideMessage(role="user", content=text),), "max_tokens": 64}
    return SideRequest(**(said | fields))


def rebuilt(rig: SideRig, trace: InferenceTraceRecord) -> bytes:
    (recipe,) = trace.requests
    found = rebuild_messages(recipe, rig.traces.blobs, {})
    assert (found.matches, found.problems) == (True, ())
    return found.messages


async def test_it_sends_the_prompt_file_then_the_messages_with_the_conversations_window_and_keeps_what_it_sent() -> (
    None
):
    rig, model = SideRig(), ScriptedTransport([says("the Danube")])
    request = asking(
        details="Use no tools.", format=b'{"type":"object"}', tools=b'[{"type":"function"}]', temperature=0.0
    )
    answer = await rig.calls.ask(model, a_model(), WINDOW, request)
    (sent,) = model.requests
    assert json.loads(sent.messages) == [
        {"role": "system", "content": f"{prompt('probe')}\n\nUse no tools."},
        {"role": "user", "content": "name a river"},
    ]
    assert (sent.options.num_ctx, sent.max_tokens, sent.temperature) == (WINDOW, 64, 0.0)
    assert (sent.format, sent.tools) == (request.format, request.tools)
    assert (answer.text, answer.reason, answer.usage.output_tokens) == ("the Danube", "stop", 2)
    (trace,) = rig.traces.traces
    assert rebuilt(rig, trace) == sent.messages
    assert rig.traces.blobs[trace.requests[0].tools] == sent.tools
    assert rig.traces.blobs[trace.requests[0].format] == sent.format
    assert (trace.requests[0].think, trace.requests[0].temperature) == (sent.think, 0.0)
    assert (trace.id, trace.kind, trace.num_ctx) == (answer.trace_id, "side", WINDOW)
    assert (trace.stop_reason, trace.success, trace.per_block_tokens) == ("answered", True, {"probe": sent.estimated})


@pytest.mark.parametrize(("capabilities", "think"), [({"chat", "thinking"}, "off"), ({"chat"}, None)])
async def test_a_model_that_can_think_is_told_not_to(capabilities: set[str], think: str | None) -> None:
    rig, model = SideRig(), ScriptedTransport([says("the Danube")])
    await rig.calls.ask(model, a_model(capabilities=frozenset(capabilities)), WINDOW, asking())
    assert model.requests[0].think == rig.traces.traces[0].requests[0].think == think
    assert rig.traces.traces[0].requests[0].format == ""


async def test_what_does_not_fit_beside_its_answer_is_not_sent() -> None:
    rig, model = SideRig(), ScriptedTransport([says("never")])
    with pytest.raises(ContextOverflowError) as refused:
        await rig.calls.ask(model, a_model(), 2048, asking("river " * 4000))
    assert (refused.value.window, refused.value.budget) == (2048, 2048 - 64)
    assert refused.value.total > 2048
    assert (model.requests, rig.traces.traces) == ([], [])


@pytest.mark.parametrize("kind", sorted(ERRORS))
async def test_a_call_that_fails_raises_as_the_model_did_and_leaves_its_trace(kind: str) -> None:
    rig, error = SideRig(), ERRORS[kind]()
    model = ScriptedTransport([breaks("the Dan", error)])
    with pytest.raises(ModelError) as raised:
        await rig.calls.ask(model, a_model(), WINDOW, asking())
    assert raised.value is error
    (trace,) = rig.traces.traces
    assert (trace.stop_reason, trace.success, trace.error) == ("failed", False, error.message)
    assert rebuilt(rig, trace) == model.requests[0].messages


async def test_a_stream_without_an_end_is_a_failure() -> None:
    class Endless(ScriptedTransport):
        async def chat(self, request: ChatRequest) -> AsyncGenerator[ChatChunk]:
            self.requests.append(request)
            yield TextDelta("half")

    rig = SideRig()
    with pytest.raises(ProtocolError, match="without an end"):
        await rig.calls.ask(Endless(), a_model(), WINDOW, asking())
    assert rig.traces.traces[0].stop_reason == "failed"


async def test_an_answer_cut_at_its_limit_says_so() -> None:
    rig, model = SideRig(), ScriptedTransport([says("the Dan", reason="length")])
    answer = await rig.calls.ask(model, a_model(), WINDOW, asking())
    assert answer.reason == "length"
    assert (rig.traces.traces[0].stop_reason, rig.traces.traces[0].success) == ("length", False)


async def test_a_server_that_does_not_keep_to_the_limit_is_left() -> None:
    steps: list[Step] = [TextDelta("river " * 100) for _ in range(1000)]
    rig, model = SideRig(), ScriptedTransport([[*steps, Completed("stop", Usage(calls=1))]])
    answer = await rig.calls.ask(model, a_model(), WINDOW, asking())
    assert answer.reason == "length"
    assert len(answer.text) < 5_000
    assert model.closed == 1


async def test_a_call_that_is_cancelled_is_called_off_and_leaves_its_trace() -> None:
    rig = SideRig()
    model = ScriptedTransport([[TextDelta("the"), asyncio.Event()]])
    asked = asyncio.create_task(rig.calls.ask(model, a_model(), WINDOW, asking()))
    await until(lambda: bool(model.requests))
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert model.closed == 1
    assert [trace.stop_reason for trace in rig.traces.traces] == ["cancelled"]


async def test_a_trace_that_cannot_be_kept_costs_no_answer() -> None:
    rig, model = SideRig(), ScriptedTransport([says("the Danube")])
    rig.traces.failure = StorageUnavailableError("the disk is full")
    answer = await rig.calls.ask(model, a_model(), WINDOW, asking())
    assert (answer.text, answer.trace_id) == ("the Danube", None)
    assert rig.reports == [("inference_trace", rig.traces.failure)]


@pytest.mark.parametrize(
    ("dialect", "assistant", "tool"),
    [
        (
            "ollama",
            {"id": "call_7", "function": {"index": 0, "name": "read_file", "arguments": {"path": "ä.txt"}}},
            {"role": "tool", "content": "wet", "tool_name": "read_file", "tool_call_id": "call_7"},
        ),
        (
            "openai",
            {"id": "call_7", "type": "function", "function": {"name": "read_file", "arguments": '{"path":"ä.txt"}'}},
            {"role": "tool", "content": "wet", "tool_call_id": "call_7"},
        ),
    ],
)
def test_past_calls_are_written_as_each_server_wants_them(
    dialect: str, assistant: dict[str, object], tool: dict[str, object]
) -> None:
    messages = (
        SideMessage(role="assistant", calls=(CALL,)),
        SideMessage(role="tool", content="wet", tool_name="read_file", call_id="call_7"),
    )
    said = json.loads(rendered(messages, dialect))  # pyright: ignore[reportArgumentType] - one of both dialects
    assert said == [{"role": "assistant", "content": "", "tool_calls": [assistant]}, tool]


@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=1, max_size=4))
def test_any_text_is_sent_as_it_is(texts: list[str]) -> None:
    array = rendered([SideMessage(role="user", content=text) for text in texts], "ollama")
    assert [each["content"] for each in json.loads(array)] == texts


def test_what_utf_8_cannot_hold_is_sent_as_a_mark() -> None:
    assert json.loads(rendered([SideMessage(role="user", content="a\udce4b")], "ollama"))[0]["content"] == "a\ufffdb"
