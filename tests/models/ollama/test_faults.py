"""Everything that a stream can do wrong, each in one chunk, byte by byte and cut at random: the same typed end."""

import gzip
import json
import random
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from rune.errors import (
    BusyError,
    CapabilityMissingError,
    ContextTruncatedError,
    EmptyOutputError,
    ModelError,
    ModelNotFoundError,
    ProtocolError,
    ServerError,
    StreamBrokenError,
)
from rune.models.ollama.transport import OllamaTransport
from rune.models.transport import Completed, Progress, TextDelta, ThinkingDelta, ToolCallReady
from tests.models.transport_contract import TOOLS, collect, request, text_of
from tests.ollama_server import Drop, OllamaServer, Part, Reply, Reset, call, cut, done, line, stream

HI = line({"content": "Hi"})
THERE = line({"content": " there"})
WHOLE = HI + THERE + done()
SEPARATORS = "a\u0085b\u2028c\u2029d"


def error_line(error: Any) -> bytes:
    return json.dumps({"error": error}).encode() + b"\n"


NESTED = json.dumps({"error": {"code": 400, "message": "it exceeds the available context size", "n_prompt_tokens": 9}})

# name: (bytes of the body, the error or None for a whole answer, the text that must have been given)
BODIES: dict[str, tuple[bytes, type[ModelError] | None, str]] = {
    "whole": (WHOLE, None, "Hi there"),
    "done is missing": (HI + THERE, StreamBrokenError, "Hi there"),
    "only done is missing a reason": (HI + line({}, done=True), None, "Hi"),
    "an unknown reason": (HI + done(done_reason="because"), None, "Hi"),
    "lines after done": (WHOLE + line({"content": "late"}) + error_line("late") + b"garbage", None, "Hi there"),
    "no newline at the end": (WHOLE[:-1], None, "Hi there"),
    "cut in the middle of a line": (WHOLE[:-20], StreamBrokenError, "Hi there"),
    "cut in the middle of the first line": (HI[:20], StreamBrokenError, ""),
    "half a character at the end": (HI + line({"content": "é"})[:-16], StreamBrokenError, "Hi"),
    "empty body": (b"", StreamBrokenError, ""),
    "blank lines only": (b"\n\r\n \n", StreamBrokenError, ""),
    "blank lines between": (b"\n" + HI + b"\r\n\n" + THERE + b" \n" + done(), None, "Hi there"),
    "carriage returns": (WHOLE.replace(b"\n", b"\r\n"), None, "Hi there"),
    "byte order mark": (b"\xef\xbb\xbf" + WHOLE, None, "Hi there"),
    "separators inside a string": (line({"content": SEPARATORS}) + done(), None, SEPARATORS),
    "characters of four bytes": (line({"content": "é\U0001f600"}) + done(), None, "é\U0001f600"),
    "invalid UTF-8": (HI + HI.replace(b"Hi", b"H\xff"), ProtocolError, "Hi"),
    "lone surrogate": (line({"content": "@"}).replace(b"@", rb"\ud800") + done(), None, "\ufffd"),
    "garbage line": (HI + b"@@@@\n" + done(), ProtocolError, "Hi"),
    "HTML page": (b"<!doctype html>\n<html><body>Sign in</body></html>", ProtocolError, ""),
    "HTML page on one line": (b"<html>Gateway</html>", ProtocolError, ""),
    "server-sent events": (b'data: {"choices":[]}\n\ndata: [DONE]\n', ProtocolError, ""),
    "a list": (b"[]\n", ProtocolError, ""),
    "a string": (b'"done"\n', ProtocolError, ""),
    "NaN": (HI + HI.replace(b"false", b"NaN"), ProtocolError, "Hi"),
    "Infinity": (HI.replace(b'"Hi"', b"Infinity"), ProtocolError, ""),
    "a key twice": (HI.replace(b'"done":', b'"done":true,"done":'), ProtocolError, ""),
    "deeply nested": (HI + b'{"message":' + b"[" * 5000 + b"]" * 5000 + b"}\n", ProtocolError, "Hi"),
    "error line first": (error_line("boom"), ServerError, ""),
    "error line in the middle": (HI + error_line("boom") + THERE + done(), ServerError, "Hi"),
    "error line last": (HI + THERE + error_line("boom"), ServerError, "Hi there"),
    "error line without newline": (HI + error_line("boom")[:-1], ServerError, "Hi"),
    "error is an object": (HI + error_line({"message": "boom"}), ServerError, "Hi"),
    "error is JSON in a string": (HI + error_line('{"error":"boom"}'), ServerError, "Hi"),
    "error is JSON twice over": (HI + error_line(json.dumps({"error": '{"message":"boom"}'})), ServerError, "Hi"),
    "error of a wrong key": (HI + b'{"error parsing tool call": "raw"}\n', ServerError, "Hi"),
    "error is empty": (HI + error_line(""), ServerError, "Hi"),
    "error is null": (HI.replace(b"{", b'{"error":null,', 1) + done(), None, "Hi"),
    "overflow in mid-stream": (HI + error_line(NESTED), ContextTruncatedError, "Hi"),
    "busy in mid-stream": (HI + error_line("server busy, please try again"), BusyError, "Hi"),
    "not found in mid-stream": (HI + error_line("model 'm' not found"), ModelNotFoundError, "Hi"),
    "no tools in mid-stream": (HI + error_line('"m" does not support tools'), CapabilityMissingError, "Hi"),
    "unknown line": (HI + b'{"keepalive": 1}\n' + done(), ProtocolError, "Hi"),
    "empty object": (HI + b"{}\n" + done(), ProtocolError, "Hi"),
    "status line": (b'{"status":"loading"}\n' + WHOLE, None, "Hi there"),
    "message is null": (line().replace(b"{", b'{"message":null,', 1) + WHOLE, None, "Hi there"),
    "message is missing": (line() + WHOLE, None, "Hi there"),
    "message is a string": (HI + line().replace(b"{", b'{"message":"x",', 1), ProtocolError, "Hi"),
    "content is null": (line({"content": None}) + WHOLE, None, "Hi there"),
    "content is a list": (line({"content": ["Hi"]}), ProtocolError, ""),
    "content is a number": (HI + line({"content": 1}), ProtocolError, "Hi"),
    "thinking is a number": (HI + line({"thinking": 1}), ProtocolError, "Hi"),
    "done is a string": (HI + HI.replace(b"false", b'"true"'), ProtocolError, "Hi"),
    "done is null": (HI + HI.replace(b"false", b"null"), ProtocolError, "Hi"),
    "load": (line({}, done=True, done_reason="load"), ProtocolError, ""),
    "unload": (line({}, done=True, done_reason="unload"), ProtocolError, ""),
    "nothing but done": (done(), EmptyOutputError, ""),
    "nothing, and nothing counted": (line({}, done=True, done_reason="stop"), EmptyOutputError, ""),
    "only a stray tag": (line({"content": "</think>"}) + done(), EmptyOutputError, ""),
    "a stray tag": (line({"content": "2+2</th"}) + line({"content": "ink>\n4"}) + done(), None, "2+2\n4"),
    "what only looks like a tag": (line({"content": "a </th"}) + done(), None, "a </th"),
    "what only looks like a tag, then a break": (line({"content": "a </th"}), StreamBrokenError, "a </th"),
    "cut in silence": (HI + done(prompt_eval_count=2051), ContextTruncatedError, "Hi"),
    "figures missing": (HI + line({}, done=True, done_reason="stop"), None, "Hi"),
    "figures senseless": (HI + done(prompt_eval_count=-1, eval_count=10**30), None, "Hi"),
    "stream was false": (line({"content": "Hi"}, done=True, done_reason="stop"), None, "Hi"),
    "stream was false and not done": (HI[:-1], StreamBrokenError, "Hi"),
    "a call without a name": (HI + line({"tool_calls": [{"function": {"arguments": {}}}]}), ProtocolError, "Hi"),
    "a call without a function": (HI + line({"tool_calls": [{"id": "a"}]}), ProtocolError, "Hi"),
    "a call that is a string": (HI + line({"tool_calls": ["read"]}), ProtocolError, "Hi"),
    "calls that are an object": (HI + line({"tool_calls": {}}), ProtocolError, "Hi"),
    "calls that are null": (line({"content": "Hi", "tool_calls": None}) + done(), None, "Hi"),
    "no calls": (line({"content": "Hi", "tool_calls": []}) + done(), None, "Hi"),
    "arguments that are a list": (HI + line({"tool_calls": [call("t", [])]}), ProtocolError, "Hi"),
    "arguments that are no JSON": (HI + line({"tool_calls": [call("t", "{")]}), ProtocolError, "Hi"),
    "arguments that are JSON of a list": (HI + line({"tool_calls": [call("t", "[]")]}), ProtocolError, "Hi"),
}  # fmt: skip

