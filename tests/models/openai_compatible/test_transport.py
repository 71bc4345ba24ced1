"""The transport keeps the contract, and does on the wire what it promises."""

import asyncio
import json
import logging
from typing import Any

import pytest

from rune.errors import (
    ContextTruncatedError,
    ModelError,
    ProtocolError,
    ServerError,
    StreamBrokenError,
)
from rune.models.openai_compatible.transport import OpenAITransport
from rune.models.transport import ChatRequest, Completed, LoadOptions, Progress, TextDelta
from tests.models.openai_compatible.conftest import KEY, address
from tests.models.transport_contract import (
    DEADLINE,
    MESSAGES,
    TOOLS,
    TransportContract,
    collect,
    request,
    text_of,
)
from tests.ollama_replies import Drop, Reply, Wait, page
from tests.openai_server import (
    CHAT,
    DONE,
    OpenAIServer,
    answers,
    delta,
    fails,
    finish,
    fragment,
    says,
    stream,
    usage,
    words,
)


@pytest.mark.parametrize(
    ("row", "read", "cut"),
    [({"max_model_len": 2048}, 2000, True), ({"max_model_len": 8192}, 2000, False), ({}, 2000, False)],
    ids=["smaller", "large enough", "unknown"],
)
async def test_a_prompt_that_the_server_cut_to_its_own_window_is_no_whole_answer(
    row: dict[str, Any], read: int, cut: bool
) -> None:
    async with OpenAIServer([{"id": "test", **row}], key=KEY) as server:
        transport = OpenAITransport(address(server))
        await transport.models()
        server.reply(CHAT, stream(*words("It is"), finish(), usage(prompt=read), DONE))
        seen, error = await collect(transport, request("openai-compatible/test", estimated=3000))
        await transport.close()
    assert text_of(seen) == "It is"
    assert any(isinstance(chunk, Completed) for chunk in seen) is not cut
    assert isinstance(error, ContextTruncatedError) is cut
    if isinstance(error, ContextTruncatedError):
        assert (error.estimated, error.served, error.window) == (3000, 2000, 2048)


class OpenAIStage:
    def __init__(self, server: OpenAIServer, transport: OpenAITransport) -> None:
        self.model = "openai-compatible/test"
        self.transport = transport
        self._server = server

    def will_say(self, *texts: str) -> None:
        self._server.reply(CHAT, *(says(text) for text in texts))

    def will_break(self, text: str) -> None:
        self._server.reply(CHAT, stream(*words(text), Drop()))

    def will_call(self, name: str) -> None:
        self._server.reply(CHAT, stream(fragment(id="a", name=name, arguments="{}"), finish("tool_calls"), DONE))

    def will_hang(self, text: str) -> None:
        self._server.reply(CHAT, stream(*words(text), Wait(asyncio.Event())))

    async def called_off(self) -> None:
        await self._server.asked(CHAT)[-1].gone.wait()

    def sent(self) -> bytes:
        return self._server.asked(CHAT)[-1].body


class TestOpenAITransport(TransportContract):
    @pytest.fixture
    def stage(self, openai_server: OpenAIServer, openai_transport: OpenAITransport) -> OpenAIStage:
        return OpenAIStage(openai_server, openai_transport)


def asking(**changes: Any) -> ChatRequest:
    fields: dict[str, Any] = {"model": "test", "messages": MESSAGES, "tools": b"[]", "estimated": 8, **changes}
    return ChatRequest(options=LoadOptions(num_ctx=4096), **fields)


async def test_the_body_on_the_wire_is_exactly_this_and_holds_no_window(
    openai_server: OpenAIServer, openai_transport: OpenAITransport
) -> None:
    await collect(openai_transport, asking(tools=TOOLS, format=b'{ "type":"object"}', max_tokens=7, temperature=0.5))
    received = openai_server.asked(CHAT)[0]
    assert received.headers["content-type"] == "application/json"
    assert received.headers["authorization"] == f"Bearer {KEY}"
    assert received.body == (
        b'{"model":"test","stream":true,"stream_options":{"include_usage":true},"max_tokens":7,"temperature":0.5,'
        b'"messages":' + MESSAGES + b',"tools":' + TOOLS + b',"response_format":{"type":"json_schema",'
        b'"json_schema":{"name":"answer","schema":{ "type":"object"}}}}'
    )


