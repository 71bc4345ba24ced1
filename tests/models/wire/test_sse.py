"""Framing of server-sent events: any cut of the bytes gives the same events."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.errors import ProtocolError
from rune.models.wire.sse import EventDecoder

_LINES = st.sampled_from(
    [
        b"data: {}",
        b"data:x",
        b"data: two words",
        "data: caf\u2028\u0085\u00e9".encode(),
        b": ping",
        b"event: a",
        b"id",
        b"",
        b"",
        b"",
    ]
)
_ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


def _decode(pieces: list[bytes]) -> list[bytes]:
    decoder = EventDecoder()
    return [event for piece in pieces for event in decoder.feed(piece)]


@given(st.lists(_LINES, max_size=30), _ENDS, st.lists(st.integers(0, 300), max_size=20))
def test_any_cut_of_the_bytes_gives_the_same_events(lines: list[bytes], end: bytes, cuts: list[int]) -> None:
    whole = end.join([*lines, b""])
    places = sorted({min(cut, len(whole)) for cut in cuts})
    pieces = [whole[a:b] for a, b in zip([0, *places], [*places, len(whole)], strict=True)]
    assert _decode(pieces) == _decode([whole])
    assert _decode([whole[at : at + 1] for at in range(len(whole))]) == _decode([whole])


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b"data: a\r\n\r\n", [b"a"]),
        (b"data:a\r\rdata:  b\r\r", [b"a", b" b"]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b": ping\n\nevent: x\n\n", []),
        (b"data: unfinished\n", []),
        (b"data\n\n", [b""]),
        ("data: \u2028\u0085\x0b\n\n".encode(), ["\u2028\u0085\x0b".encode()]),
    ],
)
def test_events_are_framed_as_the_standard_says(stream: bytes, events: list[bytes]) -> None:
    assert _decode([stream]) == events


def test_an_event_without_end_is_a_protocol_error_and_not_all_of_memory() -> None:
    decoder = EventDecoder(max_event=100)
    assert decoder.feed(b"data: " + b"x" * 90) == []
    with pytest.raises(ProtocolError, match="more than 100 bytes"):
        decoder.feed(b"x" * 20)


def test_comments_do_not_count_against_the_size_of_an_event() -> None:
    decoder = EventDecoder(max_event=100)
    for _ in range(50):
        assert decoder.feed(b": still here\n") == []
    assert decoder.feed(b"data: a\n\n") == [b"a"]
