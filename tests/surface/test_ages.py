"""How long ago something was."""

import pytest

from rune.records.times import milliseconds
from rune.surface.ages import age

NOW = milliseconds("2026-11-30T14:00:00.000Z")


@pytest.mark.parametrize(
    ("then", "said"),
    [
        ("2026-11-30T14:05:00.000Z", "just now"),
        ("2026-11-30T14:00:00.000Z", "just now"),
        ("2026-11-30T13:59:00.001Z", "just now"),
        ("2026-11-30T13:59:00.000Z", "1 min ago"),
        ("2026-11-30T13:00:00.001Z", "59 min ago"),
        ("2026-11-30T13:00:00.000Z", "1 h ago"),
        ("2026-11-29T14:00:00.001Z", "23 h ago"),
        ("2026-11-29T14:00:00.000Z", "1 day ago"),
        ("2026-11-16T14:00:00.000Z", "14 days ago"),
        ("2026-11-15T14:00:00.000Z", "2026-11-15"),
    ],
)
def test_an_age_is_said_in_the_largest_unit_that_says_something(then: str, said: str) -> None:
    assert age(then, NOW) == said


def test_what_has_no_time_is_undated() -> None:
    assert age("", 0) == "undated"
