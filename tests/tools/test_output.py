"""What is kept of a command's output: bounded, safe, without secrets, and honest about what is missing."""

import io
import re
import time
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.text.masking import Masker
from rune.text.safe_text import safe_text
from rune.tools.output import CommandOutput, KeptOutput, OutputCaps, Stream

CANARY = "q8Zp2xLmK4vT"
SMALL = OutputCaps(head_lines=3, head_bytes=60, tail_lines=4, tail_bytes=300, line_characters=20, spool_bytes=200)
pieces = st.lists(
    st.tuples(
        st.sampled_from(["stdout", "stderr"]),
        st.one_of(
            st.binary(max_size=40),
            st.sampled_from([b"\n", b"\r", b"\r\n", b"line\n", b"50%\r", b"\x1b[31m", "é€😀".encode(), b"x" * 50]),
            st.sampled_from([CANARY.encode()[:5], CANARY.encode()[5:], CANARY.encode()]),
        ),
    ),
    max_size=40,
)


def kept(*parts: bytes, caps: OutputCaps | None = None, spool: io.BytesIO | None = None) -> KeptOutput:
    output = CommandOutput(Masker([("CANARY", CANARY)]), caps=caps, spool=spool)
    for part in parts:
        output.feed("stdout", part)
    return output.finish()


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (b"", ""),
        (b"\n", ""),
        (b"one\ntwo\n", "one\ntwo"),
        (b"one\r\ntwo", "one\ntwo"),
        (b"a\n\nb\n", "a\n\nb"),
        (b"10%\r20%\r100%\ndone\n", "100%\ndone"),
        (b"10%\r20%\r", "20%"),
        (b"10%\r\r\n", "10%"),
        (b"\xff\xfe ok \xc3", "\ufffd\ufffd ok \ufffd"),
        (b"\x1b[31mred\x1b[0m \x07", "\\x1b[31mred\\x1b[0m \\x07"),
        ("\u202egnp.exe".encode(), "<U+202E>gnp.exe"),
        (b"a\tb", "a\tb"),
        (f"key {CANARY}!".encode(), "key [secret:CANARY]!"),
    ],
)
def test_lines_are_shown_as_they_end_up(written: bytes, shown: str) -> None:
    assert kept(written).text == shown
    assert kept(*(bytes([byte]) for byte in written)).text == shown


def test_the_middle_is_left_out_and_counted() -> None:
    lines = [f"line {number}\n".encode() for number in range(1, 101)]
    this = kept(*lines, caps=SMALL)
    note = f"[... 93 lines ({sum(map(len, lines[3:-4]))} bytes) left out ...]"
    assert this.text.splitlines() == ["line 1", "line 2", "line 3", note, "line 97", "line 98", "line 99", "line 100"]
    assert (this.total_lines, this.left_out_lines, this.total_bytes) == (100, 93, sum(map(len, lines)))
    assert kept(b"".join(lines), caps=SMALL) == this


def test_nothing_is_said_where_nothing_is_left_out() -> None:
    lines = "\n".join(f"line {number}" for number in range(7))
    assert kept(lines.encode(), caps=SMALL).text == lines


def test_a_long_line_is_cut_and_says_how_much_is_missing() -> None:
    assert kept(b"x" * 1_020, caps=SMALL).text == "x" * 20 + " [+1,000 characters]"


def test_the_streams_do_not_break_each_other_s_lines() -> None:
    output = CommandOutput(Masker())
    order: list[tuple[Stream, bytes]] = [
        *(
            ("stdout", b"com\xc3"),
            ("stderr", b"warn"),
            ("stdout", b"\xa9t\n"),
            ("stderr", b"ing\nlast"),
            ("stdout", b"x"),
        )
    ]
    for stream, data in order:
        output.feed(stream, data)
    assert output.finish().text == "comét\nwarning\nx\nlast"


