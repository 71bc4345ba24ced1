import json
from collections.abc import Iterable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rune.errors import ProtocolError
from rune.models.wire.ndjson import DEPTH_CAP, LineSplitter, decode_object, excerpt
from tests.ollama_replies import cut


def split(chunks: Iterable[bytes], cap: int = 1 << 20) -> tuple[list[bytes], bytes | None, str]:
    """Return the lines, the unfinished rest and the error's words of a stream."""
    splitter, lines = LineSplitter(cap), list[bytes]()
    try:
        for chunk in chunks:
            lines.extend(splitter.feed(chunk))
    except ProtocolError as error:
        return lines, None, error.message
    return lines, splitter.rest(), ""


streams = st.lists(
    st.sampled_from([b"\n", b"\r", b"\xef\xbb\xbf", b"{}", b'"', "é\u2028\u0085".encode(), b"ab", b"\xff"])
)


@given(streams.map(b"".join), st.lists(st.integers(1, 7)), st.integers(2, 9))
@example(b"\xef\xbb\xbf{}\r\n{}", [1, 1, 1, 1, 1, 1, 1], 9)
def test_any_chunking_gives_the_same_lines_and_the_same_error(data: bytes, sizes: list[int], cap: int) -> None:
    assert split(cut(data, sizes), cap) == split([data], cap)


def test_lines_end_at_the_newline_byte_only() -> None:
    text = "a\u0085b\u2028c\x0bd\x0ce"
    assert split([f"{text}\n".encode()])[0] == [text.encode()]


def test_a_byte_order_mark_and_carriage_returns_are_no_part_of_a_line() -> None:
    assert split([b"\xef\xbb\xbf{}\r\n\r\n{}\r\n"])[0] == [b"{}", b"", b"{}"]


def test_an_unfinished_last_line_is_given_as_such() -> None:
    assert split([b'{"a":1}\n{"b"', b":"]) == ([b'{"a":1}'], b'{"b":', "")
    assert split([b'{"a":1}\n']) == ([b'{"a":1}'], None, "")


def test_a_line_over_the_cap_is_an_error_that_names_the_line_and_the_whole_lines_before_it_are_given() -> None:
    splitter = LineSplitter(cap=4)
    lines = splitter.feed(b"abcd\nabcde")
    assert next(lines) == b"abcd"
    with pytest.raises(ProtocolError, match="line 2: a line is longer than 4 bytes") as caught:
        next(lines)
    assert caught.value.line == 2


def test_a_line_of_many_small_chunks_takes_linear_time() -> None:
    splitter = LineSplitter()
    for _ in range(200_000):
        assert not list(splitter.feed(b"abcdefgh"))
    assert len(splitter.rest() or b"") == 1_600_000


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"<html>", "not valid JSON"),
        (b"data: {}", "not valid JSON"),
        (b"{} {}", "not valid JSON"),
        (b"[]", "not a JSON object"),
        (b'"a"', "not a JSON object"),
        (b"null", "not a JSON object"),
        (b'{"a":"\xff"}', "not UTF-8 at byte 6"),
        (b'{"a":"\xe2\x82"}', "not UTF-8"),
        (b'{"a":NaN}', "NaN"),
        (b'{"a":-Infinity}', "Infinity"),
        (b'{"a":1e999}', "out of range"),
        (b'{"a":' + b"9" * 5000 + b"}", "out of range"),
        (b'{"a":1,"a":2}', "a key stands twice"),
        (b'{"m":{"a":1,"a":1}}', "a key stands twice"),
        (b'{"a":"\x01"}', "not valid JSON"),
        (b'{"a":' + b"[" * DEPTH_CAP + b"]" * DEPTH_CAP + b"}", "levels deep"),
        (b'{"a":' * DEPTH_CAP + b"{}" + b"}" * DEPTH_CAP, "levels deep"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a":' * 200_000, "nested too deeply"),
    ],
)
def test_what_is_not_one_sound_object_is_a_protocol_error(line: bytes, reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason) as caught:
        decode_object(line, number=7)
    assert caught.value.line == 7
    assert len(caught.value.message) < 400


def test_nesting_up_to_the_cap_is_read() -> None:
    line = b'{"a":' + b"[" * (DEPTH_CAP - 1) + b"]" * (DEPTH_CAP - 1) + b"}"
    assert decode_object(line) == json.loads(line)


def test_a_lone_surrogate_becomes_the_replacement_character_everywhere() -> None:
    line = rb'{"a\ud800":["\udfff",{"b":"x\uD83Dy"}],"ok":"\ud83d\ude00","n":1}'
    assert decode_object(line) == {"a\ufffd": ["\ufffd", {"b": "x\ufffdy"}], "ok": "\U0001f600", "n": 1}


def test_an_integer_of_more_than_64_bits_becomes_a_float() -> None:
    value = decode_object(b'{"big":123456789012345678901234567890,"small":-9007199254740993}')
    assert value == {"big": 1.2345678901234568e29, "small": -9007199254740993}
    assert isinstance(value["big"], float)


plain = st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.text()
values = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=10
)


@given(st.dictionaries(st.text(), values))
def test_every_sound_object_is_read_as_the_standard_parser_reads_it(value: dict[str, object]) -> None:
    line = json.dumps(value).encode()
    assert decode_object(line) == json.loads(line)


@given(st.binary(max_size=300))
def test_any_bytes_give_an_object_or_a_protocol_error(data: bytes) -> None:
    try:
        assert isinstance(decode_object(data), dict)
    except ProtocolError as error:
        assert error.message


@given(st.binary(max_size=2000))
def test_an_excerpt_is_short_printable_and_on_one_line(data: bytes) -> None:
    shown = excerpt(data)
    assert len(shown) <= 123
    assert shown.isprintable()
