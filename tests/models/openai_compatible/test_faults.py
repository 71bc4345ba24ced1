"""What a server may send in a stream, good and bad, each cut in three ways: what comes out is the same."""

import json
import random
from typing import Any, NamedTuple

import pytest

from rune.errors import (
    BusyError,
    CallCancelledError,
    CapabilityMissingError,
    ContextTruncatedError,
    EmptyOutputError,
    ModelError,
    ModelNotFoundError,
    ProtocolError,
    ServerError,
    StreamBrokenError,
    UnusableCallError,
)
from rune.models.openai_compatible.transport import OpenAITransport
from rune.models.transport import ChatChunk, Completed, TextDelta, ThinkingDelta, ToolCallReady
from rune.models.wire.chat_events import ChatAnswer
from tests.models.transport_contract import TOOLS, collect, request
from tests.ollama_replies import Drop, Reset, cut
from tests.openai_server import CHAT, DONE, OpenAIServer, delta, event, finish, fragment, stream, usage, words

END = finish() + DONE
ONE = b"".join(words("one two"))
CALLS_END = finish("tool_calls") + DONE
DEEP = b"data: " + b'{"a":' * 150 + b"1" + b"}" * 150 + b"\n\n"


class Kind(NamedTuple):
    """A body and what must come of it: text, thinking, calls as (id, name, arguments), and the end."""

    body: bytes
    end: str | type[ModelError] = "stop"
    text: str = "one two"
    thinking: str = ""
    calls: tuple[tuple[str, str, dict[str, Any]], ...] = ()
    says: str = ""
    closes: Drop | Reset | None = None
    framing: Any = "chunked"


def read_call(identity: str = "a", **arguments: Any) -> tuple[str, str, dict[str, Any]]:
    return (identity, "read", arguments)


def called(body: bytes, *calls: tuple[str, str, dict[str, Any]]) -> Kind:
    return Kind(body, "tool_calls", text="", calls=calls)


WHOLE = {
    "text": Kind(ONE + END),
    "text, counts before the end": Kind(ONE + finish() + usage() + DONE),
    "no [DONE]": Kind(ONE + finish()),
    "no [DONE], the connection closes as the body's end": Kind(ONE + finish(), framing="close"),
    "no [DONE], with counts": Kind(ONE + finish() + usage()),
    "CR LF": Kind((ONE + END).replace(b"\n", b"\r\n")),
    "CR alone": Kind((ONE + END).replace(b"\n", b"\r")),
    "no blank after data:": Kind((ONE + END).replace(b"data: ", b"data:")),
    "a byte order mark": Kind(b"\xef\xbb\xbf" + ONE + END),
    "comments between": Kind(b": hello\n\n" + ONE + b": ping\n\n:\n\n" + END),
    "event and id lines": Kind(b"event: message\nid: 4\nretry: 10\n" + ONE + END),
    "the role first, without content": Kind(delta(role="assistant", content=None) + ONE + END),
    "the role first, with empty content": Kind(delta(role="assistant", content="") + ONE + END),
    "empty choices first": Kind(event(choices=[], prompt_filter_results=[]) + ONE + END),
    "no choices at all in an event": Kind(event(id="a") + ONE + END),
    "choices null": Kind(event(choices=None) + ONE + END),
    "delta null with the end": Kind(ONE + event(choices=[{"delta": None, "finish_reason": "stop"}]) + DONE),
    "no index in the choice": Kind(ONE + event(choices=[{"delta": {}, "finish_reason": "stop"}]) + DONE),
    "an empty finish_reason until the end": Kind(
        event(choices=[{"delta": {"content": "one two"}, "finish_reason": ""}]) + END
    ),
    "the end together with the last word": Kind(
        words("one two")[0] + event(choices=[{"delta": {"content": " two"}, "finish_reason": "stop"}]) + DONE
    ),
    "the same end twice": Kind(ONE + finish() + finish() + DONE),
    "an empty piece after the end": Kind(ONE + finish() + delta(role="assistant", content="") + DONE),
    "length": Kind(ONE + finish("length") + DONE, "length"),
    "max_tokens": Kind(ONE + finish("max_tokens") + DONE, "length"),
    "eos_token": Kind(ONE + finish("eos_token") + DONE),
    "tool_calls without any call": Kind(ONE + CALLS_END),
    "characters beyond ASCII": Kind(delta(content="é\u2028\x85😀") + END, text="é\u2028\x85😀"),
    "characters as escapes": Kind(
        b'data: {"choices":[{"delta":{"content":"\\u00e9\\ud83d\\ude00"}}]}\n\n' + END, text="é😀"
    ),
    "half a character as an escape": Kind(
        b'data: {"choices":[{"delta":{"content":"a\\ud83d"}}]}\n\n' + END, text="a\ufffd"
    ),
    "content in parts": Kind(delta(content=[{"type": "text", "text": "one"}, {"type": "text", "text": " two"}]) + END),
    "thinking in parts": Kind(
        delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]) + ONE + END, thinking="hm"
    ),
    "reasoning_content": Kind(delta(reasoning_content="hm") + ONE + END, thinking="hm"),
    "reasoning": Kind(delta(reasoning="hm", content=None) + ONE + END, thinking="hm"),
    "both names for the same thinking": Kind(delta(reasoning="hm", reasoning_content="hm") + ONE + END, thinking="hm"),
    "thinking that leaked": Kind(delta(content="<think>hm</think>one two") + END, thinking="hm"),
    "thinking that leaked, in pieces": Kind(
        b"".join(delta(content=piece) for piece in ("<thi", "nk>h", "m</", "think>", "\n\none", " two")) + END,
        thinking="hm",
    ),
    "the stray end of thinking": Kind(delta(content="one</think> two") + END),
    "what is like a tag at the end": Kind(delta(content="one </thi") + END, text="one </thi"),
    "a refusal": Kind(delta(refusal="one two") + END),
    "data over two lines": Kind(b'data: {"choices":\ndata: [{"delta":{"content":"one two"}}]}\n\n' + END),
}

