"""Lines of so many cells: nothing too wide, nothing torn, nothing lost."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from rune.text.safe_text import SafeText, safe_text
from rune.tui.lines import Span, copied
from rune.tui.markdown import wrapping
from rune.tui.markdown.wrapping import TOO_WIDE, expanded, is_narrow, plain, wrapped
from tests.tui.markdown.writing import TEXTS, WIDTHS

ONE_LINE = TEXTS.map(lambda text: expanded(safe_text(text, newlines=False), 8))
FAMILY = "👨\u200d👩\u200d👧"


def told(text: str, width: int, *, chop: bool = False) -> list[str]:
    return [line.text for line in wrapped([Span(SafeText(text))], width, chop=chop)]


@given(ONE_LINE, WIDTHS, st.booleans(), st.integers(0, 40))
@example("     x", 3, False, 0)
@example("a      ", 3, False, 2)
@example("x\u00a0\u00a0\u00a0y", 2, True, 1)
def test_no_line_is_too_wide_and_nothing_is_lost(text: str, width: int, chop: bool, cut: int) -> None:
    pieces = [Span(safe_text(text[:cut]), "code"), Span(safe_text(text[cut:]), "link")]
    lines = wrapped(pieces, width, chop=chop)
    for line in lines:
        assert line.cells <= width
        assert all(span.text and span.text == safe_text(span.text) for span in line.spans)
    whole = "".join(piece.text for piece in pieces)
    if not any(TOO_WIDE in line.text for line in lines):
        assert copied(lines) == whole.rstrip()


@pytest.mark.parametrize(
    "cluster",
    [FAMILY, "e\u0301", "🇩🇪", "👍🏽", "❤\ufe0f", "1\ufe0f\u20e3", "क्\u200dष", "ی\u200cخ", "น้ำ", "\u1112\u1161"],
)
@given(width=st.integers(3, 9), before=st.integers(0, 9))
def test_a_character_is_never_torn(cluster: str, width: int, before: int) -> None:
    lines = wrapped([Span(SafeText("x" * before + cluster * 4))], width, chop=True)
    assert "".join(line.text.strip("x").replace(cluster, "") for line in lines) == ""
    assert all(line.cells <= width for line in lines)


@given(st.integers(1, 30))
def test_a_style_that_ends_within_a_character_ends_after_it(width: int) -> None:
    pieces = [Span(SafeText("a\u4f60e"), "code"), Span(SafeText("\u0301b"), "link")]
    spans = [span for line in wrapped(pieces, width) for span in line.spans]
    assert all(unicodedata.category(span.text[0]) != "Mn" for span in spans)


def test_what_is_counted_as_narrow_is_and_joins_nothing() -> None:
    follows = wrapping._follows  # pyright: ignore[reportPrivateUsage]  # a table that has no other door
    for char in map(chr, range(0x3000)):
        if is_narrow(char) and char >= " " and unicodedata.category(char)[0] != "C":
            assert cell_len(char) == 1, hex(ord(char))
            assert char == " " or not follows(char), hex(ord(char))


def test_what_is_counted_as_wide_is_and_joins_nothing() -> None:
    follows = wrapping._follows  # pyright: ignore[reportPrivateUsage]  # a table that has no other door
    wide = wrapping._simple_wide()  # pyright: ignore[reportPrivateUsage]  # a table that has no other door
    for char in map(chr, range(0x2000, 0x10000)):
        if wide.fullmatch(char) and unicodedata.category(char)[0] != "C":
            assert cell_len(char) == 2, hex(ord(char))
            assert not follows(char), hex(ord(char))


def test_lines_end_at_words_and_spaces_go_with_the_break() -> None:
    assert told("one two  three", 8) == ["one two", "three"]
    assert told("one two", 7) == ["one two"]
    assert told("longword", 3) == ["lon", "gwo", "rd"]
    assert told("über zwölf Straßen", 10) == ["über zwölf", "Straßen"]
    assert told("one two", 5, chop=True) == ["one t", "wo"]


def test_writing_without_spaces_is_broken_between_characters_but_not_before_a_stop() -> None:
    assert told("你好世界你好", 8) == ["你好世界", "你好"]
    assert told("你好世界。好", 8) == ["你好世", "界。好"]


def test_what_is_wider_than_the_room_is_marked() -> None:
    assert told("a你b", 1) == ["a", TOO_WIDE, "b"]


@given(TEXTS, WIDTHS, st.booleans())
@example("  a   b\n\n   c", 4, True)
def test_plain_text_comes_back(text: str, width: int, labelled: bool) -> None:
    first, rest = Span(SafeText("you  "), "you"), Span(SafeText("     "))
    lines = plain(text, width, "dim", first=first, rest=rest) if labelled else plain(text, width, "dim")
    assert all(line.cells <= width for line in lines)
    if not any(TOO_WIDE in line.text for line in lines) and not (labelled and width < 6):
        assert copied(lines) == "\n".join(expanded(line, 8).rstrip() for line in safe_text(text).split("\n"))


def test_tabs_go_to_the_next_stop_by_cells() -> None:
    assert expanded("a\tb", 8) == "a       b"
    assert expanded("你\tb", 4) == "你  b"


@pytest.mark.parametrize("width", [-3, 0, 1])
def test_no_room_at_all_counts_as_one_cell(width: int) -> None:
    assert [line.text for line in plain("ab", width)] == ["a", "b"]
