"""A bar's marks mean what the sentence above it says."""

from hypothesis import given
from hypothesis import strategies as st

from rune.surface.share_bar import scale_text, share_bar
from rune.surface.trace_text import trace_text
from tests.surface.test_context_text import traced


def test_each_begun_part_of_the_budget_has_a_mark() -> None:
    assert [len(share_bar(tokens, 6000, 16)) for tokens in (0, 1, 375, 376, 6000, 60_000)] == [0, 1, 1, 2, 16, 16]
    assert scale_text(6000, 16) == "each # is up to 375 tokens, 1/16 of the budget"


@given(st.integers(0, 10**9), st.integers(-5, 10**9), st.integers(1, 40))
def test_a_bar_fits_and_what_is_there_shows(tokens: int, budget: int, cells: int) -> None:
    assert (1 if tokens else 0) <= len(share_bar(tokens, budget, cells)) <= cells


def test_a_trace_says_what_its_bars_mean_and_only_where_there_are_any() -> None:
    lines = trace_text(traced(per_block_tokens={"user": 600})).splitlines()
    at = lines.index("  each # is up to 300 tokens, 1/20 of the budget")
    assert lines[at + 1].split() == ["user", "##", "600"]
    assert "#" not in trace_text(traced(per_block_tokens={}))