@pytest.mark.parametrize(
    ("think", "fields"),
    [
        (None, {}),
        ("off", {"chat_template_kwargs": {"enable_thinking": False}}),
        ("on", {"chat_template_kwargs": {"enable_thinking": True}}),
        (
            "low",
            {
                "reasoning_effort": "low",
                "chat_template_kwargs": {"enable_thinking": True, "reasoning_effort": "low"},
            },
        ),
    ],
)
async def test_thinking_is_asked_for_in_the_ways_that_servers_know(
    openai_server: OpenAIServer, openai_transport: OpenAITransport, think: Any, fields: dict[str, Any]
) -> None:
    await collect(openai_transport, asking(think=think))
    sent = openai_server.asked(CHAT)[0].json
    assert {name: sent[name] for name in ("reasoning_effort", "chat_template_kwargs") if name in sent} == fields


@pytest.mark.parametrize(
    ("refusal", "left"),
    [
        (fails(400, message="Unrecognized request argument supplied: chat_template_kwargs"), {"stream_options"}),
        (
            answers(
                {"detail": [{"loc": ["body", "chat_template_kwargs"], "msg": "Extra inputs are not permitted"}]}, 422
            ),
            {"stream_options"},
        ),
        (fails(400, message="unknown field"), set[str]()),
        (Reply([b""], status=422, framing="length"), set[str]()),
    ],
)
async def test_a_server_that_refuses_fields_is_asked_without_them_and_that_is_remembered(
    openai_server: OpenAIServer, openai_transport: OpenAITransport, refusal: Reply, left: set[str]
) -> None:
    openai_server.reply(CHAT, refusal, says("one"))
    _, error = await collect(openai_transport, asking(think="off"))
    assert error is None
    await collect(openai_transport, asking(think="off"))
    sent = [set(received.json) - {"model", "stream", "messages"} for received in openai_server.asked(CHAT)]
    assert sent == [{"stream_options", "chat_template_kwargs"}, left, left]


async def test_a_bad_request_that_is_about_something_else_is_sent_once(
    openai_server: OpenAIServer, openai_transport: OpenAITransport
) -> None:
    openai_server.reply(CHAT, fails(400, message="the schema has no type"))
    _, error = await collect(openai_transport, asking())
    assert isinstance(error, ServerError)
    assert len(openai_server.asked(CHAT)) == 1


async def test_before_anything_comes_it_says_that_the_prompt_is_read(openai_transport: OpenAITransport) -> None:
    chunks, _ = await collect(openai_transport, request("test", estimated=1234))
    assert chunks[0] == Progress("reading", 0, 1234)


async def test_a_redirect_is_not_followed_so_the_key_goes_nowhere_else(
    openai_server: OpenAIServer, openai_transport: OpenAITransport
) -> None:
    async with OpenAIServer() as elsewhere:
        openai_server.reply(CHAT, page(302, "", Location=f"{elsewhere.base_url}/chat/completions?key={KEY}"))
        _, error = await collect(openai_transport, request("test"))
        assert isinstance(error, ServerError)
        assert error.status == 302
        assert elsewhere.requests == []
        assert KEY not in error.message


