import asyncio
import socket
import subprocess
import sys
import time
from contextlib import aclosing

import pytest

from rune.errors import (
    BusyError,
    ModelError,
    ModelNotFoundError,
    ModelTimeoutError,
    ModelUnavailableError,
    ProtocolError,
)
from rune.models.ollama.transport import OllamaTransport
from rune.models.transport import Progress, TextDelta
from rune.models.wire.http import make_client
from tests.models.conftest import Pauses
from tests.models.transport_contract import DEADLINE, MESSAGES, TOOLS, TransportContract, collect, request, text_of
from tests.ollama_server import (
    Drop,
    OllamaServer,
    Received,
    Reply,
    Wait,
    call,
    done,
    fails,
    line,
    recorded,
    says,
    stream,
    text_lines,
)


class OllamaStage:
    def __init__(self, server: OllamaServer, transport: OllamaTransport) -> None:
        self.model = "test:latest"
        self.transport = transport
        self._server = server

    def will_say(self, *texts: str) -> None:
        self._server.reply("/api/chat", *(says(text) for text in texts))

    def will_break(self, text: str) -> None:
        self._server.reply("/api/chat", stream(*text_lines(text)[:-1], Drop()))

    def will_call(self, name: str) -> None:
        self._server.reply("/api/chat", stream(line({"tool_calls": [call(name, {})]}), done()))

    def will_hang(self, text: str) -> None:
        self._server.reply("/api/chat", stream(*text_lines(text)[:-1], Wait(asyncio.Event())))

    async def called_off(self) -> None:
        await self._server.asked("/api/chat")[-1].gone.wait()

    def sent(self) -> bytes:
        return self._server.asked("/api/chat")[-1].body


class TestOllamaTransport(TransportContract):
    @pytest.fixture
    def stage(self, server: OllamaServer, transport: OllamaTransport) -> OllamaStage:
        return OllamaStage(server, transport)


async def test_the_body_on_the_wire_is_exactly_the_native_one(server: OllamaServer, transport: OllamaTransport) -> None:
    await collect(transport, request("test", tools=TOOLS))
    received = server.asked("/api/chat")[0]
    assert received.method == "POST"
    assert received.headers["content-type"] == "application/json"
    assert received.body == (
        b'{"model":"test","messages":' + MESSAGES + b',"tools":' + TOOLS
        + b',"stream":true,"truncate":false,"shift":false,"options":{"num_ctx":4096}}'
    )  # fmt: skip


@pytest.mark.parametrize(("loaded", "phase"), [(True, "reading"), (False, "loading")])
async def test_while_nothing_comes_it_says_whether_the_model_loads_or_reads(
    server: OllamaServer, transport: OllamaTransport, loaded: bool, phase: str
) -> None:
    first_token = asyncio.Event()
    if loaded:
        server.loaded["test:latest"] = 4096
    server.reply("/api/chat", stream(Wait(first_token), *text_lines("one")))
    async with asyncio.timeout(DEADLINE), aclosing(transport.chat(request("test", estimated=1234))) as chunks:
        assert await anext(chunks) == Progress(phase, 0, 1234)  # pyright: ignore[reportArgumentType] # a literal
        first_token.set()
        assert await anext(chunks) == TextDelta("one")


async def test_the_call_does_not_wait_for_the_word_whether_the_model_is_loaded(
    server: OllamaServer, transport: OllamaTransport
) -> None:
    server.reply("/api/ps", stream(Wait(asyncio.Event())))
    chunks, error = await collect(transport, request("test"))
    assert error is None
    assert not isinstance(chunks[0], Progress)


async def test_a_server_that_cannot_say_what_is_loaded_is_asked_all_the_same(
    server: OllamaServer, transport: OllamaTransport
) -> None:
    first_token = asyncio.Event()
    server.reply("/api/ps", fails(500, "no"))
    server.reply("/api/chat", stream(Wait(first_token), *text_lines("one")))
    async with asyncio.timeout(DEADLINE), aclosing(transport.chat(request("test"))) as chunks:
        assert await anext(chunks) == Progress("reading", 0, 8)
        first_token.set()
        assert await anext(chunks) == TextDelta("one")


async def test_silence_before_the_first_byte_is_a_timeout_of_its_own(server: OllamaServer) -> None:
    transport = OllamaTransport(server.url, first_byte_timeout=0.1, token_timeout=60)
    server.reply("/api/chat", Reply([Wait(asyncio.Event())], framing="raw"))
    _, error = await collect(transport, request("test"))
    assert isinstance(error, ModelTimeoutError)
    assert error.phase == "first_byte"
    await asyncio.wait_for(server.asked("/api/chat")[0].gone.wait(), DEADLINE)
    await transport.close()