@given(pieces)
def test_whatever_is_written_stays_within_the_caps_safe_and_without_secrets(
    parts: list[tuple[Stream, bytes]],
) -> None:
    spool = io.BytesIO()
    output = CommandOutput(Masker([("CANARY", CANARY)]), caps=SMALL, spool=spool)
    for stream, data in parts:
        output.feed(stream, data)
        assert len(output.latest(2).splitlines()) <= 2
        assert safe_text(output.latest(5)) == output.latest(5)
    this = output.finish()
    assert safe_text(this.text) == this.text
    assert CANARY not in this.text
    assert CANARY not in spool.getvalue().decode()
    assert len(this.text.encode()) <= SMALL.head_bytes + SMALL.tail_bytes + 60
    assert len(this.text.split("\n")) <= SMALL.head_lines + SMALL.tail_lines + 1
    assert len(spool.getvalue()) <= SMALL.spool_bytes
    assert this.total_bytes == sum(len(data) for _, data in parts)
    if this.left_out_lines == 0:
        assert len(this.text.split("\n")) == max(1, this.total_lines)
    else:
        assert f"[... {this.left_out_lines} line" in this.text


@given(st.lists(st.binary(max_size=30), max_size=20), st.lists(st.integers(min_value=0), max_size=20))
def test_how_the_bytes_are_cut_makes_no_difference(parts: list[bytes], cuts: list[int]) -> None:
    whole = b"\n".join(parts)
    places = [0, *sorted(cut % (len(whole) + 1) for cut in cuts), len(whole)]
    one, other = io.BytesIO(), io.BytesIO()
    pieces = [whole[start:end] for start, end in pairwise(places)]
    assert kept(*pieces, caps=SMALL, spool=one) == kept(whole, caps=SMALL, spool=other)
    assert one.getvalue() == other.getvalue()


def test_the_spool_has_all_of_it_masked_and_says_when_it_has_not() -> None:
    spool = io.BytesIO()
    assert kept(b"10%\r100%\n\x1b[m", CANARY.encode()[:6], CANARY.encode()[6:], spool=spool).spool_is_whole
    assert spool.getvalue() == b"10%\r100%\n\x1b[m[secret:CANARY]"
    spool = io.BytesIO()
    assert not kept(b"a" + "é".encode() * 150, caps=SMALL, spool=spool).spool_is_whole
    assert spool.getvalue() == b"a" + "é".encode() * 99  # 199 bytes: half a character is none


def test_halves_of_lines_from_both_streams_make_no_line_in_the_spool() -> None:
    spool = io.BytesIO()
    output = CommandOutput(Masker([("CANARY", CANARY)]), spool=spool)
    output.feed("stdout", CANARY[:5].encode())
    output.feed("stderr", CANARY[5:].encode())
    output.finish()
    assert spool.getvalue().decode() == f"{CANARY[:5]}\n{CANARY[5:]}"


def test_a_watcher_sees_the_last_lines_and_the_bar_that_is_being_drawn() -> None:
    output = CommandOutput(Masker())
    output.feed("stdout", b"one\ntwo\n 10%\r 20%\r")
    assert output.latest(2) == "two\n 20%"
    output.feed("stdout", b"done\n")
    assert output.latest(1) == "done"


def test_an_error_of_the_spool_is_not_kept_quiet() -> None:
    class Full(io.BytesIO):
        def write(self, _data: object, /) -> int:
            raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        kept(b"x\n", spool=Full())


@pytest.mark.parametrize("wrong", [{"tail_lines": 0}, {"head_bytes": -1}, {"tail_bytes": 200}, {"line_characters": 0}])
def test_caps_that_cannot_hold_a_line_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=re.escape("tail" if "tail_bytes" in wrong else "too small")):
        OutputCaps(**wrong)


@pytest.mark.parametrize(
    "unit", [b"y\n", b"x", b"50%\r", b"a line of ordinary length, as a compiler writes them: foo.c\n"]
)
def test_a_flood_is_taken_at_ten_megabytes_a_second_in_bounded_memory(unit: bytes) -> None:
    output = CommandOutput(Masker([("CANARY", CANARY)]))
    chunk = unit * (65_536 // len(unit))
    began = time.process_time()
    for _ in range(32):
        output.feed("stdout", chunk)
    seconds = time.process_time() - began
    tracemalloc.start()
    for _ in range(4):
        output.feed("stdout", chunk)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    output.finish()
    assert len(chunk) * 32 / seconds > 5_000_000  # 10 MB/s, and room for a machine that is busy
    assert peak < 8_000_000
