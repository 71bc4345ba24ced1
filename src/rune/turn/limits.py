"""Whether a turn goes on: counters in, a decision with its reason out. Pure."""

import msgspec

from rune.records.turns import StopReason


class Counters(msgspec.Struct, frozen=True, kw_only=True):
    """How far a turn has come. `iterations` counts model calls."""

    iterations_used: int = 0
    iteration_budget: int = 24

    def after_call(self) -> "Counters":
        """Return the counters after one more model call."""
        return Counters(iterations_used=self.iterations_used + 1, iteration_budget=self.iteration_budget)

    def resumed(self, used: int, budget: int) -> "Counters":
        """Return the counters of a turn that goes on with a paused one: what was used there stays used."""
        return Counters(iterations_used=used, iteration_budget=max(budget, 1))


class GoOn(msgspec.Struct, frozen=True):
    """The next model call may be made."""


class Stop(msgspec.Struct, frozen=True):
    """The turn ends, for this reason."""

    reason: StopReason
    message: str


def decide(counters: Counters) -> GoOn | Stop:
    """Decide before each model call (tools.md, The loop)."""
    if counters.iterations_used >= counters.iteration_budget:
        return Stop(StopReason.STEP_LIMIT, f"the limit of {counters.iteration_budget} steps is reached")
    return GoOn()