CALLS = {
    "a call at once": called(fragment(id="a", name="read", arguments='{"n":1}') + CALLS_END, read_call(n=1)),
    "a call with text": Kind(
        ONE + fragment(id="a", name="read", arguments="{}") + CALLS_END, "tool_calls", calls=(read_call(),)
    ),
    "arguments in pieces": called(
        fragment(id="a", name="read", arguments="")
        + b"".join(fragment(arguments=piece) for piece in ('{"', 'n":', " 1", "2}"))
        + CALLS_END,
        read_call(n=12),
    ),
    "no arguments": called(fragment(id="a", name="read") + CALLS_END, read_call()),
    "empty arguments": called(fragment(id="a", name="read", arguments="") + CALLS_END, read_call()),
    "null arguments": called(fragment(id="a", name="read", arguments=None) + CALLS_END, read_call()),
    "arguments as an object": called(fragment(id="a", name="read", arguments={"n": 1}) + CALLS_END, read_call(n=1)),
    "arguments as JSON twice over": called(
        fragment(id="a", name="read", arguments=json.dumps('{"n": 1}')) + CALLS_END, read_call(n=1)
    ),
    "a name in pieces": called(
        fragment(id="a", name="re") + fragment(name="ad") + fragment(arguments="{}") + CALLS_END, read_call()
    ),
    "a name repeated in each fragment": called(
        b"".join(fragment(id="a", name="read", arguments=piece) for piece in ('{"n"', ":1", "}")) + CALLS_END,
        read_call(n=1),
    ),
    "an id invented for each fragment": called(
        b"".join(fragment(id=f"a{n}", name="read", arguments=piece) for n, piece in enumerate(('{"n"', ":1", "}")))
        + CALLS_END,
        read_call("a0", n=1),
    ),
    "the id behind the name": called(
        fragment(name="read") + fragment(id="a", arguments="{}") + CALLS_END, read_call()
    ),
    "no id": called(fragment(name="read", arguments="{}") + CALLS_END, read_call("call_1")),
    "two calls, fragments mixed": called(
        fragment(0, id="a", name="read", arguments="")
        + fragment(1, id="b", name="read", arguments='{"n":')
        + fragment(0, arguments='{"n":1}')
        + fragment(1, arguments="2}")
        + CALLS_END,
        read_call("a", n=1),
        read_call("b", n=2),
    ),
    "two calls with one id": called(
        fragment(0, id="a", name="read", arguments="{}") + fragment(1, id="a", name="read") + CALLS_END,
        read_call("a"),
        read_call("call_1"),
    ),
    "two calls that all have index 0": called(
        fragment(0, id="a", name="read", arguments='{"n":1}')
        + fragment(0, id="b", name="read", arguments='{"n"')
        + fragment(0, arguments=":2}")
        + CALLS_END,
        read_call("a", n=1),
        read_call("b", n=2),
    ),
    "indexes that begin at 5": called(
        fragment(5, id="a", name="read") + fragment(9, id="b", name="read") + CALLS_END,
        read_call("a"),
        read_call("b"),
    ),
    "no index, ids on the first fragments": called(
        fragment(None, id="a", name="read", arguments="")
        + fragment(None, arguments='{"n":1}')
        + fragment(None, id="b", name="read", arguments='{"n":')
        + fragment(None, arguments="2}")
        + CALLS_END,
        read_call("a", n=1),
        read_call("b", n=2),
    ),
    "no index and no id": called(
        fragment(None, name="read", arguments='{"n":1}') + fragment(None, name="read", arguments="{}") + CALLS_END,
        read_call("call_1", n=1),
        read_call("call_2"),
    ),
    "both calls in one event": called(
        delta(tool_calls=[{"id": "a", "function": {"name": "read", "arguments": "{}"}},
                          {"id": "b", "function": {"name": "read", "arguments": "{}"}}]) + CALLS_END,
        read_call("a"), read_call("b"),
    ),
    "a call together with the end": called(
        event(choices=[{"delta": {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "read"}}]},
                        "finish_reason": "tool_calls"}]) + DONE,
        read_call(),
    ),
    "a call behind the end": called(
        finish("tool_calls") + fragment(id="a", name="read", arguments="{}") + DONE, read_call()
    ),
    "a call, and the end says stop": called(fragment(id="a", name="read") + END, read_call()),
    "the old function_call": called(
        delta(function_call={"name": "read", "arguments": '{"n"'})
        + delta(function_call={"arguments": ":1}"}) + finish("function_call") + DONE,
        read_call("call_1", n=1),
    ),
    "a call that the limit cut": Kind(
        ONE + fragment(id="a", name="read", arguments='{"n') + finish("length") + DONE, "length"
    ),
    "a call behind thinking": Kind(
        delta(reasoning="hm") + fragment(id="a", name="read") + CALLS_END,
        "tool_calls", text="", thinking="hm", calls=(read_call(),),
    ),
}  # fmt: skip

