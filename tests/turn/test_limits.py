"""The step limit: counters in, a decision out."""

from hypothesis import given
from hypothesis import strategies as st

from rune.records.turns import StopReason
from rune.turn.limits import Counters, GoOn, Stop, decide


@given(budget=st.integers(1, 200), used=st.integers(0, 400))
def test_a_turn_goes_on_exactly_while_it_has_steps_left(budget: int, used: int) -> None:
    decision = decide(Counters(iterations_used=used, iteration_budget=budget))
    if used < budget:
        assert decision == GoOn()
    else:
        assert isinstance(decision, Stop)
        assert decision.reason is StopReason.STEP_LIMIT
        assert str(budget) in decision.message


def test_a_call_is_counted() -> None:
    assert Counters(iteration_budget=3).after_call() == Counters(iterations_used=1, iteration_budget=3)
