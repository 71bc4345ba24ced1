"""How a turn offers tools to a model, and what it does when a call for one comes out wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from rune.context.render import evidence_id
from rune.errors import CapabilityMissingError, EmptyOutputError, ModelError, ServerError, StreamBrokenError
from rune.models.scripted import ScriptedTransport, Step, breaks, says
from rune.models.text_tools.constrained import answer_schema
from rune.models.transport import Capability, ChatRequest, ModelInfo
from rune.records.tools import ToolSchema
from rune.records.turns import StopReason
from rune.surface.trace_text import trace_text
from rune.turn.events import TextDelta
from tests.turn.rig import closing, rig
from tests.turn.tools import Offered

READ = ToolSchema(
    name="read_file",
    description="Read a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)
ANSWER = '{"answer": "The Danube."}'
LOST: list[ModelError] = [
    EmptyOutputError(generated=9),
    CapabilityMissingError("large", "tools"),
    ServerError("error parsing tool call: raw='{'", status=500, phase="first_byte"),
]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def large(*answers: list[Step], window: int = 8192) -> ScriptedTransport:
    """Return a model that is believed to call tools natively."""
    able: frozenset[Capability] = frozenset({"chat", "tools"})
    info = ModelInfo(name="large", provider="scripted", capabilities=able, parameters="14B", context_length=window)
    return ScriptedTransport(answers, models=[info], window=window)


def sent(request: ChatRequest) -> list[dict[str, Any]]:
    return json.loads(request.messages)


async def test_a_small_model_is_held_to_one_move_and_its_answer_is_kept_as_text(home: Path) -> None:
    async with rig(home, [says(ANSWER), says(ANSWER)], tools=[Offered(READ)]) as it:
        events = await it.turn()
        closed = closing(events)
        await it.say("another", closed.conversation_id)
        first, second = it.model.requests
    assert (first.tools, first.format, first.think) == (b"[]", answer_schema([READ]), "off")
    assert "read_file: Read a file." in sent(first)[0]["content"]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "The Danube."
    assert (closed.answer, closed.stop_reason) == ("The Danube.", StopReason.ANSWERED)
    assert sent(second)[2] == {"role": "assistant", "content": ANSWER}
    assert second.messages.startswith(first.messages.removesuffix(b"]"))


async def test_what_the_answer_was_held_to_stands_in_the_trace(home: Path) -> None:
    leaked = says('{"name": "read_file", "arguments": {}}')
    async with rig(home, (), model=large(leaked, says(ANSWER)), tools=[Offered(READ)]) as it:
        closed = await it.say()
        views = it.services.surface.views
        trace = await views.trace(closed.trace_id)
        native, constrained = await views.prompts(trace)
        shown = trace_text(trace)
    assert (native.matches, native.format) == (constrained.matches, b"") == (True, b"")
    assert constrained.format == it.model.requests[1].format == answer_schema([READ])
    assert [recipe.format for recipe in trace.requests] == ["", evidence_id(answer_schema([READ]))]
    assert "asked for: held to a schema, temperature 0.0\n" in shown


async def test_how_much_was_to_be_thought_stands_in_the_trace(home: Path) -> None:
    async with rig(home, [says(ANSWER), says(ANSWER)], tools=[Offered(READ)]) as it:
        closed = await it.say()
        trace = await it.services.surface.views.trace(closed.trace_id)
    assert [recipe.think for recipe in trace.requests] == ["off"]
    assert "asked for: held to a schema, thinking off, temperature 0.0\n" in trace_text(trace)


async def test_a_large_model_is_offered_tools_natively(home: Path) -> None:
    async with rig(home, (), model=large(says("The Danube.")), tools=[Offered(READ)]) as it:
        closed = await it.say()
        (request,) = it.model.requests
    assert closed.answer == "The Danube."
    assert json.loads(request.tools)[0]["function"]["name"] == "read_file"
    assert (request.format, request.think) == (None, None)
    assert '{"answer"' not in sent(request)[0]["content"]


async def test_without_tools_nothing_is_held_to_anything(home: Path) -> None:
    async with rig(home, [says(ANSWER)]) as it:
        closed = await it.say()
        (request,) = it.model.requests
    assert closed.answer == ANSWER
    assert (request.format, request.tools) == (None, b"[]")


async def test_a_window_without_room_for_tools_is_for_words_only(home: Path) -> None:
    model = ScriptedTransport([says(ANSWER)], window=2048)
    async with rig(home, (), model=model, tools=[Offered(READ)]) as it:
        closed = await it.say()
    assert closed.answer == ANSWER
    assert model.requests[0].format is None
    assert b"read_file" not in model.requests[0].messages


@pytest.mark.parametrize("lost", LOST, ids=str)
async def test_a_call_that_was_lost_on_the_way_is_asked_for_once_more_constrained(home: Path, lost: ModelError) -> None:
    async with rig(home, (), model=large([lost], says(ANSWER)), tools=[Offered(READ)]) as it:
        closed = await it.say()
        first, second = it.model.requests
        (trace,) = await it.services.surface.views.traces(limit=1)
    assert (closed.answer, closed.stop_reason) == ("The Danube.", StopReason.ANSWERED)
    assert (first.format, second.format) == (None, answer_schema([READ]))
    assert (trace.model_calls, trace.prefix_break) == (2, "tools changed")
    assert [recipe.dialect for recipe in trace.requests] == ["ollama", "constrained"]


async def test_a_leaked_call_that_cannot_be_used_is_asked_for_once_more(home: Path) -> None:
    leaked = says('{"name": "read_file", "arguments": {}}')
    async with rig(home, (), model=large(leaked, says(ANSWER)), tools=[Offered(READ)]) as it:
        events = await it.turn()
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "The Danube."


async def test_there_is_one_second_try_and_then_the_failure(home: Path) -> None:
    async with rig(home, (), model=large([LOST[0]], [LOST[0]], says(ANSWER)), tools=[Offered(READ)]) as it:
        closed = await it.say()
        assert len(it.model.requests) == 2
    assert (closed.stop_reason, closed.answer) == (StopReason.FAILED, "")


@pytest.mark.parametrize(
    "answer",
    [breaks("The Dan", LOST[2]), breaks("The Dan", StreamBrokenError("gone")), [StreamBrokenError("gone")]],
    ids=["after_text", "broken_after_text", "broken"],
)
async def test_nothing_is_asked_again_after_text_or_for_another_reason(home: Path, answer: list[Step]) -> None:
    async with rig(home, (), model=large(answer, says(ANSWER)), tools=[Offered(READ)]) as it:
        closed = await it.say()
        assert len(it.model.requests) == 1
    assert closed.stop_reason in {StopReason.FAILED, StopReason.INCOMPLETE}


async def test_a_conversation_goes_on_in_another_process_as_it_was_written(home: Path) -> None:
    async with rig(home, [says(ANSWER)], tools=[Offered(READ)]) as it:
        first = await it.say()
        before = it.model.requests[0].messages
    async with rig(home, [says(ANSWER)], tools=[Offered(READ)]) as it:
        await it.say("another", first.conversation_id)
        assert it.model.requests[0].messages.startswith(before.removesuffix(b"]"))
        (trace,) = await it.services.surface.views.traces(limit=1)
    assert (trace.prefix_reuse, trace.prefix_break) == (1.0, None)