OVERFLOW = "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens"
BAD = {
    "nothing at all": Kind(b"", ProtocolError, "", says="no event"),
    "only comments": Kind(b": ping\n\n: ping\n\n", ProtocolError, "", says="no event"),
    "a clean end without a finish_reason": Kind(ONE, StreamBrokenError),
    "counts without a finish_reason": Kind(ONE + usage(), StreamBrokenError),
    "[DONE] without a finish_reason": Kind(ONE + DONE, ProtocolError, says="without a finish_reason"),
    "the connection closes in mid-answer": Kind(ONE, StreamBrokenError, closes=Drop()),
    "the connection is reset in mid-answer": Kind(ONE, StreamBrokenError, closes=Reset()),
    "the connection breaks after the finish_reason": Kind(ONE + finish(), StreamBrokenError, closes=Drop()),
    "the last event is cut": Kind(ONE + finish()[:-20], StreamBrokenError),
    "the last event lacks its blank line": Kind(ONE + finish()[:-1], StreamBrokenError),
    "the end of a body without a length, no finish_reason": Kind(ONE, StreamBrokenError, framing="close"),
    "an error as text": Kind(ONE + event(error="out of memory"), ServerError, says="out of memory"),
    "an error as an object": Kind(
        ONE + event(error={"message": "out of memory", "code": 500}), ServerError, says="out of memory"
    ),
    "an error with its code as text": Kind(
        ONE + event(error={"message": "wait", "code": "429"}), BusyError, says="wait"
    ),
    "an error as JSON in text": Kind(
        ONE + event(error=json.dumps({"error": {"message": "no room", "type": "x"}})), ServerError, says="no room"
    ),
    "an error object at the top": Kind(
        ONE + event(object="error", message="no room", code=500), ServerError, says="no room"
    ),
    "an error with an event name": Kind(
        ONE + b"event: error\n" + event(error={"message": "no room"}), ServerError, says="no room"
    ),
    "an error, then the connection closes": Kind(
        ONE + event(error={"message": "no room"}), ServerError, says="no room", closes=Drop()
    ),
    "an error, then [DONE]": Kind(ONE + event(error={"message": "no room"}) + DONE, ServerError, says="no room"),
    "an error after the finish_reason": Kind(ONE + finish() + event(error="no room"), ServerError, says="no room"),
    "an empty error": Kind(ONE + event(error={}), ServerError),
    "a detail": Kind(ONE + event(detail="no room"), ServerError, says="no room"),
    "an error first": Kind(event(error={"message": "no room", "code": 500}), ServerError, "", says="no room"),
    "busy in the stream": Kind(event(error={"message": "wait", "code": 503}), BusyError, ""),
    "called off by the server": Kind(ONE + finish("abort") + DONE, CallCancelledError),
    "an overflow in the stream": Kind(event(error=OVERFLOW), ContextTruncatedError, ""),
    "llama.cpp's overflow in the stream": Kind(
        event(error={"type": "exceed_context_size_error", "message": "m", "n_ctx": 8, "n_prompt_tokens": 9}),
        ContextTruncatedError,
        "",
    ),
    "no such model in the stream": Kind(
        event(error={"message": "The model `x` does not exist", "code": 404}), ModelNotFoundError, ""
    ),
    "no tools in the stream": Kind(event(error="this model does not support tools"), CapabilityMissingError, ""),
    "the content filter": Kind(ONE + finish("content_filter") + DONE, ServerError, says="content filter"),
    "the end is an error": Kind(ONE + finish("error") + DONE, ServerError),
    "an unknown end": Kind(ONE + finish("wandered_off") + DONE, ProtocolError, says="'wandered_off' is not known"),
    "two different ends": Kind(ONE + finish("stop") + finish("length") + DONE, ProtocolError, says="and then"),
    "text after the end": Kind(ONE + finish() + delta(content="more") + DONE, ProtocolError, says="follows"),
    "a second answer": Kind(
        ONE + event(choices=[{"index": 1, "delta": {"content": "x"}}]), ProtocolError, says="second answer"
    ),
    "not JSON": Kind(ONE + b"data: <html>\n\n", ProtocolError, says="not valid JSON"),
    "half of JSON": Kind(ONE + b'data: {"choices":[\n\n', ProtocolError, says="not valid JSON"),
    "a list": Kind(ONE + b"data: [1]\n\n", ProtocolError, says="not a JSON object"),
    "not UTF-8": Kind(
        ONE + b'data: {"choices":[{"delta":{"content":"\xff"}}]}\n\n', ProtocolError, says="not UTF-8"
    ),
    "a key twice": Kind(ONE + b'data: {"choices":[],"choices":[]}\n\n', ProtocolError, says="twice"),
    "not a number": Kind(ONE + b'data: {"x":NaN}\n\n', ProtocolError, says="NaN"),
    "nested too deeply": Kind(ONE + DEEP, ProtocolError, says="nested"),
    "choices that are no list": Kind(ONE + event(choices="none"), ProtocolError, says="not an event"),
    "content that is a number": Kind(ONE + delta(content=5), ProtocolError, says="not an event"),
    "tool calls that are no list": Kind(ONE + delta(tool_calls={"a": 1}), ProtocolError, says="not an event"),
    "no output": Kind(finish() + usage() + DONE, EmptyOutputError, "", says="5 tokens"),
    "no output, no counts": Kind(END, EmptyOutputError, ""),
    "a call without a name": Kind(fragment(id="a", arguments="{}") + CALLS_END, UnusableCallError, ""),
    "arguments that are not JSON": Kind(
        fragment(id="a", name="read", arguments="{n") + CALLS_END, UnusableCallError, "", says="'read'"
    ),
    "arguments that are a list": Kind(
        fragment(id="a", name="read", arguments="[1]") + CALLS_END, UnusableCallError, "", says="'read'"
    ),
}  # fmt: skip

