"""What a server can do wrong, as rows: the bytes or the behaviour, and the one end that they must have.

A row's body is cut in three ways (test_fault_matrix.py). `chunked` bodies are cut between HTTP's own chunks, the
others between writes to the socket, head included.
"""

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rune.errors import (
    BusyError,
    CallCancelledError,
    CapabilityMissingError,
    ContextTruncatedError,
    EmptyOutputError,
    ModelError,
    ModelNotFoundError,
    ModelTimeoutError,
    ProtocolError,
    ServerError,
    StreamBrokenError,
    UnusableCallError,
)
from tests.ollama_replies import Drop, Framing, Part, Reset, call, done, line

End = Literal["stop", "length", "tool_calls"] | type[ModelError]

HI = line({"content": "Hi"})
THERE = line({"content": " there"})
WHOLE = HI + THERE + done()
NEVER = "never"
DRIP = "drip"


@dataclass(frozen=True)
class Fault:
    """One kind. `text` and `thinking` are what must have been given (None: not certain), `says` stands in the error's
    message, `calls` are names. `then` comes after the body: a drop, a reset, silence for ever, or a drip: the body
    itself comes with pauses. `impatient`: seconds without a token that end it are few. `coarse`: pieces are large.
    """

    body: bytes
    end: End
    text: str | None = ""
    thinking: str = ""
    calls: tuple[str, ...] = ()
    says: str = ""
    status: int = 200
    framing: Framing = "chunked"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    then: Part | Literal["never", "drip", ""] = ""
    estimated: int = 8
    tools: bool = False
    impatient: bool = False
    coarse: bool = False


def error_line(error: Any) -> bytes:
    return json.dumps({"error": error}).encode() + b"\n"


def with_calls(*calls: Any, **fields: Any) -> bytes:
    return line({"tool_calls": [*calls]}, **fields)


OVERFLOW = json.dumps(
    {"error": {"code": 400, "message": "it exceeds the available context size", "n_prompt_tokens": 9, "n_ctx": 8}}
)
SEPARATORS = "a\u0085b\u2028c\u2029d"
BROKEN = "before the model server said that it is complete"
MEGABYTE = 1 << 20

ENDS: dict[str, Fault] = {
    "whole": Fault(WHOLE, "stop", "Hi there"),
    "done is missing": Fault(HI + THERE, StreamBrokenError, "Hi there", says=BROKEN),
    "done without a reason": Fault(HI + line({}, done=True), "stop", "Hi"),
    "done with a null reason": Fault(HI + line({}, done=True, done_reason=None), "stop", "Hi"),
    "done with a number as its reason": Fault(HI + line({}, done=True, done_reason=7), "stop", "Hi"),
    "done with an unknown reason": Fault(HI + done(done_reason="because"), "stop", "Hi"),
    "done for its length": Fault(HI + done(done_reason="length"), "length", "Hi"),
    "done twice": Fault(HI + done() + done(), "stop", "Hi"),
    "lines after done": Fault(WHOLE + line({"content": "late"}) + error_line("late") + b"@@", "stop", "Hi there"),
    "text on the done line": Fault(HI + done({"content": " there"}), "stop", "Hi there"),
    "done is a string": Fault(HI + HI.replace(b"false", b'"true"'), ProtocolError, "Hi", says="line 2: `done`"),
    "done is null": Fault(HI + HI.replace(b"false", b"null"), ProtocolError, "Hi"),
    "done is one": Fault(HI + HI.replace(b"false", b"1"), ProtocolError, "Hi"),
    "done is not there in any line": Fault(HI.replace(b',"done":false', b""), StreamBrokenError, "Hi"),
    "no newline at the end": Fault(WHOLE[:-1], "stop", "Hi there"),
    "cut in the middle of the last line": Fault(WHOLE[:-20], StreamBrokenError, "Hi there", says="middle of a line"),
    "cut in the middle of the first line": Fault(HI[:20], StreamBrokenError),
    "half a character at the end": Fault(HI + line({"content": "é"})[:-16], StreamBrokenError, "Hi"),
    "the same blank token over and over, no done": Fault(line({"content": " "}) * 31, StreamBrokenError, " " * 31),
    "load": Fault(line({}, done=True, done_reason="load"), ProtocolError, says="request to load"),
    "unload": Fault(line({}, done=True, done_reason="unload"), ProtocolError, says="request to unload"),
    "nothing but done": Fault(done(), EmptyOutputError, says="5 tokens generated"),
    "nothing but done, two calls swallowed": Fault(
        line() + done(eval_count=70), EmptyOutputError, says="a tool call that it could not read", tools=True
    ),
    "nothing, and nothing counted": Fault(line({}, done=True), EmptyOutputError, says="without any output"),
    "empty body": Fault(b"", StreamBrokenError, says=BROKEN),
    "blank lines only": Fault(b"\n\r\n \n", StreamBrokenError),
    "stream was false": Fault(line({"content": "Hi"}, done=True, done_reason="stop"), "stop", "Hi"),
    "stream was false and not done": Fault(HI[:-1], StreamBrokenError, "Hi"),
    "cut in silence": Fault(HI + done(prompt_eval_count=2051), ContextTruncatedError, "Hi", estimated=4000),
    "messages dropped in silence": Fault(
        HI + done(prompt_eval_count=3900), ContextTruncatedError, "Hi", says="5,000 tokens were sent", estimated=5000
    ),
    "cached tokens left out of the count": Fault(HI + done(prompt_eval_count=9), "stop", "Hi", estimated=2800),
}

