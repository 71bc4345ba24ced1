"""Which lines of two texts are the same."""

import time

from hypothesis import given
from hypothesis import strategies as st

from rune.tools.same_lines import Run, same_lines

LINES = st.lists(st.sampled_from("abcdefg"), max_size=14)


@given(LINES, LINES)
def test_runs_are_equal_lines_in_order_that_do_not_overlap(old: list[str], new: list[str]) -> None:
    at_old = at_new = 0
    for run in same_lines(old, new):
        assert run.size > 0
        assert at_old <= run.old
        assert at_new <= run.new
        assert old[run.old : run.old + run.size] == new[run.new : run.new + run.size]
        at_old, at_new = run.old + run.size, run.new + run.size


@given(LINES)
def test_a_text_is_the_same_as_itself(lines: list[str]) -> None:
    assert same_lines(lines, lines) == ([Run(0, 0, len(lines))] if lines else [])


def test_lines_that_moved_past_others_are_found_where_most_keep_their_order() -> None:
    assert same_lines(list("xabcdy"), list("xcabdy")) == [Run(0, 0, 1), Run(1, 2, 2), Run(4, 4, 2)]


def test_an_anchor_grows_over_lines_that_stand_several_times() -> None:
    assert same_lines(list("1-=-2"), list("3-=-4")) == [Run(1, 1, 3)]


def test_lines_that_are_all_alike_take_no_square_of_their_number() -> None:
    began = time.perf_counter()
    same_lines(["x"] * 40_000, ["y", *["x"] * 39_000, "z"])
    assert time.perf_counter() - began < 1
