"""What a stream means where tools are on offer: run over a scripted model, whatever protocol."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

import pytest

from rune.errors import EmptyOutputError, ModelError, StreamBrokenError, UnusableCallError
from rune.models.scripted import ScriptedTransport, Step, breaks, says
from rune.models.text_tools.acting import acting
from rune.models.transport import (
    ChatChunk,
    ChatRequest,
    Completed,
    LoadOptions,
    Progress,
    TextDelta,
    ThinkingDelta,
    ToolCallReady,
)
from rune.records.models import ActionProtocol
from rune.records.tools import ToolCall, ToolSchema
from rune.records.usage import Usage
from tests.turn.rig import until

READ = ToolSchema(
    name="read_file",
    description="Read a file.",
    parameters={
        "type": "object",
        "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["path"],
    },
)
ASK = ChatRequest(model="scripted", messages=b"[]", tools=b"[]", options=LoadOptions(num_ctx=4096), estimated=1)
LEAKED = '{"name": "read_file", "arguments": {"path": "a.py"}}'
MOVE = '{"tool": "read_file", "arguments": {"path": "a.py"}}'
ANSWER = '{"answer": "The Nile is long."}'


async def heard(
    answer: Sequence[Step], *, tools: Sequence[ToolSchema] = (READ,), protocol: ActionProtocol = "native"
) -> tuple[list[ChatChunk], ModelError | None]:
    chunks: list[ChatChunk] = []
    try:
        async for chunk in acting(ScriptedTransport([answer]).chat(ASK), tools=tools, protocol=protocol):
            chunks.append(chunk)  # noqa: PERF401 - what came before an error counts too
    except ModelError as error:
        return chunks, error
    return chunks, None


def texts(chunks: Sequence[ChatChunk]) -> list[str]:
    return [chunk.text for chunk in chunks if isinstance(chunk, TextDelta)]


def calls(chunks: Sequence[ChatChunk]) -> list[ToolCall]:
    return [chunk.call for chunk in chunks if isinstance(chunk, ToolCallReady)]


def end(chunks: Sequence[ChatChunk]) -> Completed:
    last = chunks[-1]
    assert isinstance(last, Completed)
    assert not any(isinstance(chunk, Completed) for chunk in chunks[:-1])
    return last


async def test_native_without_tools_is_the_very_same_stream() -> None:
    stream = ScriptedTransport([says("hi")]).chat(ASK)
    assert acting(stream, tools=(), protocol="native") is stream
    await stream.aclose()


async def test_native_words_are_given_out_as_they_come() -> None:
    chunks, _ = await heard(says("The Nile is long.", thinking="hm"))
    assert chunks[0] == ThinkingDelta("hm")
    assert texts(chunks)[-2:] == [" is", " long."]
    assert ("".join(texts(chunks)), end(chunks).reason) == ("The Nile is long.", "stop")


async def test_text_that_is_a_call_becomes_one_and_is_never_shown() -> None:
    chunks, error = await heard(says(LEAKED))
    (call,) = calls(chunks)
    assert (call.name, call.arguments, call.source) == ("read_file", {"path": "a.py"}, "repaired")
    assert (texts(chunks), end(chunks).reason, error) == ([], "tool_calls", None)


async def test_text_that_looked_like_a_call_is_given_out_as_soon_as_it_cannot_be_one() -> None:
    chunks, _ = await heard(says('{"name": "read_file", oh no, that was an example'))
    assert "".join(texts(chunks)) == '{"name": "read_file", oh no, that was an example'
    assert len(texts(chunks)) > 3
    assert (calls(chunks), end(chunks).reason) == ([], "stop")


async def test_a_leaked_call_that_cannot_be_used_is_typed() -> None:
    chunks, error = await heard(says('{"name": "read_file", "arguments": {"limit": 3}}'))
    assert isinstance(error, UnusableCallError)
    assert (error.tool, texts(chunks)) == ("read_file", [])


async def test_native_calls_are_checked_and_fitted() -> None:
    given = ToolCall(id="x", name="functions.read_file", arguments={"path": "a.py", "limit": "3"})
    chunks, _ = await heard(says("", calls=[given]))
    assert calls(chunks) == [ToolCall(id="x", name="read_file", arguments={"path": "a.py", "limit": 3})]
    assert end(chunks).reason == "tool_calls"


@pytest.mark.parametrize(
    "call",
    [ToolCall(id="x", name="rm", arguments={}), ToolCall(id="x", name="read_file", arguments={"limit": 1})],
    ids=["not_offered", "does_not_fit"],
)
@pytest.mark.parametrize("protocol", ["native", "constrained"])
async def test_a_call_from_the_server_that_cannot_be_used_is_typed(call: ToolCall, protocol: ActionProtocol) -> None:
    chunks, error = await heard(says("", calls=[call]), protocol=protocol)
    assert isinstance(error, UnusableCallError)
    assert (error.tool, calls(chunks)) == (call.name, [])


async def test_text_beside_a_native_call_is_text() -> None:
    given = ToolCall(id="x", name="read_file", arguments={"path": "a.py"})
    chunks, _ = await heard(says(LEAKED, calls=[given]))
    assert ("".join(texts(chunks)), calls(chunks)) == (LEAKED, [given])


async def test_text_after_a_native_call_is_text() -> None:
    given = ToolCall(id="x", name="read_file", arguments={"path": "a.py"})
    chunks, _ = await heard([ToolCallReady(given), TextDelta(LEAKED), Completed("stop", Usage())])
    assert (texts(chunks), calls(chunks)) == ([LEAKED], [given])


@pytest.mark.parametrize("protocol", ["native", "constrained"])
@pytest.mark.parametrize("held", ['{"name": "read_', "```json\n{", "```", "{"])
async def test_what_was_held_back_comes_before_the_error_of_a_stream(held: str, protocol: ActionProtocol) -> None:
    chunks, error = await heard(breaks(held, StreamBrokenError("it broke")), protocol=protocol)
    assert ("".join(texts(chunks)), type(error)) == (held, StreamBrokenError)


async def test_a_constrained_call_comes_out_whole() -> None:
    chunks, _ = await heard(says(MOVE, thinking="hm"), protocol="constrained")
    assert calls(chunks) == [ToolCall(id="call_1", name="read_file", arguments={"path": "a.py"}, source="constrained")]
    assert (texts(chunks), end(chunks).reason) == ([], "tool_calls")
    assert isinstance(chunks[0], ThinkingDelta)


async def test_a_constrained_answer_is_streamed() -> None:
    chunks, _ = await heard(says(ANSWER), protocol="constrained")
    assert texts(chunks) == ["The", " Nile", " is", " long."]
    assert end(chunks).reason == "stop"


async def test_a_constrained_answer_that_the_limit_cut_says_so() -> None:
    chunks, _ = await heard(says('{"answer": "The Nile is', reason="length"), protocol="constrained")
    assert ("".join(texts(chunks)), end(chunks).reason) == ("The Nile is", "length")


async def test_an_answer_may_be_all_that_is_admissible() -> None:
    chunks, _ = await heard(says(ANSWER), tools=(), protocol="constrained")
    assert "".join(texts(chunks)) == "The Nile is long."


@pytest.mark.parametrize("nothing", ['{"answer": ""}', "  \n", "```"])
async def test_a_constrained_answer_that_says_nothing_is_typed(nothing: str) -> None:
    steps: list[Step] = [Progress("reading", 1, 2), TextDelta(nothing), Completed("stop", Usage(output_tokens=5))]
    chunks, error = await heard(steps, protocol="constrained")
    assert isinstance(error, EmptyOutputError)
    assert (error.generated, chunks) == (5, [Progress("reading", 1, 2)])


@pytest.mark.parametrize("protocol", ["native", "constrained"])
async def test_the_figures_of_the_stream_arrive(protocol: ActionProtocol) -> None:
    usage = Usage(calls=1, prompt_tokens=7, output_tokens=3)
    text = LEAKED if protocol == "native" else MOVE
    chunks, _ = await heard([TextDelta(text), Completed("stop", usage)], protocol=protocol)
    assert end(chunks).usage == usage


@pytest.mark.parametrize("protocol", ["native", "constrained"])
async def test_closing_it_in_mid_answer_calls_the_model_off(protocol: ActionProtocol) -> None:
    text = "The Nile is long." if protocol == "native" else ANSWER
    model = ScriptedTransport([says(text)])
    async with aclosing(acting(model.chat(ASK), tools=[READ], protocol=protocol)) as chunks:
        async for _ in chunks:
            break
    assert model.closed == 1


async def test_cancelling_while_a_call_is_held_back_calls_the_model_off() -> None:
    never = asyncio.Event()
    model = ScriptedTransport([[TextDelta('{"tool": "read_'), never]])

    async def listen() -> None:
        async for _ in acting(model.chat(ASK), tools=[READ], protocol="constrained"):
            raise AssertionError("nothing of a call is given out before it is whole")

    task = asyncio.create_task(listen())
    await until(lambda: bool(model.requests))
    task.cancel()
    await asyncio.wait([task])
    assert (task.cancelled(), model.closed) == (True, 1)