LINES: dict[str, Fault] = {
    "blank lines between": Fault(b"\n" + HI + b"\r\n\n" + THERE + b" \n" + done(), "stop", "Hi there"),
    "carriage returns": Fault(WHOLE.replace(b"\n", b"\r\n"), "stop", "Hi there"),
    "carriage returns alone": Fault(WHOLE.replace(b"\n", b"\r"), StreamBrokenError, says="middle of a line"),
    "byte order mark": Fault(b"\xef\xbb\xbf" + WHOLE, "stop", "Hi there"),
    "byte order mark in the middle": Fault(HI + b"\xef\xbb\xbf" + done(), ProtocolError, "Hi"),
    "separators inside a string": Fault(line({"content": SEPARATORS}) + done(), "stop", SEPARATORS),
    "characters of four bytes": Fault(line({"content": "é\U0001f600"}) + done(), "stop", "é\U0001f600"),
    "invalid UTF-8": Fault(HI + HI.replace(b"Hi", b"H\xff"), ProtocolError, "Hi", says="line 2: not UTF-8"),
    "overlong UTF-8": Fault(HI + HI.replace(b"Hi", b"\xc0\xaf"), ProtocolError, "Hi", says="not UTF-8"),
    "UTF-16": Fault("{}".encode("utf-16"), ProtocolError),
    "lone surrogate": Fault(line({"content": "@"}).replace(b"@", rb"\ud800") + done(), "stop", "\ufffd"),
    "pair of surrogates": Fault(line({"content": "@"}).replace(b"@", rb"\ud83d\ude00") + done(), "stop", "\U0001f600"),
    "a zero character": Fault(line({"content": "a\0b"}) + done(), "stop", "a\0b"),
    "a raw control character": Fault(HI.replace(b"Hi", b"H\x01"), ProtocolError, says="control character"),
    "garbage line": Fault(HI + b"@@@@\n" + done(), ProtocolError, "Hi", says="line 2"),
    "two objects on a line": Fault(HI[:-1] + done(), ProtocolError, says="Extra data"),
    "HTML page": Fault(b"<!doctype html>\n<html><body>Sign in</body></html>", ProtocolError),
    "HTML page on one line": Fault(b"<html>Gateway</html>", ProtocolError, says="<html>Gateway"),
    "plain words": Fault(b"Ollama is running", ProtocolError, says="Ollama is running"),
    "server-sent events": Fault(b'data: {"choices":[]}\n\ndata: [DONE]\n', ProtocolError),
    "a list": Fault(b"[]\n", ProtocolError, says="not a JSON object"),
    "a string": Fault(b'"done"\n', ProtocolError),
    "null": Fault(HI + b"null\n", ProtocolError, "Hi"),
    "NaN": Fault(HI + HI.replace(b"false", b"NaN"), ProtocolError, "Hi", says="NaN is not JSON"),
    "Infinity": Fault(HI.replace(b'"Hi"', b"Infinity"), ProtocolError, says="Infinity"),
    "minus infinity among figures": Fault(HI + done().replace(b":10,", b":-Infinity,"), ProtocolError, "Hi"),
    "a number out of range": Fault(HI + done().replace(b":10,", b":1e999,"), ProtocolError, "Hi", says="range"),
    "a number of 5,000 digits": Fault(HI + done().replace(b":10,", b":" + b"9" * 5000 + b","), ProtocolError, "Hi"),
    "a key twice": Fault(HI.replace(b'"done":', b'"done":true,"done":'), ProtocolError, says="twice"),
    "a key twice inside": Fault(HI.replace(b'"content":', b'"content":"x","content":'), ProtocolError),
    "deeply nested": Fault(HI + b'{"message":' + b"[" * 5000 + b"]" * 5000 + b"}\n", ProtocolError, "Hi"),
    "nested over the cap": Fault(HI + b'{"message":' + b"[" * 150 + b"]" * 150 + b"}\n", ProtocolError, "Hi"),
    "unknown line": Fault(HI + b'{"keepalive": 1}\n' + done(), ProtocolError, "Hi", says="keepalive"),
    "empty object": Fault(HI + b"{}\n" + done(), ProtocolError, "Hi", says="empty object"),
    "status line": Fault(b'{"status":"loading"}\n' + WHOLE, "stop", "Hi there"),
    "a line of /api/generate": Fault(b'{"response":"Hi","done":false}\n' + done(), EmptyOutputError),
    "a line of 10 MB": Fault(line({"content": "a" * 10 * MEGABYTE}) + done(), "stop", "a" * 10 * MEGABYTE, coarse=True),
    "much, and nothing of an answer": Fault(
        HI + line({"content": ""}, padding="a" * MEGABYTE) * 33 + done(),
        ProtocolError,
        "Hi",
        says="nothing of an",
        coarse=True,
    ),
    "a line over the cap": Fault(HI + b"a" * 17 * MEGABYTE, ProtocolError, "Hi", says="longer than", coarse=True),
}

