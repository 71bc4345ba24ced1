"""Unified diffs as a person reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.tools.diffs import diff
from rune.tui.diffs import DiffRow, diff_rows, digits, drawn_rows, is_diff
from rune.tui.lines import STYLES, Line, copied
from tests.tui.small_app import HOSTILE, is_safe

OLD = "a\nb\n    total = 0\nc\nd\n"
NEW = "a\nb\n    total = Decimal(0)\nc\nd\n"


def lines(text: str, width: int = 80) -> tuple[Line, ...]:
    rows = diff_rows(text)
    return drawn_rows(rows, digits(rows), width)


def shown(text: str, width: int = 80) -> list[str]:
    return [each.text.rstrip() for each in lines(text, width)]


def marked(text: str) -> list[str]:
    return [span.text for each in lines(text) for span in each.spans if "changed" in span.style]


def test_each_line_has_its_number_and_its_sign() -> None:
    assert shown(diff(OLD, NEW, "src/cart.py").text) == [
        "src/cart.py",
        "@@ -1,5 +1,5 @@",
        "1   a",
        "2   b",
        "3 -     total = 0",
        "3 +     total = Decimal(0)",
        "4   c",
        "5   d",
    ]


def test_what_changed_within_a_line_is_marked() -> None:
    assert "".join(marked(diff(OLD, NEW, "a").text)) == "Decimal()"
    assert marked(diff("one word\n", "nothing alike at all!\n", "a").text) == []


def test_a_tab_that_becomes_spaces_is_seen_as_a_change() -> None:
    assert marked(diff("\tif x == 1:\n", "        if x == 1:\n", "a").text) == [" " * 8, " " * 8]


def test_a_line_of_a_file_cannot_pass_for_a_heading() -> None:
    text = diff("-- a/harmless\n", "++ b/harmless\n@@ -1 +1 @@\n", "real").text
    kinds = [row.kind for row in diff_rows(text)]
    assert kinds == ["file", "hunk", "removed", "added", "added"]


def test_a_new_file_and_one_that_goes_are_named_so() -> None:
    assert shown(diff(None, "x\n", "new.py").text)[0] == "new.py (new)"
    assert shown(diff("x\n", None, "old.py").text)[0] == "old.py (removed)"


def test_where_lines_were_left_out_no_number_is_claimed() -> None:
    text = diff("".join(f"{n}\n" for n in range(60)), "".join(f"{n}x\n" for n in range(60)), "a")
    rows = diff_rows(text.cut(12))
    place = next(at for at, row in enumerate(rows) if row.kind == "note")
    assert "left out" in rows[place].text
    assert all(row.number is not None for row in rows[2:place])
    assert all(row.number is None for row in rows[place + 1 :])


def test_several_files_and_words_between_them_are_shown_in_order() -> None:
    one, two = diff("a\n", "b\n", "one").text, diff("c\n", "d\n", "two").text
    text = f"changed:\n{one}{two}\nthat is all\n"
    kinds = [row.kind for row in diff_rows(text)]
    each = ["file", "hunk", "removed", "added"]
    assert kinds == ["text", *each, *each, "text", "text"]


def test_a_file_without_a_line_end_says_so() -> None:
    rows = shown(diff("a", "b", "x").text)
    assert rows.count("\\ No newline at end of file") == 2


@pytest.mark.parametrize("text", ["", "+++ b\n--- a\n", "--- a\n+++ b\nno hunk", "| a | b |\n|---|---|", "@@ -1 +1 @@"])
def test_other_texts_are_no_diffs(text: str) -> None:
    assert not is_diff(text)


def test_the_numbers_are_not_copied_and_a_wrapped_line_is_one_line() -> None:
    long = "x = " + "1 + " * 30 + "1"
    out = copied(lines(diff("", f"{long}\n", "a").text, 40))
    assert f"\n+ {long}" in out


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("width", [1, 7, 30, 80])
def test_hostile_text_is_made_visible_in_every_width(hostile: str, width: int) -> None:
    text = diff("a\n", f"{hostile}\n", hostile).text
    for each in lines(text, width):
        assert is_safe(each.text)
        assert each.cells <= width
        assert {name for span in each.spans for name in span.style.split()} <= set(STYLES)


def test_an_invisible_character_stands_out_from_one_that_was_written_so() -> None:
    real, written = (
        [span.style for span in each.spans if "x1b" in span.text]
        for each in lines(diff("", "a\x1bb\n\\x1b\n", "f").text)[2:]
    )
    assert real == ["inserted warning"]
    assert written == ["inserted"]


@given(st.text(max_size=60), st.text(max_size=60))
def test_every_line_of_a_diff_is_drawn_with_its_sign(old: str, new: str) -> None:
    made = diff(old, new, "f")
    rows = diff_rows(made.text)
    assert sum(row.kind == "added" for row in rows) == made.added
    assert sum(row.kind == "removed" for row in rows) == made.removed
    for row in rows:
        assert all(0 <= start < end <= len(row.text) for start, end in row.marks)


def test_rows_of_unlike_numbers_are_paired_as_far_as_they_go() -> None:
    text = diff("a = 1\nb = 2\n", "a = 10\nb = 20\nc = 30\n", "f").text
    assert "".join(marked(text)) == "1210" + "20"
    assert DiffRow("text", "x").marks == ()
