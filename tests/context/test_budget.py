import pytest

from rune.context.budget import MIN_WINDOW, budget_of
from rune.errors import WindowTooSmallError


@pytest.mark.parametrize(
    ("window", "reserve", "whole"),
    [(1024, 256, 717), (4096, 1024, 2868), (8192, 2048, 5735), (16384, 4096, 11469), (262144, 65536, 183501)],
)
def test_a_window_is_shared_out_as_the_design_says(window: int, reserve: int, whole: int) -> None:
    budget = budget_of(window)
    assert (budget.reserve, budget.input) == (reserve, whole)


def test_no_share_of_any_window_is_negative_and_none_exceeds_it() -> None:
    for window in range(MIN_WINDOW, 300_000, 997):
        budget = budget_of(window)
        assert 0 < budget.tail < budget.prefix < budget.input
        assert budget.input + budget.reserve < window
        assert window < 8192 or budget.reserve >= 2048


def test_tools_need_a_window_of_4096() -> None:
    assert not budget_of(4095).tools
    assert budget_of(4096).tools


def test_a_window_under_1024_is_refused_with_both_numbers() -> None:
    with pytest.raises(WindowTooSmallError) as caught:
        budget_of(1023)
    assert (caught.value.window, caught.value.needed) == (1023, 1024)
    assert "1,023" in caught.value.message
    assert caught.value.hint