ERRORS: dict[str, Fault] = {
    "error line first": Fault(error_line("boom"), ServerError, says="failed in mid-answer: boom"),
    "error line in the middle": Fault(HI + error_line("boom") + THERE + done(), ServerError, "Hi", says="boom"),
    "error line last": Fault(HI + THERE + error_line("boom"), ServerError, "Hi there", says="boom"),
    "error line without newline": Fault(HI + error_line("boom")[:-1], ServerError, "Hi", says="boom"),
    "error after done": Fault(HI + done() + error_line("boom"), "stop", "Hi"),
    "error on the done line": Fault(HI + line({}, done=True, error="boom"), ServerError, "Hi", says="boom"),
    "error beside text": Fault(line({"content": "Hi"}, error="boom"), ServerError, says="boom"),
    "error is an object": Fault(HI + error_line({"message": "boom"}), ServerError, "Hi", says=": boom"),
    "error is JSON in a string": Fault(HI + error_line('{"error":"boom"}'), ServerError, "Hi", says=": boom"),
    "error is JSON twice over": Fault(
        HI + error_line(json.dumps({"error": '{"message":"boom"}'})), ServerError, "Hi", says=": boom"
    ),
    "error is half of JSON": Fault(HI + error_line('{"error":"bo'), ServerError, "Hi", says='{"error":"bo'),
    "error of a wrong key": Fault(HI + b'{"Error":"boom"}\n', ServerError, "Hi", says="boom"),
    "call not parsed, of a wrong key": Fault(
        HI + b'{"error parsing tool call": "raw"}\n', ServerError, "Hi", says="error parsing tool call: raw", tools=True
    ),
    "call not parsed, nothing shown": Fault(
        error_line("error parsing tool call: raw='{', err=end"), ServerError, says="err=end", tools=True
    ),
    "error is empty": Fault(HI + error_line(""), ServerError, "Hi"),
    "error is a number": Fault(HI + error_line(7), ServerError, "Hi", says="7"),
    "error is null": Fault(HI.replace(b"{", b'{"error":null,', 1) + done(), "stop", "Hi"),
    "error is a page long": Fault(HI + error_line("boom " * 9000), ServerError, "Hi", says="boom boom"),
    "overflow in mid-stream": Fault(HI + error_line(OVERFLOW), ContextTruncatedError, "Hi", says="is 9 tokens"),
    "overflow in words": Fault(error_line("the prompt is longer than the context length"), ContextTruncatedError),
    "busy in mid-stream": Fault(HI + error_line("server busy, please try again"), BusyError, "Hi"),
    "not found in mid-stream": Fault(HI + error_line("model 'm' not found"), ModelNotFoundError, "Hi"),
    "no tools in mid-stream": Fault(HI + error_line('"m" does not support tools'), CapabilityMissingError, "Hi"),
    "runner died": Fault(
        HI + error_line("an error was encountered while running the model: unexpected EOF"), ServerError, "Hi"
    ),
    "out of memory": Fault(error_line("model runner has unexpectedly stopped, resource limitations"), ServerError),
}  # fmt: skip

