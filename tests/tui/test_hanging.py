"""What is laid out in columns stays in columns where it is wrapped."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.text.safe_text import safe_text
from rune.tui.hanging import hanging
from rune.tui.lines import copied
from rune.tui.markdown.wrapping import TAB, expanded
from tests.tui.small_app import HOSTILE


def _rows(text: str, width: int) -> list[str]:
    return [line.text for line in hanging(text, width)]


def test_what_fits_is_as_it_was() -> None:
    text = "store    ok\n\n  disk   12 %\n                         far"
    assert _rows(text, 40) == text.split("\n")


def test_a_wrapped_line_goes_on_under_its_second_column() -> None:
    assert _rows("/model [NAME]  list the models, or choose the one that answers", 40) == [
        "/model [NAME]  list the models, or",
        "               choose the one that",
        "               answers",
    ]


def test_a_line_without_columns_goes_on_two_cells_deeper_than_it_began() -> None:
    assert _rows("  there is no model: start Ollama and pull one", 30) == [
        "  there is no model: start",
        "    Ollama and pull one",
    ]


def test_a_column_that_has_no_room_goes_below_and_is_indented() -> None:
    assert _rows("/resume [CONVERSATION]  list the conversations, or go on with one", 36) == [
        "/resume [CONVERSATION]",
        "  list the conversations, or go on",
        "  with one",
    ]


def test_lines_that_a_command_wrapped_below_a_column_move_with_it() -> None:
    text = "/resume [CONVERSATION]  list them, or go on\n                        with one of them\n/x  y"
    assert _rows(text, 36) == ["/resume [CONVERSATION]", "  list them, or go on", "  with one of them", "/x  y"]


def test_a_deep_indent_leaves_room_for_the_text() -> None:
    rows = _rows(" " * 60 + "words that have to go somewhere", 40)
    assert all(16 <= len(row) <= 40 for row in rows)


def test_tabs_are_columns_too() -> None:
    assert _rows("a\tthe first of the letters, as far as is known", 30) == [
        "a       the first of the",
        "        letters, as far as is",
        "        known",
    ]


def test_what_was_wrapped_is_copied_as_it_was() -> None:
    text = (
        "/resume [CONVERSATION]  list the conversations, or go on with one\n"
        "                        that was left some time ago, and more of it\n"
        "name  a text that is too long for the line it has here\n"
        "a sentence that is too long for the line it has here"
    )
    for width in (20, 30, 36, 50, 80):
        assert copied(hanging(text, width)) == text


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("width", [1, 2, 15, 16, 17, 18, 40])
def test_hostile_text_is_safe_and_fits(text: str, width: int) -> None:
    for line in hanging(f"{text}  {text}\n    {text}", width):
        assert safe_text(line.text, newlines=False, tabs=False) == line.text
        assert line.cells <= max(width, 2)


_LINE = st.lists(st.sampled_from(["word", "a-longer-word", " ", "  ", "     ", "\t", "漢字", "é", "0"]), max_size=14)


@given(st.lists(_LINE.map("".join), max_size=5).map("\n".join), st.integers(18, 60))
def test_nothing_is_lost_and_what_is_wrapped_is_never_at_the_edge(text: str, width: int) -> None:
    lines = hanging(text, width)
    assert all(line.cells <= width for line in lines)
    once = "\n".join(expanded(each, TAB).rstrip() for each in safe_text(text).split("\n"))
    assert copied(lines).split() == once.split()
    wrapped = [line for line in lines if line.continues is not None and not line.continues.startswith("\n")]
    assert all(line.gutter for line in wrapped)
