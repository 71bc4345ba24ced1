import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.errors import ContextTruncatedError, ModelError, ProtocolError
from rune.models.ollama.failures import from_status, unwrap
from rune.models.ollama.wire import AnswerDecoder, chat_body
from rune.models.transport import ChatChunk, ChatRequest, Completed, LoadOptions, TextDelta, ToolCallReady
from rune.models.wire.http import Asked
from rune.records.models import ThinkLevel
from tests.models.transport_contract import MESSAGES, TOOLS
from tests.ollama_replies import call, done, line

ASKED = ChatRequest(model="m", messages=MESSAGES, tools=b"[]", options=LoadOptions(num_ctx=4096), estimated=8)


def request(**fields: Any) -> ChatRequest:
    return msgspec.structs.replace(ASKED, **fields)


def decode(*lines: bytes, **fields: Any) -> list[ChatChunk]:
    decoder = AnswerDecoder(request(**fields))
    return [chunk for number, text in enumerate(lines, start=1) for chunk in decoder.read(text, number)]


def test_a_body_holds_messages_and_tools_byte_for_byte_and_every_load_option() -> None:
    body = chat_body(request(tools=TOOLS))
    assert b'"messages":' + MESSAGES + b',"tools":' + TOOLS + b"," in body
    fields = json.loads(body)
    del fields["messages"], fields["tools"]
    assert fields == {"model": "m", "stream": True, "truncate": False, "shift": False, "options": {"num_ctx": 4096}}


def test_what_was_not_asked_for_is_not_sent() -> None:
    fields = json.loads(chat_body(request()))
    assert not {"tools", "think", "format", "keep_alive"} & fields.keys()


@pytest.mark.parametrize(("think", "sent"), [("on", True), ("off", False), ("low", "low"), ("high", "high")])
def test_thinking_is_sent_as_ollama_takes_it(think: ThinkLevel, sent: bool | str) -> None:
    assert json.loads(chat_body(request(think=think)))["think"] == sent


def test_a_schema_and_a_limit_are_sent_in_their_places() -> None:
    schema = b'{ "type":"object" }'
    body = chat_body(request(format=schema, max_tokens=7, temperature=0.0))
    assert b'"format":' + schema + b"," in body
    assert json.loads(body)["options"] == {"num_ctx": 4096, "num_predict": 7, "temperature": 0.0}


@pytest.mark.parametrize("messages", [b"[]", b" [] ", b""])
def test_an_empty_messages_array_is_refused_because_it_would_only_load_the_model(messages: bytes) -> None:
    with pytest.raises(ProtocolError, match="at least one message"):
        chat_body(request(messages=messages))


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_model_name_makes_a_sound_body(name: str) -> None:
    assert json.loads(chat_body(request(model=name)))["model"] == name


def test_a_cut_prompt_ends_in_an_error_with_both_numbers() -> None:
    with pytest.raises(ContextTruncatedError) as caught:
        decode(line({"content": "x"}), done(prompt_eval_count=2051), estimated=4000)
    assert (caught.value.estimated, caught.value.served, caught.value.window) == (4000, 2051, 4096)


def test_missing_figures_are_none_and_zero_is_zero() -> None:
    ended = decode(line({"content": "x"}), line({}, done=True, eval_count=0))[-1]
    assert isinstance(ended, Completed)
    assert (ended.usage.prompt_tokens, ended.usage.output_tokens, ended.usage.model_time_ms) == (None, 0, None)


@pytest.mark.parametrize("figure", [-1, 1.5, "7", True, None, 2**60, 10**40, [], {}])
def test_a_senseless_figure_counts_as_missing(figure: Any) -> None:
    ended = decode(line({"content": "x"}), done(prompt_eval_count=figure, total_duration=figure))[-1]
    assert isinstance(ended, Completed)
    assert (ended.usage.prompt_tokens, ended.usage.model_time_ms) == (None, None)


def test_cached_tokens_are_counted_where_the_server_tells_them() -> None:
    ended = decode(line({"content": "x"}), done(prompt_eval_cached_count=3))[-1]
    assert isinstance(ended, Completed)
    assert ended.usage.cached_tokens == 3


@pytest.mark.parametrize("placed_on_the_last_line", [True, False])
def test_calls_are_taken_from_running_lines_and_from_the_last_one(placed_on_the_last_line: bool) -> None:
    message = {"tool_calls": [call("a", {"x": 1}), call("b", {}, call_id="other")]}
    lines = [done(message)] if placed_on_the_last_line else [line(message), done()]
    *calls, ended = decode(*lines)
    assert [(chunk.call.name, chunk.call.id) for chunk in calls if isinstance(chunk, ToolCallReady)] == [
        ("a", "call_abc12345"),
        ("b", "other"),
    ]
    assert isinstance(ended, Completed)
    assert ended.reason == "tool_calls"


@given(st.lists(st.sampled_from([None, "", "x", "call_1", "call_2", "call_3", 7]), min_size=1, max_size=8))
def test_every_call_of_a_message_gets_an_id_of_its_own(ids: list[Any]) -> None:
    lines = [line({"tool_calls": [call("t", {}) | {"id": call_id}]}) for call_id in ids]
    chunks = decode(*lines, done())
    made = [chunk.call.id for chunk in chunks if isinstance(chunk, ToolCallReady)]
    assert len(set(made)) == len(ids)
    assert all(made)


@pytest.mark.parametrize(
    ("arguments", "read"),
    [({"a": 1}, {"a": 1}), ({}, {}), (None, {}), ("", {}), ('{"a": "b"}', {"a": "b"}), ("{}", {})],
)
def test_arguments_are_an_object_however_they_come(arguments: Any, read: dict[str, Any]) -> None:
    first = decode(line({"tool_calls": [call("t", arguments)]}), done())[0]
    assert isinstance(first, ToolCallReady)
    assert first.call.arguments == read


def test_text_that_was_held_back_comes_before_a_call_that_follows_it() -> None:
    chunks = decode(line({"content": "a </th"}), line({"tool_calls": [call("t", {})]}), done())
    assert [type(chunk).__name__ for chunk in chunks] == ["TextDelta", "TextDelta", "ToolCallReady", "Completed"]
    assert chunks[1] == TextDelta("</th")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        ("plain", "plain"),
        ({"message": "m"}, "m"),
        ('{"error":"once"}', "once"),
        ('{"error":{"code":400,"message":"twice","type":"t"}}', "twice"),
        ('{"error":"{\\"error\\":{\\"message\\":\\"thrice\\"}}"}', "thrice"),
        ("{not json", "{not json"),
        ({"code": 1}, ""),
        (["a"], '["a"]'),
        (7, "7"),
    ],
)
def test_an_error_is_unwrapped_to_its_sentence(error: Any, text: str) -> None:
    assert unwrap({"error": error}).text == text


def test_unwrapping_ends_however_deep_it_is() -> None:
    error: Any = "deep"
    for _ in range(12):
        error = json.dumps({"error": error})
    assert isinstance(unwrap(error).text, str)


@given(st.integers(300, 599), st.binary(max_size=200))
def test_any_status_with_any_body_is_a_typed_error(status: int, body: bytes) -> None:
    error = from_status(status, body, asked=Asked(model="m"))
    assert isinstance(error, ModelError)
    assert error.message