MESSAGES: dict[str, Fault] = {
    "message is null": Fault(line().replace(b"{", b'{"message":null,', 1) + WHOLE, "stop", "Hi there"),
    "message is missing": Fault(line() + WHOLE, "stop", "Hi there"),
    "message is a string": Fault(HI + line().replace(b"{", b'{"message":"x",', 1), ProtocolError, "Hi"),
    "message is a list": Fault(HI + line().replace(b"{", b'{"message":[],', 1), ProtocolError, "Hi"),
    "message of another role": Fault(line({"role": "user", "content": "Hi"}) + done(), "stop", "Hi"),
    "content is null": Fault(line({"content": None}) + WHOLE, "stop", "Hi there"),
    "content is a list": Fault(line({"content": ["Hi"]}), ProtocolError, says="`content` is not text"),
    "content is parts": Fault(line({"content": [{"type": "text", "text": "Hi"}]}), ProtocolError),
    "content is a number": Fault(HI + line({"content": 1}), ProtocolError, "Hi"),
    "thinking is a number": Fault(HI + line({"thinking": 1}), ProtocolError, "Hi", says="`thinking`"),
    "thinking is null": Fault(line({"content": "Hi", "thinking": None}) + done(), "stop", "Hi"),
    "thinking only": Fault(line({"thinking": "hm"}) + done(), "stop", thinking="hm"),
    "thinking only, on the done line": Fault(done({"thinking": "hm"}), "stop", thinking="hm"),
    "thinking and nothing else, no done": Fault(line({"thinking": "hm"}), StreamBrokenError, thinking="hm"),
    "thinking and text in one line": Fault(done({"thinking": "hm", "content": "Hi"}), "stop", "Hi", thinking="hm"),
    "only a stray tag": Fault(line({"content": "</think>"}) + done(), EmptyOutputError),
    "a stray tag": Fault(line({"content": "2+2</th"}) + line({"content": "ink>\n4"}) + done(), "stop", "2+2\n4"),
    "thinking in the answer": Fault(
        line({"content": "<thi"}) + line({"content": "nk>hm</think>"}) + HI + done(), "stop", "Hi", thinking="hm"
    ),
    "thinking in the answer, never closed": Fault(line({"content": "[THINK]hm"}) + done(), "stop", thinking="hm"),
    "thinking in the answer, cut off": Fault(line({"content": "<think>hm</th"}), StreamBrokenError, thinking="hm</th"),
    "what only looks like a tag": Fault(line({"content": "a </th"}) + done(), "stop", "a </th"),
    "what only looks like a tag, then a break": Fault(line({"content": "a </th"}), StreamBrokenError, "a </th"),
    "figures missing": Fault(HI + line({}, done=True, done_reason="stop"), "stop", "Hi"),
    "figures negative": Fault(HI + done(prompt_eval_count=-1, eval_count=-7, total_duration=-1), "stop", "Hi"),
    "figures huge": Fault(HI + done(prompt_eval_count=10**30, eval_count=2**63), "stop", "Hi"),
    "figures of other types": Fault(HI + done(prompt_eval_count="9", eval_count=True, total_duration=[]), "stop", "Hi"),
}

