"""What every ChatTransport must keep to, run against each of them (the scripted one included)."""

import asyncio
from contextlib import aclosing
from typing import Protocol

import pytest

from rune.errors import ModelError, ModelNotFoundError
from rune.models.transport import (
    ChatChunk,
    ChatRequest,
    ChatTransport,
    Completed,
    LoadOptions,
    TextDelta,
    ThinkingDelta,
    ToolCallReady,
)

DEADLINE = 10.0
# Spaces, escapes and key order that no encoder of ours would choose: they must arrive as they are.
MESSAGES = '[ {"role":"user",  "content":"R\\u00e9sum\\u00e9 \\/ é\u2028 \\ud83d\\ude00"} ]'.encode()
TOOLS = b'[{"type":"function","function":{"name":"read","description":"Read.","parameters":{ "type":"object"}}}]'


class Stage(Protocol):
    """A transport and the other side of it, which says what it is told."""

    transport: ChatTransport
    model: str

    def will_say(self, *texts: str) -> None:
        """Let the coming answers be these texts, each whole."""
        ...

    def will_break(self, text: str) -> None:
        """Let the next answer end after `text` without its end."""
        ...

    def will_call(self, name: str) -> None:
        """Let the next answer be one tool call."""
        ...

    def will_hang(self, text: str) -> None:
        """Let the next answer stop after `text` and never go on."""
        ...

    async def called_off(self) -> None:
        """Wait until the other side has seen that the call was called off."""
        ...

    def sent(self) -> bytes:
        """Return what was sent last: at least the messages array, as it left."""
        ...


def request(
    model: str, *, messages: bytes = MESSAGES, tools: bytes = b"[]", estimated: int = 8, num_ctx: int = 4096
) -> ChatRequest:
    options = LoadOptions(num_ctx=num_ctx)
    return ChatRequest(model=model, messages=messages, tools=tools, options=options, estimated=estimated)


async def collect(transport: ChatTransport, asked: ChatRequest) -> tuple[list[ChatChunk], ModelError | None]:
    """Return all chunks and the error, if it ended in one."""
    chunks: list[ChatChunk] = []
    async with asyncio.timeout(DEADLINE):
        try:
            async with aclosing(transport.chat(asked)) as stream:
                async for chunk in stream:
                    chunks.append(chunk)  # noqa: PERF401 - what came before an error is kept
        except ModelError as error:
            return chunks, error
    return chunks, None


def text_of(chunks: list[ChatChunk]) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))


class TransportContract:
    """Subclass it in a test module and give it a fixture `stage`."""

    async def test_a_whole_answer_ends_in_exactly_one_completed_and_nothing_follows(self, stage: Stage) -> None:
        stage.will_say("one two three")
        chunks, error = await collect(stage.transport, request(stage.model))
        assert error is None
        assert text_of(chunks) == "one two three"
        assert [chunk for chunk in chunks if isinstance(chunk, Completed)] == chunks[-1:]
        ended = chunks[-1]
        assert isinstance(ended, Completed)
        assert ended.reason == "stop"
        assert ended.usage.calls == 1

    async def test_an_answer_that_breaks_off_ends_in_one_error_and_keeps_what_came(self, stage: Stage) -> None:
        stage.will_break("one two")
        chunks, error = await collect(stage.transport, request(stage.model))
        assert isinstance(error, ModelError)
        assert text_of(chunks) == "one two"
        assert not [chunk for chunk in chunks if isinstance(chunk, Completed)]

    async def test_an_ended_iteration_stays_ended(self, stage: Stage) -> None:
        stage.will_say("one")
        stream = stage.transport.chat(request(stage.model))
        async with asyncio.timeout(DEADLINE):
            async for _ in stream:
                pass
            assert await anext(stream, None) is None

    async def test_no_delta_is_empty(self, stage: Stage) -> None:
        stage.will_say("one  two\n\nthree ")
        chunks, _ = await collect(stage.transport, request(stage.model))
        deltas = [chunk for chunk in chunks if isinstance(chunk, (TextDelta, ThinkingDelta))]
        assert deltas
        assert all(delta.text for delta in deltas)

    async def test_a_tool_call_arrives_whole_and_is_the_reason_of_the_end(self, stage: Stage) -> None:
        stage.will_call("read")
        chunks, error = await collect(stage.transport, request(stage.model, tools=TOOLS))
        assert error is None
        calls = [chunk.call for chunk in chunks if isinstance(chunk, ToolCallReady)]
        assert [call.name for call in calls] == ["read"]
        assert calls[0].id
        ended = chunks[-1]
        assert isinstance(ended, Completed)
        assert ended.reason == "tool_calls"

    async def test_the_messages_leave_byte_for_byte(self, stage: Stage) -> None:
        stage.will_say("one")
        await collect(stage.transport, request(stage.model))
        assert MESSAGES in stage.sent()

    async def test_closing_the_iterator_calls_the_model_off(self, stage: Stage) -> None:
        stage.will_hang("one two")
        async with asyncio.timeout(DEADLINE):
            async with aclosing(stage.transport.chat(request(stage.model))) as stream:
                async for chunk in stream:
                    if isinstance(chunk, TextDelta):
                        break
            await stage.called_off()

    async def test_cancelling_the_task_calls_the_model_off(self, stage: Stage) -> None:
        stage.will_hang("one")
        came = asyncio.Event()

        async def read() -> None:
            async with aclosing(stage.transport.chat(request(stage.model))) as stream:
                async for chunk in stream:
                    if isinstance(chunk, TextDelta):
                        came.set()

        async with asyncio.timeout(DEADLINE):
            reading = asyncio.create_task(read())
            await came.wait()
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            await stage.called_off()

    async def test_after_a_call_was_called_off_the_next_one_is_answered(self, stage: Stage) -> None:
        stage.will_hang("one")
        async with asyncio.timeout(DEADLINE), aclosing(stage.transport.chat(request(stage.model))) as stream:
            async for chunk in stream:
                if isinstance(chunk, TextDelta):
                    break
        stage.will_say("two")
        chunks, error = await collect(stage.transport, request(stage.model))
        assert error is None
        assert text_of(chunks) == "two"

    async def test_an_iterator_that_was_never_begun_sends_nothing(self, stage: Stage) -> None:
        stage.will_say("one")
        await stage.transport.chat(request(stage.model)).aclose()
        chunks, _ = await collect(stage.transport, request(stage.model))
        assert text_of(chunks) == "one"

    async def test_it_lists_and_describes_its_model(self, stage: Stage) -> None:
        listed = await stage.transport.models()
        assert stage.model in [info.name for info in listed]
        described = await stage.transport.describe(stage.model)
        assert described.name == stage.model
        assert described.provider == stage.transport.provider
        assert "chat" in described.capabilities

    async def test_a_model_that_it_does_not_have_is_not_found(self, stage: Stage) -> None:
        with pytest.raises(ModelNotFoundError):
            await stage.transport.describe("no-such-model")

    async def test_closing_twice_is_fine(self, stage: Stage) -> None:
        stage.will_say("one")
        await collect(stage.transport, request(stage.model))
        await stage.transport.close()
        await stage.transport.close()
