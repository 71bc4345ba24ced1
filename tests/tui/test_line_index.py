"""Heights with prefix sums, against a plain list."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.tui.line_index import LineIndex

HEIGHTS = st.lists(st.integers(min_value=0, max_value=40), max_size=70)
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 40), st.just(0)),
        st.tuples(st.just("set"), st.integers(0, 40), st.integers(0, 1000)),
        st.tuples(st.just("truncate"), st.integers(0, 80), st.just(0)),
    ),
    max_size=30,
)


def _agrees(index: LineIndex, heights: list[int]) -> None:
    assert len(index) == len(heights)
    assert [index[item] for item in range(len(heights))] == heights
    assert index.total == sum(heights)
    assert [index.top(item) for item in range(len(heights) + 1)] == [
        sum(heights[:item]) for item in range(len(heights) + 1)
    ]
    every = [(item, line) for item, height in enumerate(heights) for line in range(height)]
    assert [index.find(line) for line in range(index.total)] == every


@given(HEIGHTS)
def test_what_is_built_at_once_answers_like_a_list(heights: list[int]) -> None:
    _agrees(LineIndex(heights), heights)


@given(HEIGHTS, CHANGES)
def test_any_changes_leave_it_answering_like_a_list(heights: list[int], changes: list[tuple[str, int, int]]) -> None:
    index, plain = LineIndex(heights), list(heights)
    for what, value, where in changes:
        if what == "append":
            index.append(value)
            plain.append(value)
        elif what == "truncate":
            index.truncate(value)
            del plain[value:]
        elif plain:
            index.set(where % len(plain), value)
            plain[where % len(plain)] = value
    _agrees(index, plain)


@pytest.mark.parametrize("line", [-1, 3])
def test_a_line_that_no_item_has_is_an_error(line: int) -> None:
    with pytest.raises(IndexError, match="no line"):
        LineIndex([1, 2]).find(line)


def test_an_item_that_is_not_there_has_no_top() -> None:
    with pytest.raises(IndexError, match="no item 3"):
        LineIndex([1, 2]).top(3)


def test_an_empty_index_has_no_lines() -> None:
    index = LineIndex()
    assert (len(index), index.total, index.top(0)) == (0, 0, 0)
    with pytest.raises(IndexError):
        index.find(0)