CALLS: dict[str, Fault] = {
    "calls on the done line": Fault(
        HI + done({"tool_calls": [call("a", {}), call("b", {}, call_id="x")]}), "tool_calls", "Hi", calls=("a", "b")
    ),
    "calls before the done line": Fault(with_calls(call("a", {})) + done(), "tool_calls", calls=("a",)),
    "calls, then no done": Fault(with_calls(call("a", {})), StreamBrokenError, calls=("a",)),
    "the same id twice": Fault(with_calls(call("a", {}), call("a", {})) + done(), "tool_calls", calls=("a", "a")),
    "no id": Fault(with_calls(call("a", {}, call_id=None)) + done(), "tool_calls", calls=("a",)),
    "an id that is a number": Fault(with_calls(call("a", {}) | {"id": 7}) + done(), "tool_calls", calls=("a",)),
    "all of index zero": Fault(
        with_calls(call("a", {}, call_id="1")) + with_calls(call("b", {}, call_id="2")) + done(), "tool_calls",
        calls=("a", "b"),
    ),
    "an undeclared name": Fault(with_calls(call("rm_rf", {})) + done(), "tool_calls", calls=("rm_rf",)),
    "a name with a namespace": Fault(with_calls(call("fs.read", {})) + done(), "tool_calls", calls=("fs.read",)),
    "a call and a length": Fault(with_calls(call("a", {})) + done(done_reason="length"), "tool_calls", calls=("a",)),
    "arguments as a string": Fault(with_calls(call("a", '{"x":1}')) + done(), "tool_calls", calls=("a",)),
    "arguments as an empty string": Fault(with_calls(call("a", "")) + done(), "tool_calls", calls=("a",)),
    "arguments that are null": Fault(with_calls(call("a", None)) + done(), "tool_calls", calls=("a",)),
    "arguments as a string of a string": Fault(HI + with_calls(call("a", '"{}"')), UnusableCallError, "Hi", says="'a'"),
    "arguments that are a list": Fault(HI + with_calls(call("a", [])), UnusableCallError, "Hi"),
    "arguments that are a number": Fault(with_calls(call("a", 7)), UnusableCallError),
    "arguments that are half of JSON": Fault(HI + with_calls(call("a", '{"x":')), UnusableCallError, "Hi"),
    "arguments as a string of a list": Fault(HI + with_calls(call("a", "[]")), UnusableCallError, "Hi"),
    "a good call, then a bad one": Fault(
        with_calls(call("a", {}), call("b", 7)) + done(), UnusableCallError, calls=("a",), says="'b'"
    ),
    "arguments that are no use, of a name without end": Fault(with_calls(call("a" * 9000, 7)), UnusableCallError),
    "a call without a name": Fault(HI + with_calls({"function": {"arguments": {}}}), UnusableCallError, "Hi"),
    "a call with an empty name": Fault(HI + with_calls(call("", {})), UnusableCallError, "Hi", says="names no tool"),
    "a call without a function": Fault(HI + with_calls({"id": "a"}), UnusableCallError, "Hi"),
    "a call that is a string": Fault(HI + with_calls("read"), UnusableCallError, "Hi"),
    "calls that are an object": Fault(HI + line({"tool_calls": {}}), ProtocolError, "Hi", says="`tool_calls`"),
    "calls that are null": Fault(line({"content": "Hi", "tool_calls": None}) + done(), "stop", "Hi"),
    "no calls": Fault(line({"content": "Hi", "tool_calls": []}) + done(), "stop", "Hi"),
    "arguments of 100 kB": Fault(
        with_calls(call("a", {"x": "y" * 100_000})) + done(), "tool_calls", calls=("a",), coarse=True
    ),
}  # fmt: skip

