"""What a model call cost, as the server reported it."""

from rune.records.record import Record


class Usage(Record, frozen=True, kw_only=True):
    """Token counts and model time of one or more calls. None means: the server did not say; never 0."""

    calls: int = 0
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    model_time_ms: int | None = None

    def plus(self, other: "Usage") -> "Usage":
        """Return the sum; a figure that only one side knows is that side's."""
        return Usage(
            calls=self.calls + other.calls,
            prompt_tokens=_sum(self.prompt_tokens, other.prompt_tokens),
            cached_tokens=_sum(self.cached_tokens, other.cached_tokens),
            output_tokens=_sum(self.output_tokens, other.output_tokens),
            model_time_ms=_sum(self.model_time_ms, other.model_time_ms),
        )


def _sum(left: int | None, right: int | None) -> int | None:
    if left is None:
        return right
    return left if right is None else left + right
