"""Which level a context has, at and around every limit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.context.pressure import Level, level_of

ORDER: list[Level] = ["green", "yellow", "orange", "red"]


@pytest.mark.parametrize(
    ("used", "level"),
    [
        (0, "green"),
        (599, "green"),
        (600, "yellow"),
        (749, "yellow"),
        (750, "orange"),
        (899, "orange"),
        (900, "red"),
        (1000, "red"),
        (2000, "red"),
    ],
)
def test_a_level_begins_at_its_share_of_the_budget(used: int, level: Level) -> None:
    assert level_of(used, 1000) == level


@pytest.mark.parametrize(
    ("calls", "level"),
    [(49, "green"), (50, "yellow"), (79, "yellow"), (80, "orange"), (119, "orange"), (120, "red"), (500, "red")],
)
def test_a_level_begins_at_its_number_of_tool_calls(calls: int, level: Level) -> None:
    assert level_of(0, 1000, tool_calls=calls) == level


@pytest.mark.parametrize(
    ("calls", "level"),
    [(39, "green"), (40, "yellow"), (64, "yellow"), (65, "orange"), (99, "orange"), (100, "red")],
)
def test_from_the_third_long_read_on_fewer_calls_count(calls: int, level: Level) -> None:
    assert level_of(0, 1000, tool_calls=calls, long_reads=3) == level
    assert level_of(0, 1000, tool_calls=39, long_reads=2) == "green"
    assert level_of(0, 1000, tool_calls=49, long_reads=2) == "green"


def test_the_worse_signal_decides() -> None:
    assert level_of(760, 1000, tool_calls=50) == "orange"
    assert level_of(610, 1000, tool_calls=120) == "red"


def test_a_share_at_a_limit_is_not_rounded_away() -> None:
    # 0.6 of 16,385 tokens is 9,831: in fractions of two it comes out a little more.
    assert level_of(9831, 16385) == "yellow"
    assert level_of(9830, 16385) == "green"


def test_a_budget_of_nothing_is_full() -> None:
    assert level_of(0, 0) == "red"


@given(st.integers(0, 10**6), st.integers(1, 10**6), st.integers(0, 300), st.integers(0, 5))
def test_more_is_never_a_better_level(used: int, budget: int, calls: int, reads: int) -> None:
    now = ORDER.index(level_of(used, budget, tool_calls=calls, long_reads=reads))
    for more in (
        level_of(used + 1, budget, tool_calls=calls, long_reads=reads),
        level_of(used, budget, tool_calls=calls + 1, long_reads=reads),
        level_of(used, budget, tool_calls=calls, long_reads=reads + 1),
    ):
        assert ORDER.index(more) >= now