async def test_headers_alone_do_not_end_the_wait_for_the_first_token(server: OllamaServer) -> None:
    transport = OllamaTransport(server.url, first_byte_timeout=0.1, token_timeout=60)
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    server.reply("/api/chat", Reply([head, Wait(asyncio.Event())], framing="raw"))
    chunks, error = await collect(transport, request("test"))
    assert chunks == [Progress("loading", 0, 8)]
    assert isinstance(error, ModelTimeoutError)
    assert error.phase == "first_byte"
    await transport.close()


async def test_silence_between_tokens_keeps_what_came_and_hangs_up(server: OllamaServer) -> None:
    transport = OllamaTransport(server.url, first_byte_timeout=60, token_timeout=0.1)
    server.reply("/api/chat", stream(*text_lines("one two </th")[:-1], Wait(asyncio.Event())))
    chunks, error = await collect(transport, request("test"))
    assert isinstance(error, ModelTimeoutError)
    assert error.phase == "token"
    assert text_of(chunks) == "one two </th"
    await asyncio.wait_for(server.asked("/api/chat")[0].gone.wait(), DEADLINE)
    await transport.close()


async def test_a_slow_reader_is_no_silence_of_the_server(server: OllamaServer) -> None:
    transport = OllamaTransport(server.url, first_byte_timeout=60, token_timeout=0.1)
    read_on, second = asyncio.Event(), asyncio.Event()
    server.reply("/api/chat", stream(line({"content": "one"}), Wait(second), *text_lines(" two")))
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(DEADLINE), aclosing(transport.chat(request("test"))) as chunks:
        came = [await anext(chunks)]
        loop.call_later(0.25, read_on.set)
        loop.call_later(0.28, second.set)
        await read_on.wait()
        came += [chunk async for chunk in chunks]
    assert text_of(came) == "one two"
    await transport.close()


async def test_a_trickle_of_blank_lines_is_silence_too(server: OllamaServer) -> None:
    transport = OllamaTransport(server.url, first_byte_timeout=60, token_timeout=0.2)
    server.reply("/api/chat", lambda received: stream(line({"content": "one"}), *_trickle(received)))
    _, error = await collect(transport, request("test"))
    assert isinstance(error, ModelTimeoutError)
    await transport.close()


def _trickle(_: Received) -> list[bytes | Wait]:
    """Blank lines that come one by one for longer than any patience of the test."""
    parts: list[bytes | Wait] = []
    loop = asyncio.get_running_loop()
    for number in range(100):
        gate = asyncio.Event()
        loop.call_later(number * 0.02, gate.set)
        parts += [Wait(gate), b"\n"]
    return parts


async def test_a_call_in_the_making_may_take_as_long_as_reading_the_prompt(server: OllamaServer) -> None:
    transport = OllamaTransport(server.url, first_byte_timeout=60, token_timeout=0.05)
    gate = asyncio.Event()
    server.reply(
        "/api/chat", stream(line({"content": "I look."}), Wait(gate), done({"tool_calls": [call("read", {})]}))
    )
    asyncio.get_running_loop().call_later(0.3, gate.set)
    _, error = await collect(transport, request("test", tools=TOOLS))
    assert error is None
    await transport.close()


async def test_cancelling_before_the_first_byte_hangs_up_at_once(
    server: OllamaServer, transport: OllamaTransport
) -> None:
    server.reply("/api/chat", Reply([Wait(asyncio.Event())], framing="raw"))
    reading = asyncio.create_task(collect(transport, request("test")))
    received = await server.next_request("/api/chat")
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await asyncio.wait_for(received.gone.wait(), DEADLINE)


async def test_closing_at_the_progress_hangs_up_at_once(server: OllamaServer, transport: OllamaTransport) -> None:
    server.reply("/api/chat", Reply([Wait(asyncio.Event())], framing="raw"))
    async with asyncio.timeout(DEADLINE):
        async with aclosing(transport.chat(request("test"))) as chunks:
            assert isinstance(await anext(chunks), Progress)
        await (await server.next_request("/api/chat")).gone.wait()


async def test_a_task_that_is_cancelled_twice_leaves_no_connection_open(
    server: OllamaServer, transport: OllamaTransport
) -> None:
    server.reply("/api/chat", stream(line({"content": "one"}), Wait(asyncio.Event())))
    reading = asyncio.create_task(collect(transport, request("test")))
    received = await server.next_request("/api/chat")
    reading.cancel()
    asyncio.get_running_loop().call_soon(reading.cancel)
    with pytest.raises(asyncio.CancelledError):
        await reading
    await asyncio.wait_for(received.gone.wait(), DEADLINE)