async def test_an_answer_that_is_not_streamed_is_read_all_the_same(
    openai_server: OpenAIServer, openai_transport: OpenAITransport
) -> None:
    calls = [{"id": "a", "type": "function", "function": {"name": "read", "arguments": '{"n":1}'}}]
    whole = {"message": {"role": "assistant", "content": "one", "tool_calls": calls}, "finish_reason": "tool_calls"}
    said = {"choices": [{"index": 0, **whole}], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    openai_server.reply(CHAT, answers(said, headers={"Content-Type": "application/json; charset=utf-8"}))
    chunks, error = await collect(openai_transport, request("test", tools=TOOLS))
    assert error is None
    assert text_of(chunks) == "one"
    assert isinstance(chunks[-1], Completed)
    assert (chunks[-1].reason, chunks[-1].usage.prompt_tokens) == ("tool_calls", 3)


async def test_a_web_page_is_said_to_be_one(openai_server: OpenAIServer, openai_transport: OpenAITransport) -> None:
    openai_server.reply(CHAT, page(200, "<html>Sign in</html>"))
    _, error = await collect(openai_transport, request("test"))
    assert isinstance(error, ProtocolError)
    assert "web page" in error.message
    assert openai_server.base_url in error.hint


async def test_the_key_stands_in_no_error_log_or_repr(
    openai_server: OpenAIServer, openai_transport: OpenAITransport, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    said: list[str] = [repr(openai_transport), repr(address(openai_server)), str(address(openai_server))]
    echoed = f"Incorrect API key provided: {KEY}"
    replies = [
        fails(401, message=echoed),
        fails(500, message=echoed),
        page(500, f"<html>{echoed}</html>"),
        # Where the text is cut to be shown, half a key would be left.
        page(500, "x" * 78 + echoed, "text/plain"),
        fails(500, message="x" * 558 + echoed),
        stream(b"data: " + json.dumps({"error": "x" * 558 + echoed}).encode() + b"\n\n"),
        stream(b"data: " + json.dumps({"error": echoed}).encode() + b"\n\n"),
        stream(b"data: " + json.dumps({"error": {"message": echoed, "code": 500}}).encode() + b"\n\n"),
    ]
    for reply in replies:
        openai_server.reply(CHAT, reply)
        _, error = await collect(openai_transport, request("test"))
        assert isinstance(error, ModelError)
        said += [error.message, error.hint, repr(error)]
    assert not [text for text in [*said, caplog.text] if KEY[:12] in text]


async def test_a_wrong_key_is_said_with_the_variable_that_holds_it(openai_server: OpenAIServer) -> None:
    for key, hint in (("wrong-0123456", "is not one that it takes"), ("", "It wants a key")):
        transport = OpenAITransport(address(openai_server, key))
        with pytest.raises(ServerError) as caught:
            await transport.models()
        assert caught.value.status == 401
        assert hint in caught.value.hint
        assert "RUNE_OPENAI_KEY" in caught.value.hint
        await transport.close()


async def test_closing_before_the_first_piece_closes_the_connection(
    openai_server: OpenAIServer, openai_transport: OpenAITransport
) -> None:
    openai_server.reply(CHAT, Reply([Wait(asyncio.Event())], framing="raw"))
    task = asyncio.create_task(collect(openai_transport, request("test")))
    received = await openai_server.next_request(CHAT)
    task.cancel()
    async with asyncio.timeout(DEADLINE):
        await received.gone.wait()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_connection_is_kept_for_the_next_call(
    openai_server: OpenAIServer, openai_transport: OpenAITransport
) -> None:
    for _ in range(3):
        _, error = await collect(openai_transport, request("test"))
        assert error is None
    assert openai_server.connections == 1


async def test_counts_come_in_the_last_event_in_one_of_their_own_or_not_at_all(
    openai_server: OpenAIServer, openai_transport: OpenAITransport
) -> None:
    counts = {"prompt_tokens": 7, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}
    with_last = stream(*words("one"), finish(usage=counts), DONE)
    on_its_own = stream(
        *words("one"), finish(usage=None), usage(7, 2, prompt_tokens_details={"cached_tokens": 4}), DONE
    )
    openai_server.reply(CHAT, with_last, on_its_own, stream(*words("one"), finish(), DONE))
    seen: list[Any] = []
    for _ in range(3):
        chunks, _ = await collect(openai_transport, request("test"))
        assert isinstance(chunks[-1], Completed)
        used = chunks[-1].usage
        seen.append((used.calls, used.prompt_tokens, used.cached_tokens, used.output_tokens))
    assert seen == [(1, 7, 4, 2), (1, 7, 4, 2), (1, None, None, None)]


async def test_what_might_have_been_a_tag_is_given_out_before_an_error(
    openai_server: OpenAIServer, openai_transport: OpenAITransport
) -> None:
    openai_server.reply(CHAT, stream(delta(content="one </thi"), Drop()))
    chunks, error = await collect(openai_transport, request("test"))
    assert text_of(chunks) == "one </thi"
    assert isinstance(error, StreamBrokenError)
    assert [chunk for chunk in chunks if isinstance(chunk, TextDelta)]
