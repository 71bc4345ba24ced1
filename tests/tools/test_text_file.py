"""Bytes to text and back: encodings, line ends, what is no text."""

import codecs
import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.errors import InvalidArgumentsError
from rune.tools.line_ends import Change, changed, with_lf
from rune.tools.text_file import BinaryFile, Encoding, TextFile, decode


def text_file(data: bytes) -> TextFile:
    found = decode(data)
    assert isinstance(found, TextFile), found
    return found


@pytest.mark.parametrize(
    ("data", "encoding", "text"),
    [
        (b"", "utf-8", ""),
        (b"plain\n", "utf-8", "plain\n"),
        ("Zürich €\n".encode(), "utf-8", "Zürich €\n"),
        ("Zürich\n".encode("utf-8-sig"), "utf-8-bom", "Zürich\n"),
        (codecs.BOM_UTF8, "utf-8-bom", ""),
        (codecs.BOM_UTF16_LE + "Zürich 😀".encode("utf-16-le"), "utf-16-le", "Zürich 😀"),
        (codecs.BOM_UTF16_BE + "Zürich 😀".encode("utf-16-be"), "utf-16-be", "Zürich 😀"),
        ("Zürich, 18 €\n".encode("cp1252"), "cp1252", "Zürich, 18 €\n"),
        (b"caf\xe9 \x81\n", "latin-1", "café \x81\n"),
        ("größer, schöner, höher\n".encode() + b"\xff\n", "utf-8-damaged", "größer, schöner, höher\n\udcff\n"),
    ],
)
def test_an_encoding_is_told_by_rule(data: bytes, encoding: Encoding, text: str) -> None:
    found = text_file(data)
    assert (found.encoding, found.text) == (encoding, text)
    assert found.with_changes([]) == data


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\x00", "PNG image"),
        (gzip.compress(b"text", mtime=0), "gzip archive"),
        (b"\x7fELF\x02\x01\x00", "ELF program or library"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "WebP image"),
        (b"%PDF-1.7\n%\xe2\xe3\x00", "PDF document"),
        (codecs.BOM_UTF32_LE + "a".encode("utf-32-le"), "UTF-32 text"),
        (b"a\x00b", "unknown binary data"),
        (bytes(range(128, 256)) + b"\x01\x02", "unknown binary data"),
    ],
)
def test_what_is_no_text_says_its_size_and_what_it_seems_to_be(data: bytes, kind: str) -> None:
    found = decode(data)
    assert found == BinaryFile(len(data), kind)
    assert found.in_words == f"not a text file: {kind}, {len(data):,} bytes"


def test_what_is_unusual_is_said() -> None:
    assert text_file(b"a\n").in_words == "UTF-8"
    assert text_file("ü\r\na".encode("cp1252")).in_words == "Windows-1252, CRLF, no newline at the end"
    assert text_file(b"a\nb\r\n").in_words == "UTF-8, mixed line ends"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_new_lines_end_as_those_of_the_file(end: str) -> None:
    file = text_file(f"one{end}two{end}".encode())
    assert file.text == "one\ntwo\n"
    assert file.with_changes([Change(4, 7, "2\n2b")]) == f"one{end}2{end}2b{end}".encode()
    assert file.with_text("one\nmore\ntwo\n") == f"one{end}more{end}two{end}".encode()


def test_mixed_line_ends_are_kept_line_by_line_and_a_new_line_ends_as_the_one_before() -> None:
    file = text_file(b"a\r\nb\nc\rd\r\n")
    assert (file.text, file.line_ends) == ("a\nb\nc\nd\n", "mixed")
    assert file.with_text("a\nb\nnew\nc\nd\n") == b"a\r\nb\nnew\nc\rd\r\n"
    assert file.with_text("new\na\nb\nc\nD\n") == b"new\r\na\r\nb\nc\rD\r\n"
    assert file.with_changes([Change(2, 6, "B\nx\nc\n")]) == b"a\r\nB\r\nx\r\nc\rd\r\n"


def test_a_final_newline_is_there_when_it_was() -> None:
    assert text_file(b"a\nb").with_changes([Change(0, 1, "x")]) == b"x\nb"
    assert text_file(b"a\nb\n").with_changes([Change(2, 3, "x")]) == b"a\nx\n"


def test_ends_that_would_become_one_stay_two() -> None:
    file = text_file(b"a\rb\nc\r\n")
    assert text_file(file.with_changes([Change(2, 3, "")])).text == "a\n\nc\n"


@pytest.mark.parametrize(
    ("data", "new", "said"),
    [
        ("ü\n".encode("cp1252"), "日", "Windows-1252"),
        (b"a\n", "\0", "zero byte"),
        (b"a\n", "\ud800", "U+D800"),
    ],
)
def test_what_the_file_cannot_hold_is_refused(data: bytes, new: str, said: str) -> None:
    with pytest.raises(InvalidArgumentsError, match=said.replace("+", r"\+")):
        text_file(data).with_changes([Change(0, 0, new)])


def test_changes_that_overlap_are_an_error_of_the_caller() -> None:
    with pytest.raises(ValueError, match="overlap"):
        text_file(b"abc").with_changes([Change(0, 2, ""), Change(1, 3, "")])


def test_a_large_file_with_mixed_ends_is_written_again_in_little_time() -> None:
    lines = [f"line {number % 50}" + ("\r\n" if number % 3 else "\n") for number in range(50_000)]
    file = text_file("".join(lines).encode())
    assert file.with_text(file.text.replace("line 7\n", "other\n")).count(b"\r\n") >= 30_000


SOME_BYTES = st.one_of(
    st.binary(max_size=60),
    st.lists(st.sampled_from([b"a", b"\r", b"\n", b"\xe9", b"\x80", "é".encode(), b"\xef\xbb\xbf", b"\xff\xfe"])).map(
        b"".join
    ),
    st.text().map(lambda text: codecs.BOM_UTF16_LE + text.encode("utf-16-le", "surrogatepass")),
)


@given(SOME_BYTES)
def test_any_bytes_are_the_same_after_reading_and_writing(data: bytes) -> None:
    found = decode(data)
    if isinstance(found, TextFile):
        assert found.with_changes([]) == data
        assert found.with_text(found.text) == data
        assert "\r" not in found.text
    else:
        assert found.size == len(data)


RAW = st.lists(st.sampled_from(["a", "b", "\n", "\r\n", "\r", "ü"])).map("".join)
NEW = st.lists(st.sampled_from(["a", "x", "\n", "ü"])).map("".join)


@given(RAW, st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), NEW), max_size=3))
def test_changes_give_the_text_that_they_say_and_touch_nothing_else(
    raw: str, wanted: list[tuple[int, int, str]]
) -> None:
    file = text_file(raw.encode())
    changes: list[Change] = []
    at = 0
    for gap, length, text in wanted:
        start = min(at + gap, len(file.text))
        at = min(start + length, len(file.text))
        changes.append(Change(start, at, text))
    after = file.with_changes(changes).decode()
    assert with_lf(after) == changed(file.text, changes)
    if changes:
        before = file.text[: changes[0].start]
        assert after.startswith(raw[: len(before)] if "\r" not in raw else _raw_of(raw, len(before)))


def _raw_of(raw: str, characters: int) -> str:
    """Return the beginning of a raw text that has so many characters with LF ends."""
    end = 0
    for _ in range(characters):
        end += 2 if raw[end : end + 2] == "\r\n" else 1
    return raw[:end]


@given(RAW, NEW)
def test_another_text_is_what_is_read_afterwards(raw: str, new: str) -> None:
    assert text_file(text_file(raw.encode()).with_text(new)).text == new