KINDS = WHOLE | CALLS | BAD


def in_one(body: bytes) -> list[bytes]:
    return [body] if body else []


def byte_by_byte(body: bytes) -> list[bytes]:
    return [body[n : n + 1] for n in range(len(body))]


def anywhere(body: bytes) -> list[bytes]:
    random_sizes = random.Random(len(body))  # noqa: S311 - a test's cuts, the same each time
    return cut(body, iter(lambda: random_sizes.randint(1, 40), 0)) if body else []


@pytest.mark.parametrize("pieces", [in_one, byte_by_byte, anywhere])
@pytest.mark.parametrize("name", KINDS)
async def test_every_kind_of_answer_ends_as_it_must_however_it_is_cut(
    openai_server: OpenAIServer, openai_transport: OpenAITransport, name: str, pieces: Any
) -> None:
    kind = KINDS[name]
    parts = [*pieces(kind.body), *([kind.closes] if kind.closes else [])]
    openai_server.reply(CHAT, stream(*parts, framing=kind.framing))
    chunks, error = await collect(openai_transport, request("test", tools=TOOLS))
    # A reset throws away what has come and was not read yet.
    text = joined(chunks, TextDelta)
    assert kind.text.startswith(text) if isinstance(kind.closes, Reset) else text == kind.text
    assert joined(chunks, ThinkingDelta) == kind.thinking
    calls = [chunk.call for chunk in chunks if isinstance(chunk, ToolCallReady)]
    assert [(call.id, call.name, call.arguments) for call in calls] == list(kind.calls)
    ends = [chunk for chunk in chunks if isinstance(chunk, Completed)]
    if isinstance(kind.end, str):
        assert error is None
        assert [end.reason for end in ends] == [kind.end]
        assert chunks[-1] is ends[0]
    else:
        assert type(error) is kind.end
        assert kind.says in str(error)
        assert not ends


def joined(chunks: list[ChatChunk], kind: type[TextDelta | ThinkingDelta]) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, kind))


def test_there_are_enough_kinds() -> None:
    assert len(KINDS) > 100


def test_nothing_may_follow_done() -> None:
    answer = ChatAnswer(lambda said: ServerError(said.text, status=0, phase="token"))
    assert list(answer.read(ONE + END))
    with pytest.raises(ProtocolError, match="follows"):
        list(answer.read(ONE))
