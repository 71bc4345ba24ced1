"""Tables: aligned where they fit, wrapped where they nearly do, listed where they do not."""

from hypothesis import given
from hypothesis import strategies as st

from rune.tui.markdown.render import document
from tests.tui.markdown.writing import WIDTHS

SOURCE = "| Name | Size | Note |\n|:--|--:|:-:|\n| a | 1 | one two three |\n| 你好 | 22 | x |\n"
CELLS = st.sampled_from(
    ["", "a", "two words", "x" * 30, "你好", "**b** `c`", "a\\|b", "👨\u200d👩\u200d👧", "[t](http://u)"]
)


def told(source: str, width: int) -> list[str]:
    return [line.text.rstrip() for line in document(source, width)]


def test_columns_are_aligned_by_cells() -> None:
    assert told(SOURCE, 40) == [
        "Name │ Size │     Note",
        "─────┼──────┼──────────────",
        "a    │    1 │ one two three",
        "你好 │   22 │       x",
    ]


def test_cells_are_wrapped_where_the_row_is_too_wide() -> None:
    assert told(SOURCE, 22) == [
        "Name │ Size │   Note",
        "─────┼──────┼─────────",
        "a    │    1 │ one two",
        "     │      │  three",
        "你好 │   22 │    x",
    ]


def test_where_columns_find_no_room_each_cell_has_a_line() -> None:
    assert told(SOURCE, 13) == [
        "Name: a",
        "Size: 1",
        "Note: one two",
        "three",
        "─────────────",
        "Name: 你好",
        "Size: 22",
        "Note: x",
    ]


def test_a_long_table_has_one_head() -> None:
    lines = told("| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 100, 20)
    assert lines == ["a │ b", "──┼──", *["1 │ 2"] * 100]


@given(st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=1, max_size=5), WIDTHS)
def test_no_row_is_too_wide(rows: list[list[str]], width: int) -> None:
    source = "|a|b|c|\n|-|:-:|-:|\n" + "\n".join(f"|{'|'.join(row)}|" for row in rows)
    assert all(line.cells <= width for line in document(source, width))