HEAD = b"HTTP/1.1 200 OK\r\n"
CONNECTIONS: dict[str, Fault] = {
    "dropped in mid-stream": Fault(HI + THERE, StreamBrokenError, "Hi there", then=Drop()),
    "dropped in the middle of a line": Fault(HI + THERE[:9], StreamBrokenError, "Hi", then=Drop()),
    "dropped right after done": Fault(HI + done(), "stop", "Hi", then=Drop()),
    "dropped after the head": Fault(b"", StreamBrokenError, then=Drop()),
    "dropped without a byte": Fault(b"", StreamBrokenError, then=Drop(), framing="raw"),
    "reset without a byte": Fault(b"", StreamBrokenError, then=Reset(), framing="raw"),
    "reset in mid-line": Fault(HI + THERE[:9], StreamBrokenError, None, then=Reset()),
    "reset in the head": Fault(HEAD[:9], StreamBrokenError, then=Reset(), framing="raw"),
    "dropped in the head": Fault(HEAD + b"Content-", StreamBrokenError, then=Drop(), framing="raw"),
    "closed at a line's end": Fault(HI + THERE, StreamBrokenError, "Hi there", framing="close"),
    "closed in the middle of a line": Fault(HI + THERE[:9], StreamBrokenError, "Hi", framing="close"),
    "closed when it was whole": Fault(WHOLE, "stop", "Hi there", framing="close"),
    "of known length": Fault(WHOLE, "stop", "Hi there", framing="length"),
    "more announced than sent": Fault(
        HEAD + b"Content-Length: 9999\r\n\r\n" + HI, StreamBrokenError, "Hi", framing="raw"
    ),
    "less announced than sent": Fault(
        HEAD + b"Content-Length: %d\r\n\r\n" % len(HI) + WHOLE, StreamBrokenError, "Hi", framing="raw"
    ),
    "a length that is no number": Fault(HEAD + b"Content-Length: x\r\n\r\n", ProtocolError, framing="raw"),
    "a chunk of a wrong size": Fault(
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", ProtocolError, framing="raw", says="does not speak HTTP"
    ),
    "a chunk that is cut": Fault(
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nff\r\n" + HI, StreamBrokenError, "Hi", framing="raw"
    ),
    "not HTTP": Fault(b"SSH-2.0-OpenSSH_9.6\r\n\r\n", ProtocolError, framing="raw", says="does not speak HTTP"),
    "a status that is no number": Fault(b"HTTP/1.1 ok\r\n\r\n", ProtocolError, framing="raw"),
    "HTTP of another kind": Fault(b"HTTP/3.9 200 OK\r\n\r\n", StreamBrokenError, framing="raw", says=BROKEN),
    "compressed": Fault(
        gzip.compress(WHOLE, mtime=0), "stop", "Hi there", framing="length", headers={"Content-Encoding": "gzip"}
    ),
    "compressed and cut": Fault(
        gzip.compress(WHOLE, mtime=0)[:20], StreamBrokenError, None, headers={"Content-Encoding": "gzip"}, then=Drop()
    ),
    "not what it says it is compressed with": Fault(WHOLE, ProtocolError, headers={"Content-Encoding": "gzip"}),
    "of another type": Fault(WHOLE, "stop", "Hi there", headers={"Content-Type": "text/html"}),
    "silent from the start": Fault(b"", ModelTimeoutError, then=NEVER, framing="raw", impatient=True),
    "silent after the head": Fault(HEAD + b"\r\n", ModelTimeoutError, then=NEVER, framing="raw", impatient=True),
    "silent after a line": Fault(HI, ModelTimeoutError, "Hi", then=NEVER, impatient=True, says="mid-answer"),
    "silent in the middle of a line": Fault(HI + THERE[:9], ModelTimeoutError, "Hi", then=NEVER, impatient=True),
    "a slow drip": Fault(WHOLE, "stop", "Hi there", then=DRIP),
    "a drip of blank lines": Fault(HI + b"\n" * 400, ModelTimeoutError, "Hi", then=DRIP, impatient=True),
    "a drip that never makes a line": Fault(HI + b"@" * 400, ModelTimeoutError, "Hi", then=DRIP, impatient=True),
}  # fmt: skip

