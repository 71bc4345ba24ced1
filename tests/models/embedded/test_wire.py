"""What llama.cpp's server is told and what it says, without a model."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.errors import (
    ContextTruncatedError,
    EmptyOutputError,
    ModelError,
    ProtocolError,
    ServerError,
    UnusableCallError,
)
from rune.models.embedded.wire import AnswerReader, chat_body, refusal
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
from rune.records.tools import ToolCall

_ORDER: list[type[ChatChunk]] = [Progress, TextDelta, Completed]
_RECORDED = (Path(__file__).parents[2] / "data" / "embedded" / "answer.sse").read_bytes()


def _request(messages: bytes, **changes: Any) -> ChatRequest:
    fields: dict[str, Any] = {"tools": b"[]", "options": LoadOptions(num_ctx=512), "estimated": 7}
    return ChatRequest(model="m", messages=messages, **{**fields, **changes})


def _stream(*events: dict[str, Any], done: bool = True) -> bytes:
    lines = [json.dumps(event) for event in events] + ["[DONE]"] * done
    return "".join(f"data: {line}\n\n" for line in lines).encode()


def _delta(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def _finish(reason: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}


def _read(stream: bytes) -> list[ChatChunk]:
    return list(AnswerReader(estimated=7).read(stream))


def test_a_recorded_answer_reads_as_progress_then_text_then_one_completed() -> None:
    chunks = _read(_RECORDED)
    kinds = [type(chunk) for chunk in chunks]
    assert kinds == sorted(kinds, key=_ORDER.index)
    assert kinds.count(Completed) == 1
    assert isinstance(chunks[-1], Completed)
    assert chunks[-1].reason == "length"
    assert chunks[-1].usage.prompt_tokens == 163
    assert chunks[-1].usage.cached_tokens == 0
    assert chunks[-1].usage.output_tokens == 12
    assert chunks[-1].usage.model_time_ms == 6194
    readings = [chunk for chunk in chunks if isinstance(chunk, Progress)]
    assert [reading.done for reading in readings] == [0, 64, 128, 163]
    assert {reading.total for reading in readings} == {163}


@given(st.lists(st.integers(0, len(_RECORDED)), max_size=12))
def test_any_cut_of_a_recorded_answer_gives_the_same_chunks(cuts: list[int]) -> None:
    places = sorted(set(cuts))
    reader = AnswerReader(estimated=7)
    pieces = [_RECORDED[a:b] for a, b in zip([0, *places], [*places, len(_RECORDED)], strict=True)]
    assert [chunk for piece in pieces for chunk in reader.read(piece)] == _read(_RECORDED)


def test_a_figure_that_the_server_does_not_give_stays_unknown() -> None:
    chunks = _read(_stream(_delta(content="a"), _finish("stop")))
    usage = chunks[-1].usage if isinstance(chunks[-1], Completed) else None
    assert usage is not None
    assert usage.calls == 1
    assert (usage.prompt_tokens, usage.cached_tokens, usage.output_tokens, usage.model_time_ms) == (None,) * 4


def test_thinking_and_text_are_told_apart_and_empty_pieces_are_none() -> None:
    chunks = _read(
        _stream(
            _delta(role="assistant", content=None),
            _delta(reasoning_content="hm"),
            _delta(content=""),
            _delta(content="yes"),
            _finish("stop"),
        )
    )
    assert chunks[:-1] == [ThinkingDelta(text="hm"), TextDelta(text="yes")]


def test_fragments_of_tool_calls_are_put_together_by_index_and_get_ids_of_their_own_where_needed() -> None:
    def part(index: int, **fields: Any) -> dict[str, Any]:
        return _delta(tool_calls=[{"index": index, "type": "function", **fields}])

    chunks = _read(
        _stream(
            part(0, id="a", function={"name": "read", "arguments": ""}),
            part(1, id="a", function={"name": "list", "arguments": '{"path'}),
            part(0, function={"arguments": '{"n": '}),
            part(1, function={"arguments": '": "."}'}),
            part(0, function={"arguments": "1}"}),
            part(2, function={"name": "now"}),
            _finish("tool_calls"),
        )
    )
    assert chunks[:-1] == [
        ToolCallReady(call=ToolCall(id="a", name="read", arguments={"n": 1})),
        ToolCallReady(call=ToolCall(id="call_1", name="list", arguments={"path": "."})),
        ToolCallReady(call=ToolCall(id="call_2", name="now", arguments={})),
    ]
    assert isinstance(chunks[-1], Completed)
    assert chunks[-1].reason == "tool_calls"


def test_a_call_that_the_limit_cut_off_is_no_call() -> None:
    call = {"index": 0, "id": "a", "function": {"name": "read", "arguments": '{"path": "/et'}}
    chunks = _read(_stream(_delta(tool_calls=[call]), _finish("length")))
    assert [type(chunk) for chunk in chunks] == [Completed]


@pytest.mark.parametrize(
    ("stream", "error", "says"),
    [
        (_stream(_delta(content="a")), ProtocolError, "without a finish_reason"),
        (_stream(_delta(content="a"), _finish("wandered_off")), ProtocolError, "'wandered_off' is not known"),
        (_stream(_delta(content="a"), _finish("stop")) + _stream(), ProtocolError, "follows"),
        (b"data: {nonsense\n\n", ProtocolError, "line 1"),
        (b'data: {"choices": "none"}\n\n', ProtocolError, "line 1"),
        (_stream(_finish("stop")), EmptyOutputError, "without any output"),
        (_stream({"error": {"message": "out of memory", "code": 500}}), ServerError, "out of memory"),
    ],
)
def test_what_is_not_a_whole_answer_ends_in_a_typed_error(stream: bytes, error: type[ModelError], says: str) -> None:
    with pytest.raises(error, match=says):
        _read(stream)


def test_arguments_that_are_no_object_are_an_unusable_call_that_names_the_tool() -> None:
    call = {"index": 0, "id": "a", "function": {"name": "read", "arguments": "[1]"}}
    with pytest.raises(UnusableCallError, match="'read'"):
        _read(_stream(_delta(tool_calls=[call]), _finish("tool_calls")))


def test_a_prompt_over_the_window_is_told_with_both_numbers() -> None:
    body = b'{"error":{"code":400,"message":"m","type":"exceed_context_size_error","n_prompt_tokens":900,"n_ctx":512}}'
    error = refusal(400, body, phase="first_byte", estimated=800)
    assert isinstance(error, ContextTruncatedError)
    assert (error.estimated, error.served, error.window) == (800, 900, 512)


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"error":"text"}', b"\xff\xfe"])
def test_a_refusal_of_any_form_is_a_server_error_with_its_status(body: bytes) -> None:
    error = refusal(500, body, phase="first_byte", estimated=1)
    assert isinstance(error, ServerError)
    assert error.status == 500


_MESSAGES: list[Callable[[str], bytes]] = [
    lambda text: json.dumps([{"role": "user", "content": text}]).encode(),
    lambda text: json.dumps([{"role": "user", "content": text}], ensure_ascii=False, indent=1).encode(
        "utf-8", "replace"
    ),
]


@given(st.text(), st.sampled_from(_MESSAGES))
def test_messages_tools_and_format_stand_in_the_body_byte_for_byte(text: str, render: Callable[[str], bytes]) -> None:
    messages, tools, schema = render(text), b'[ {"type":"function"} ]', b'{ "type" : "object" }'
    body = chat_body(_request(messages, tools=tools, format=schema, max_tokens=5), {"temperature": 0.2})
    assert messages in body
    assert tools in body
    assert schema in body
    said = json.loads(body)
    assert said["messages"] == json.loads(messages)
    assert said["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert (said["max_tokens"], said["temperature"], said["stream"]) == (5, 0.2, True)


def test_what_was_not_asked_for_is_not_in_the_body() -> None:
    said = json.loads(chat_body(_request(b"[]"), {}))
    assert not {"tools", "response_format", "max_tokens", "chat_template_kwargs", "temperature"} & said.keys()
