"""Traces as a person reads them."""

from collections.abc import Sequence

from rune.records.traces import InferenceTraceRecord
from rune.surface.results import table
from rune.surface.share_bar import scale_text, share_bar

BAR = 20


def trace_list(traces: Sequence[InferenceTraceRecord]) -> str:
    """Return one line a trace, newest first."""
    if not traces:
        return "no model call was traced yet"
    rows = [
        (
            trace.id,
            f"{trace.model} (remote)" if trace.remote else trace.model,
            "turn" if trace.kind == "conversation" else ", ".join(trace.per_block_tokens),
            trace.stop_reason,
            f"{trace.prompt_tokens_estimated:,} of {trace.window:,}",
            number(trace.output_tokens),
            milliseconds(trace.latency_ms),
        )
        for trace in traces
    ]
    return table(rows, ("trace", "model", "for", "ended", "prompt (est.)", "output", "time"))


def trace_text(trace: InferenceTraceRecord) -> str:
    """Return one trace: what entered, what did not, and what it cost."""
    where = "remote" if trace.remote else "local"
    lines = [
        f"{trace.id}  {trace.model} ({trace.provider}, {where})  {trace.stop_reason}"
        + (f"   side call: {', '.join(trace.per_block_tokens)}" if trace.kind == "side" else ""),
        f"window {trace.window:,}   budget {trace.input_budget:,}   model calls {trace.model_calls}",
        f"prompt {trace.prompt_tokens_estimated:,} estimated, {number(trace.prompt_tokens_served)} served, "
        f"{number(trace.cached_tokens)} cached   output {number(trace.output_tokens)}",
        f"first token {milliseconds(trace.first_token_ms)}   whole {milliseconds(trace.latency_ms)}   "
        f"model {milliseconds(trace.model_time_ms)}",
        f"prefix reuse {'first request' if trace.prefix_reuse is None else f'{trace.prefix_reuse:.3f}'}"
        + (f"   break: {trace.prefix_break}" if trace.prefix_break else ""),
        *_asked(trace),
        "",
    ]
    if trace.per_block_tokens:
        lines.append(f"  {scale_text(trace.input_budget, BAR)}")
    width = max((len(name) for name in trace.per_block_tokens), default=0)
    for name, tokens in trace.per_block_tokens.items():
        lines.append(f"  {name.ljust(width)}  {share_bar(tokens, trace.input_budget, BAR):<{BAR}}  {tokens:,}")
    for dropped in trace.dropped_blocks:
        what = f" ({len(dropped.message_ids)} messages)" if dropped.message_ids else ""
        lines.append(f"  {dropped.name}{what} left out: {dropped.reason}, {dropped.tokens:,} tokens")
    if trace.degraded:
        lines.append(f"  went on without: {', '.join(trace.degraded)}")
    if trace.error:
        lines.append(f"  error: {trace.error}")
    return "\n".join(lines)


def _asked(trace: InferenceTraceRecord) -> list[str]:
    """Return a line for what was asked of the answers besides the prompt, if anything was."""
    requests = trace.requests
    asked = ["held to a schema"] if any(recipe.format for recipe in requests) else []
    for word, values in (
        ("thinking", [recipe.think for recipe in requests]),
        ("temperature", [recipe.temperature for recipe in requests]),
    ):
        named = dict.fromkeys(f"{value}" for value in values if value is not None)
        asked += [f"{word} {', '.join(named)}"] if named else []
    return [f"asked for: {', '.join(asked)}"] if asked else []


def number(value: int | None) -> str:
    """Return a count, or that nobody gave one."""
    return "unknown" if value is None else f"{value:,}"


def milliseconds(value: int | None) -> str:
    """Return a time, or that nobody measured it."""
    return "unknown" if value is None else f"{value:,} ms"
