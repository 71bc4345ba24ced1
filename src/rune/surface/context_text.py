"""What a prompt was made of, as a person reads it, in at most `WIDTH` columns."""

import textwrap
from typing import Final

from rune.context.pressure import level_of
from rune.records.traces import DropReason, InferenceTraceRecord
from rune.surface.results import WIDTH
from rune.surface.rows import ContextUse
from rune.surface.share_bar import scale_text, share_bar

_BAR: Final = 16
_NAME: Final = 12

# In the order in which they stand in a prompt; what a later version adds stands before `history`.
_WHY_IN: Final = {
    "persona": "who Rune is; always first",
    "tools": "the tools on offer; always",
    "project": "this trusted project's instructions",
    "history": "what was said before",
    "rounds": "what this turn's tools gave",
    "user": "your message",
    "template": "the model's own format",
}
_WHY_OUT: Final[dict[DropReason, str]] = {
    "over_budget": "no room within the budget",
    "struck_by_owner": "you struck it",
    "history_trimmed": "the oldest leave first",
}


def use_of(trace: InferenceTraceRecord) -> ContextUse:
    """Return how full a run's last prompt was, its answer included where the server counted both."""
    last = trace.requests[-1].prompt_tokens_estimated if trace.requests else trace.prompt_tokens_estimated
    used, served = last, False
    # A server's figures are sums over a run: they are those of the last prompt when it was the only one.
    if trace.prompt_tokens_served is not None and trace.model_calls == 1:
        used, served = trace.prompt_tokens_served + (trace.output_tokens or 0), True
    return ContextUse(
        used=used,
        budget=trace.input_budget,
        window=trace.window,
        level=level_of(used, trace.input_budget, tool_calls=len(trace.tool_calls)),
        served=served,
    )


def context_text(trace: InferenceTraceRecord) -> str:
    """Return level and sizes, each block as a bar of the budget, what stayed out and why, and how the prefix held."""
    use = use_of(trace)
    share = round(100 * use.used / max(use.budget, 1))
    how = "counted by the server" if use.served else "estimated"
    lines = [
        f"{use.level}: {use.used:,} of {use.budget:,} tokens, {share} % ({how})",
        *_wrapped(f"window {use.window:,}, of which {use.budget:,} are for the prompt; {_model(trace)}"),
        "",
    ]
    if trace.per_block_tokens:
        lines.append(f"  {scale_text(trace.input_budget, _BAR)}")
    for name in sorted(trace.per_block_tokens, key=_place):
        tokens = trace.per_block_tokens[name]
        lines += _block(name, tokens, _WHY_IN.get(name, "recalled for your message"), trace.input_budget)
    if trace.dropped_blocks:
        lines += ["", "left out:"]
    for dropped in trace.dropped_blocks:
        count = len(dropped.message_ids)
        what = f"{count:,} message{'' if count == 1 else 's'}; " if count else ""
        lines += _row(dropped.name, "", dropped.tokens, what + _WHY_OUT[dropped.reason])
    if trace.degraded:
        lines += ["", *_wrapped(f"went on without: {', '.join(trace.degraded)}")]
    lines += ["", _reused(trace)]
    if trace.prefix_break:
        lines += _wrapped(f"it broke: {trace.prefix_break}")
    return "\n".join(lines)


def _model(trace: InferenceTraceRecord) -> str:
    return f"{trace.model} ({'remote' if trace.remote else 'local'})"


def _place(name: str) -> tuple[int, str]:
    order = list(_WHY_IN)
    return (order.index(name) if name in _WHY_IN else order.index("history") - 1, name)


def _block(name: str, tokens: int, why: str, budget: int) -> list[str]:
    return _row(name, share_bar(tokens, budget, _BAR), tokens, why)


def _row(name: str, bar: str, tokens: int, why: str) -> list[str]:
    short = name if len(name) <= _NAME else name[: _NAME - 1] + "…"
    head = f"  {short:<{_NAME}}  {bar:<{_BAR}}  {tokens:>9,}  "
    return _wrapped(why, head, " " * (2 + _NAME + 2 + _BAR + 2 + 9 + 2))


def _reused(trace: InferenceTraceRecord) -> str:
    if trace.prefix_reuse is None:
        return "prefix: this was the first request"
    return f"prefix: {100 * trace.prefix_reuse:.1f} % of the prompt before was sent again as it was"


def _wrapped(text: str, first: str = "", rest: str = "  ") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=rest, drop_whitespace=True, break_on_hyphens=False
    )
