"""How long it waits, and what it tries again: only before any byte of an answer."""

import asyncio
import time
from contextlib import aclosing

import pytest

from rune.errors import (
    BusyError,
    ModelTimeoutError,
    ModelUnavailableError,
    ProtocolError,
    StreamBrokenError,
)
from rune.models.openai_compatible.address import ServerAddress
from rune.models.openai_compatible.transport import OpenAITransport
from rune.models.transport import ChatChunk, Completed, Progress
from tests.models.conftest import Pauses
from tests.models.openai_compatible.conftest import address
from tests.models.transport_contract import (
    DEADLINE,
    TOOLS,
    collect,
    request,
    text_of,
)
from tests.ollama_replies import Pause, Reply, Reset, Wait
from tests.openai_server import (
    CHAT,
    DONE,
    OpenAIServer,
    answers,
    fails,
    finish,
    fragment,
    says,
    stream,
    words,
)


async def test_silence_before_the_first_piece_is_a_timeout_of_its_own(openai_server: OpenAIServer) -> None:
    transport = OpenAITransport(address(openai_server), first_byte_timeout=0.1, token_timeout=60)
    for reply in (Reply([Wait(asyncio.Event())], framing="raw"), stream(b": still here\n\n", Wait(asyncio.Event()))):
        openai_server.reply(CHAT, reply)
        _, error = await collect(transport, request("test"))
        assert isinstance(error, ModelTimeoutError)
        assert error.phase == "first_byte"
    await transport.close()


async def test_silence_between_pieces_is_another_and_comments_do_not_break_it(openai_server: OpenAIServer) -> None:
    transport = OpenAITransport(address(openai_server), first_byte_timeout=60, token_timeout=0.15)
    comments = [part for _ in range(200) for part in (b": still here\n\n", Pause(0.01))]
    openai_server.reply(CHAT, stream(*words("one"), *comments, finish(), DONE))
    began = time.monotonic()
    chunks, error = await collect(transport, request("test"))
    assert text_of(chunks) == "one"
    assert isinstance(error, ModelTimeoutError)
    assert error.phase == "token"
    assert time.monotonic() - began < 1.5
    await transport.close()


async def test_a_server_that_sends_on_and_on_and_nothing_of_an_answer_is_left(openai_server: OpenAIServer) -> None:
    transport = OpenAITransport(address(openai_server))
    megabyte = b'data: {"choices":[],"padding":"' + b"a" * (1 << 20) + b'"}\n\n'
    openai_server.reply(CHAT, stream(*words("one"), *[megabyte] * 65, finish(), DONE))
    chunks, error = await collect(transport, request("test"))
    assert (text_of(chunks), type(error)) == ("one", ProtocolError)
    await transport.close()


async def test_a_reader_that_takes_its_time_is_no_silence_of_the_server(openai_server: OpenAIServer) -> None:
    transport = OpenAITransport(address(openai_server), token_timeout=0.05)
    openai_server.reply(CHAT, stream(b"".join([*words("one two three"), finish(), DONE])))
    async with asyncio.timeout(DEADLINE), aclosing(transport.chat(request("test"))) as chunks:
        ends: list[ChatChunk] = []
        async for chunk in chunks:
            ends.append(chunk)
            await asyncio.sleep(0.06)  # the reader is what takes long here
    assert isinstance(ends[-1], Completed)
    await transport.close()


async def test_while_tools_are_offered_the_patience_is_the_longer_one(openai_server: OpenAIServer) -> None:
    transport = OpenAITransport(address(openai_server), first_byte_timeout=60, token_timeout=0.05)
    call = fragment(id="a", name="read", arguments="{}")
    openai_server.reply(CHAT, stream(*words("one"), Pause(0.3), call, finish("tool_calls"), DONE))
    _, error = await collect(transport, request("test", tools=TOOLS))
    assert error is None
    await transport.close()


async def test_a_connection_that_is_cut_before_any_byte_is_tried_once_more(
    openai_server: OpenAIServer, openai_transport: OpenAITransport, pauses: Pauses
) -> None:
    openai_server.reply(CHAT, Reply([Reset()], framing="raw"), says("one"))
    chunks, error = await collect(openai_transport, request("test"))
    assert (text_of(chunks), error, len(pauses.seconds)) == ("one", None, 1)
    openai_server.reply(CHAT, Reply([Reset()], framing="raw"))
    _, error = await collect(openai_transport, request("test"))
    assert isinstance(error, StreamBrokenError)
    assert len(openai_server.asked(CHAT)) == 4


async def test_nobody_at_the_address_is_tried_once_more_and_then_said_with_it(pauses: Pauses) -> None:
    async with OpenAIServer() as server:
        there = server.base_url
    transport = OpenAITransport(ServerAddress.checked(there, source="test", name="lab"), sleep=pauses)
    _, error = await collect(transport, request("test"))
    assert isinstance(error, ModelUnavailableError)
    assert len(pauses.seconds) == 1
    assert error.hint == f"Is lab running, and is {there} its address?"
    with pytest.raises(ModelUnavailableError):
        await transport.models()
    await transport.close()


@pytest.mark.parametrize("status", [429, 503])
async def test_a_busy_server_is_asked_twice_more(
    openai_server: OpenAIServer, openai_transport: OpenAITransport, pauses: Pauses, status: int
) -> None:
    busy = fails(status, message="slow down")
    openai_server.reply(CHAT, busy, busy, says("one"))
    chunks, error = await collect(openai_transport, request("test"))
    assert (text_of(chunks), error, pauses.seconds) == ("one", None, [0.5, 1.5])
    openai_server.reply(CHAT, busy)
    _, error = await collect(openai_transport, request("test"))
    assert isinstance(error, BusyError)
    assert len(openai_server.asked(CHAT)) == 6


async def test_a_short_retry_after_is_honoured_and_a_long_one_is_not_waited_for(
    openai_server: OpenAIServer, openai_transport: OpenAITransport, pauses: Pauses
) -> None:
    error_body = {"error": {"message": "slow down"}}
    openai_server.reply(CHAT, answers(error_body, 429, {"Retry-After": "3"}), says("one"))
    _, error = await collect(openai_transport, request("test"))
    assert (error, pauses.seconds) == (None, [3.0])
    openai_server.reply(CHAT, answers(error_body, 429, {"Retry-After": "600"}), says("one"))
    _, error = await collect(openai_transport, request("test"))
    assert isinstance(error, BusyError)
    assert pauses.seconds == [3.0]


async def test_a_server_that_still_loads_its_model_is_waited_for(
    openai_server: OpenAIServer, openai_transport: OpenAITransport
) -> None:
    loading = fails(503, message="Loading model", type="unavailable_error", code=503)
    openai_server.reply(CHAT, *[loading] * 5, says("one"))
    chunks, error = await collect(openai_transport, request("test"))
    assert error is None
    assert chunks[:6] == [Progress("reading", 0, 8), *[Progress("loading", 0, None)] * 5]


async def test_nothing_is_sent_again_once_a_byte_of_the_answer_has_come(
    openai_server: OpenAIServer, openai_transport: OpenAITransport
) -> None:
    openai_server.reply(CHAT, stream(*words("one"), Reset()), says("two"))
    chunks, error = await collect(openai_transport, request("test"))
    assert text_of(chunks) == "one"
    assert isinstance(error, StreamBrokenError)
    assert len(openai_server.asked(CHAT)) == 1