STATUSES = (
    400, 401, 402, 403, 404, 405, 408, 409, 413, 415, 418, 422, 425, 429, 431, 451, 499, 500, 501, 502, 503, 504, 507,
    511, 520, 524, 599,
)  # fmt: skip
BODIES = {
    "JSON": b'{"error":"boom"}',
    "nested JSON": b'{"error":"{\\"error\\":{\\"message\\":\\"boom\\"}}"}',
    "text": b"boom",
    "HTML": b"<!doctype html>\n<html><title>boom</title></html>",
    "an empty body": b"",
}
OTHER_STATUSES = (201, 202, 206, 300, 301, 302, 303, 307, 308)


def statuses() -> Iterator[tuple[str, Fault]]:
    for status in STATUSES:
        for kind, body in BODIES.items():
            end = {499: CallCancelledError, 503: BusyError}.get(status, ServerError)
            says = "boom" if body else {499: "cancelled", 503: "busy"}.get(status, str(status))
            yield f"{status} with {kind}", Fault(body, end, says=says, status=status, framing="length")
    for status in OTHER_STATUSES:
        end = "redirects" if status >= 300 else str(status)
        yield (
            f"{status}",
            Fault(b"", ServerError, says=end, status=status, framing="length", headers={"Location": "/x"}),
        )


REFUSALS: dict[str, Fault] = {
    "404 of a model": Fault(b'{"error":"model \'x\' not found"}', ModelNotFoundError, status=404, framing="length"),
    "401 with an address to sign in": Fault(
        b'{"error":"unauthorized","signin_url":"https://example.com/in"}', ServerError, status=401, framing="length",
        says="unauthorized",
    ),
    "400 for the length of the prompt": Fault(
        OVERFLOW.encode(), ContextTruncatedError, status=400, framing="length", says="over the window of 8"
    ),
    "400 for tools": Fault(
        b'{"error":"m does not support tools"}', CapabilityMissingError, status=400, framing="length"
    ),
    "400 for thinking": Fault(
        b'{"error":"m does not support thinking"}', CapabilityMissingError, status=400, framing="length"
    ),
    "500 for a call that was not parsed": Fault(
        b'{"error":"error parsing tool call: raw"}', ServerError, status=500, framing="length", says="parsing tool call"
    ),
    "500 whose body breaks off": Fault(b'{"error":', ServerError, status=500, says="500", then=Drop()),
    "500 with a page of 5 kB": Fault(b"<html>" + b"x" * 5000, ServerError, status=500, framing="length"),
    "500 that is not UTF-8": Fault(b"\xff\xfe\xff", ServerError, status=500, framing="length"),
}  # fmt: skip

FAULTS: dict[str, Fault] = (
    ENDS | LINES | ERRORS | MESSAGES | CALLS | CONNECTIONS | dict(statuses()) | REFUSALS
)  # fmt: skip
