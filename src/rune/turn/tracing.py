"""Builds a run's trace from what broker and transport measured; measures nothing itself."""

import msgspec

from rune.context.blocks import ContextTrace
from rune.context.render import evidence_id
from rune.models.transport import ChatRequest
from rune.records.traces import InferenceTraceRecord
from rune.records.turns import StopReason
from rune.turn.flight import Flight
from rune.turn.outcome import Outcome

ERROR_LENGTH = 300
_GOOD = (StopReason.ANSWERED, StopReason.PAUSED)


def as_asked(trace: ContextTrace, request: ChatRequest) -> ContextTrace:
    """Return what was decided about a prompt with what the request besides asks of its answer."""
    recipe = msgspec.structs.replace(trace.recipe, think=request.think, temperature=request.temperature)
    if request.format is None:
        return msgspec.structs.replace(trace, recipe=recipe)
    schema = evidence_id(request.format)
    recipe = msgspec.structs.replace(recipe, format=schema)
    return msgspec.structs.replace(trace, recipe=recipe, blobs={**trace.blobs, schema: request.format})


def build_trace(flight: Flight, outcome: Outcome, trace_id: str) -> InferenceTraceRecord:
    """Return the record of one run (context.md, Traces). The flight has a model and at least one request."""
    if flight.model is None or not flight.traces:
        raise ValueError("a run without a model call has no trace")
    run, last = flight.model, flight.traces[-1][1]
    usage = run.usage
    traces = [trace for _, trace in flight.traces]
    return InferenceTraceRecord(
        id=trace_id,
        kind="conversation",
        provider=run.info.provider,
        model=run.info.name,
        remote=run.info.remote,
        turn_id=flight.turn_id,
        task_id=flight.task.id if flight.task else None,
        conversation_id=flight.conversation.id if flight.conversation else None,
        window=last.window,
        num_ctx=run.num_ctx,
        input_budget=last.input_budget,
        model_calls=len(traces),
        prompt_tokens_estimated=sum(trace.recipe.prompt_tokens_estimated for trace in traces),
        prompt_tokens_served=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        output_tokens=usage.output_tokens,
        latency_ms=run.latency_ms,
        first_token_ms=run.first_token_ms,
        model_time_ms=usage.model_time_ms,
        per_block_tokens=dict(last.per_block_tokens),
        dropped_blocks=tuple(dropped for trace in traces for dropped in trace.dropped),
        prefix_reuse=traces[0].prefix_reuse,
        prefix_break=next((trace.prefix_break for trace in traces if trace.prefix_break), None),
        degraded=tuple(flight.degraded),
        stop_reason=outcome.reason.value,
        success=outcome.reason in _GOOD,
        error=outcome.error[:ERROR_LENGTH],
        requests=tuple(trace.recipe for trace in traces),
    )