@pytest.mark.parametrize("steps", range(12))
async def test_a_cancel_at_any_await_ends_the_call_and_the_next_one_works(
    server: OllamaServer, transport: OllamaTransport, steps: int
) -> None:
    reading = asyncio.create_task(collect(transport, request("test")))
    for _ in range(steps):
        await asyncio.sleep(0)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    chunks, error = await collect(transport, request("test"))
    assert error is None
    assert text_of(chunks).startswith("You said: ")


async def test_one_connection_is_kept_for_all_calls(server: OllamaServer, transport: OllamaTransport) -> None:
    for _ in range(5):
        await transport.models()
        server.loaded.clear()
        first_token = asyncio.Event()
        server.reply("/api/chat", stream(Wait(first_token), *text_lines("one")))
        async with asyncio.timeout(DEADLINE), aclosing(transport.chat(request("test"))) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, Progress):
                    first_token.set()
    assert server.connections == 2  # the call's, and one for what is asked beside it


async def test_nobody_there_is_unavailable_after_one_more_try(pauses: Pauses) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        transport = OllamaTransport(url, sleep=pauses)
        chunks, error = await collect(transport, request("test"))
    assert isinstance(error, ModelUnavailableError)
    assert url in error.message
    assert "ollama serve" in error.hint
    assert not text_of(chunks)
    assert len(pauses.seconds) == 1
    with pytest.raises(ModelUnavailableError):
        await transport.models()
    await transport.close()


async def test_a_connection_cut_before_any_byte_is_tried_once_more(
    server: OllamaServer, transport: OllamaTransport, pauses: Pauses
) -> None:
    server.reply("/api/chat", Reply([Drop()], framing="raw"), says("one"))
    chunks, error = await collect(transport, request("test"))
    assert error is None
    assert text_of(chunks) == "one"
    first, second = server.asked("/api/chat")
    assert first.body == second.body
    assert len(pauses.seconds) == 1


async def test_nothing_is_tried_again_once_a_byte_has_come(server: OllamaServer, transport: OllamaTransport) -> None:
    server.reply("/api/chat", stream(Drop()), says("one"))
    _, error = await collect(transport, request("test"))
    assert isinstance(error, ModelError)
    assert len(server.asked("/api/chat")) == 1


@pytest.mark.parametrize(("busy", "tries", "works"), [(1, 2, True), (2, 3, True), (3, 3, False)])
async def test_a_full_queue_is_tried_twice_more(
    server: OllamaServer, transport: OllamaTransport, pauses: Pauses, busy: int, tries: int, works: bool
) -> None:
    server.reply("/api/chat", *[recorded("queue_full_2")] * busy, says("one"))
    _, error = await collect(transport, request("test"))
    assert (error is None) is works
    assert works or isinstance(error, BusyError)
    assert len(server.asked("/api/chat")) == tries
    assert pauses.seconds == sorted(pauses.seconds)


async def test_a_model_that_is_not_there_says_how_to_get_it(server: OllamaServer, transport: OllamaTransport) -> None:
    _, error = await collect(transport, request("nosuch"))
    assert isinstance(error, ModelNotFoundError)
    assert "`rune models pull nosuch`" in error.hint


async def test_messages_that_would_only_load_the_model_are_never_sent(
    server: OllamaServer, transport: OllamaTransport
) -> None:
    _, error = await collect(transport, request("test", messages=b"[]"))
    assert isinstance(error, ProtocolError)
    assert server.requests == []


async def test_proxies_of_the_environment_do_not_count_on_this_machine(
    server: OllamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "socks5h://127.0.0.1:9")
    transport = OllamaTransport(server.url)
    assert await transport.models()
    await transport.close()


async def test_a_proxy_that_cannot_be_used_for_a_remote_server_is_one_clear_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5h://127.0.0.1:9")
    transport = OllamaTransport("http://example.com:11434")
    with pytest.raises(ModelUnavailableError, match="no connection"):
        await transport.models()


async def test_a_client_for_plain_http_is_made_without_loading_certificates(server: OllamaServer) -> None:
    make_client(server.url)  # httpx is loaded now

    def seconds(url: str) -> float:
        start = time.perf_counter()
        make_client(url)
        return time.perf_counter() - start

    assert min(seconds(server.url) for _ in range(5)) * 4 < min(seconds("https://example.com") for _ in range(5))


async def test_it_works_again_after_it_was_closed(server: OllamaServer, transport: OllamaTransport) -> None:
    await transport.models()
    await transport.close()
    assert await transport.models()


def test_importing_the_transport_and_the_router_loads_no_http() -> None:
    code = "import sys, rune.models.ollama.transport, rune.models.router; print('httpx' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout.strip() == "False"