CUTS: dict[str, Callable[[bytes], Sequence[bytes]]] = {
    "one chunk": lambda data: [data] if data else [],
    "one byte": lambda data: cut(data, [1] * min(len(data), 1500)),
    "random": lambda data: cut(data, random.Random(data).choices(range(1, 40), k=len(data))),  # noqa: S311 - where to cut
}


async def no_wait(_: float) -> None:
    return None


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[OllamaServer]:
    async with OllamaServer() as server:
        yield server


@pytest.fixture(scope="module")
async def transport(server: OllamaServer) -> AsyncIterator[OllamaTransport]:
    transport = OllamaTransport(server.url, first_byte_timeout=5, token_timeout=5, sleep=no_wait)
    yield transport
    await transport.close()


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("way", list(CUTS))
@pytest.mark.parametrize("name", list(BODIES))
async def test_every_body_ends_the_same_way_however_it_is_cut(
    server: OllamaServer, transport: OllamaTransport, name: str, way: str
) -> None:
    body, kind, text = BODIES[name]
    server.reply("/api/chat", stream(*CUTS[way](body)))
    chunks, error = await collect(transport, request("test", estimated=4000 if name == "cut in silence" else 8))
    assert (type(error) if error else None) is kind
    assert text_of(chunks) == text
    assert [chunk for chunk in chunks if isinstance(chunk, Completed)] == ([] if error else chunks[-1:])


