"""Texts and rows are cut to the cells there are, and what matters most is left."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from rune.text.safe_text import SafeText, safe_text
from rune.tui.fit import cut, cut_line, cut_middle, flowing, foreign, narrowed, spread
from rune.tui.lines import Span, line
from tests.tui.small_app import HOSTILE, is_safe


@pytest.mark.parametrize(
    ("text", "cells", "kept"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("漢字漢字", 5, "漢字…"),
        ("漢字漢字", 4, "漢…"),
        ("abc", 1, "…"),
        ("abc", 0, ""),
    ],
)
def test_a_text_is_cut_at_its_end(text: str, cells: int, kept: str) -> None:
    assert cut(SafeText(text), cells) == kept


@pytest.mark.parametrize(
    ("text", "cells", "kept"), [("abcdefg", 5, "ab…fg"), ("漢字漢字漢", 6, "漢…字"), ("ab", 2, "ab")]
)
def test_a_text_is_cut_in_its_middle(text: str, cells: int, kept: str) -> None:
    assert cell_len(cut_middle(SafeText(text), cells)) <= cells
    assert cut_middle(SafeText("abcdefg"), 5) == "ab…fg"
    assert kept[0] == cut_middle(SafeText(text), cells)[0]


def test_an_emoji_is_not_cut_in_two() -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    for cells in range(8):
        assert is_safe(cut(safe_text(family * 3), cells))


@given(text=st.text(), cells=st.integers(-2, 40))
def test_any_text_is_safe_and_fits(text: str, cells: int) -> None:
    for shown in (
        foreign(text, cells),
        flowing(text, cells),
        cut_middle(safe_text(text, newlines=False, tabs=False), cells),
    ):
        assert cell_len(shown) <= max(cells, 0)
        assert is_safe(shown)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_fits(text: str) -> None:
    for cells in range(30):
        assert cell_len(foreign(text, cells)) <= cells


@given(texts=st.lists(st.text(max_size=12), max_size=4), cells=st.integers(1, 30))
def test_any_line_fits(texts: list[str], cells: int) -> None:
    whole = line(*(Span(safe_text(text, newlines=False, tabs=False)) for text in texts))
    short = cut_line(whole, cells)
    assert short.cells <= cells
    assert short == whole if whole.cells <= cells else short.text.endswith("…")


def test_a_row_reaches_from_edge_to_edge() -> None:
    row = spread([Span(SafeText("left"))], [Span(SafeText("right"))], 20)
    assert row.text == "left           right"


def test_parts_go_in_the_order_that_is_given_and_only_as_far_as_needed() -> None:
    def forms(*texts: str) -> tuple[tuple[Span, ...], ...]:
        return tuple((Span(SafeText(text)),) if text else () for text in texts)

    parts = {"a": forms("aaaa", "a"), "b": forms("bbbb", "bb", "")}
    fitting = narrowed(parts, ("b", "a", "b"), 7)
    assert ["".join(span.text for span in fitting[name]) for name in "ab"] == ["aaaa", "bb"]
    fitting = narrowed(parts, ("b", "a", "b"), 1)
    assert ["".join(span.text for span in fitting[name]) for name in "ab"] == ["a", ""]