CONNECTIONS: dict[str, tuple[Reply, type[ModelError] | None, str]] = {
    "dropped in mid-stream": (stream(HI, THERE, Drop()), StreamBrokenError, "Hi there"),
    "dropped in the middle of a line": (stream(HI, THERE[:9], Drop()), StreamBrokenError, "Hi"),
    "dropped right after done": (stream(HI, done(), Drop()), None, "Hi"),
    "dropped after the head": (stream(Drop()), StreamBrokenError, ""),
    "dropped without a byte": (Reply([Drop()], framing="raw"), StreamBrokenError, ""),
    "reset without a byte": (Reply([Reset()], framing="raw"), StreamBrokenError, ""),
    "closed at a line's end": (stream(HI, THERE, framing="close"), StreamBrokenError, "Hi there"),
    "closed in the middle of a line": (stream(HI, THERE[:9], framing="close"), StreamBrokenError, "Hi"),
    "closed when it was whole": (stream(WHOLE, framing="close"), None, "Hi there"),
    "more announced than sent": (
        Reply([b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n" + HI], framing="raw"), StreamBrokenError, "Hi",
    ),
    "a chunk of a wrong size": (
        Reply([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"], framing="raw"), ProtocolError, "",
    ),
    "not HTTP": (Reply([b"SSH-2.0-OpenSSH_9.6\r\n\r\n"], framing="raw"), ProtocolError, ""),
    "compressed": (stream(gzip.compress(WHOLE), headers={"Content-Encoding": "gzip"}), None, "Hi there"),
    "not what it says it is compressed with": (
        stream(WHOLE, headers={"Content-Encoding": "gzip"}), ProtocolError, "",
    ),
    "a line over the cap": (stream(HI, *[b"a" * (1 << 20)] * 17), ProtocolError, "Hi"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(CONNECTIONS))
async def test_every_way_a_connection_can_end_has_its_typed_end(
    server: OllamaServer, transport: OllamaTransport, name: str
) -> None:
    reply, kind, text = CONNECTIONS[name]
    server.reply("/api/chat", reply)
    chunks, error = await collect(transport, request("test"))
    assert (type(error) if error else None) is kind
    assert text_of(chunks) == text


async def test_a_reset_in_mid_stream_breaks_the_answer(server: OllamaServer, transport: OllamaTransport) -> None:
    # What a reset leaves unread may be lost on its way: only the end is certain.
    server.reply("/api/chat", stream(HI, THERE, Reset()))
    _, error = await collect(transport, request("test"))
    assert isinstance(error, StreamBrokenError)


@pytest.mark.parametrize("way", list(CUTS))
async def test_thinking_text_and_calls_keep_their_order(
    server: OllamaServer, transport: OllamaTransport, way: str
) -> None:
    body = (
        line({"thinking": "hm", "content": "a"}) + line({"tool_calls": [call("t", {"k": "é"}, call_id=None)]})
        + line({"thinking": "so"}) + done({"content": "b", "tool_calls": [call("u", "{}", call_id=None)]})
    )  # fmt: skip
    parts: Sequence[Part] = CUTS[way](body)
    server.reply("/api/chat", stream(*parts))
    chunks, error = await collect(transport, request("test", tools=TOOLS))
    assert error is None
    seen = [chunk.call.name + chunk.call.id for chunk in chunks if isinstance(chunk, ToolCallReady)]
    assert seen == ["tcall_1", "ucall_2"]
    order = [type(chunk) for chunk in chunks if not isinstance(chunk, Progress)]
    assert order == [
        ThinkingDelta, TextDelta, ToolCallReady, ThinkingDelta, TextDelta, ToolCallReady, Completed
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (302, "", ServerError, "redirects"),
        (400, '{"error":"boom"}', ServerError, "400: boom"),
        (401, '{"error":"unauthorized","signin_url":"https://example.com/in"}', ServerError, "unauthorized"),
        (403, "", ServerError, "403"),
        (404, "404 page not found", ServerError, "404"),
        (404, '{"error":"model \\"x\\" not found, try pulling it first"}', ModelNotFoundError, "not found"),
        (405, "405 method not allowed", ServerError, "405"),
        (429, '{"error":{"message":"slow down"}}', ServerError, "slow down"),
        (499, '{"error":"request canceled"}', ModelError, "cancel"),
        (500, "<html>" + "x" * 5000, ServerError, "<html>"),
        (502, "<html>Bad gateway</html>", ServerError, "Bad gateway"),
        (503, "", BusyError, "busy"),
        (200, "Ollama is running", ProtocolError, "Ollama is running"),
    ],
)
async def test_every_status_is_a_typed_error_whatever_its_body(
    server: OllamaServer, transport: OllamaTransport, status: int, body: str, kind: type[ModelError], words: str
) -> None:
    server.reply("/api/chat", Reply([body.encode()], status=status, framing="length"))
    chunks, error = await collect(transport, request("test"))
    assert isinstance(error, kind)
    assert words in error.message
    assert len(error.message) < 1000
    assert not text_of(chunks)


async def test_a_redirect_is_not_followed(server: OllamaServer, transport: OllamaTransport) -> None:
    before = len(server.requests)
    server.reply("/api/chat", Reply([], status=302, framing="length", headers={"Location": server.url + "/elsewhere"}))
    _, error = await collect(transport, request("test"))
    assert isinstance(error, ServerError)
    assert "/elsewhere" in error.message
    assert "/elsewhere" not in [received.path for received in server.requests[before:]]


async def test_an_error_status_whose_body_breaks_off_is_still_that_error(
    server: OllamaServer, transport: OllamaTransport
) -> None:
    server.reply("/api/chat", Reply([b'{"error":', Drop()], status=500))
    _, error = await collect(transport, request("test"))
    assert isinstance(error, ServerError)
    assert error.status == 500
