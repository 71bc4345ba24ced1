"""One model call of a turn: the prompt goes out, and what comes is shown, counted and kept."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

import msgspec

from rune.context.blocks import Capsule
from rune.errors import ContextTruncatedError, EmptyOutputError, ModelError, ProtocolError, UnusableCallError
from rune.host.clock import Clock
from rune.host.ids import IdSource
from rune.models.text_tools.acting import acting
from rune.models.text_tools.constrained import constrained_request, think_before
from rune.models.text_tools.second_try import is_lost_call
from rune.models.transport import (
    ChatChunk,
    ChatRequest,
    Completed,
    CompletionReason,
    LoadOptions,
    Progress,
    TextDelta,
    ThinkingDelta,
    ToolCallReady,
)
from rune.records.models import ActionProtocol
from rune.records.tools import ToolCall, ToolSchema
from rune.records.usage import Usage
from rune.text.storable import storable
from rune.turn import events as shown
from rune.turn.flight import Answer, Flight, ModelRun
from rune.turn.guarded import guarded
from rune.turn.recorder import new_answer
from rune.turn.session import Session
from rune.turn.tracing import as_asked

# The longest answer, in characters: all that the window could hold, and never less than a long text.
CHARACTERS_A_TOKEN = 8
LEAST_LIMIT = 1_000_000

MOST_CALLS = 128
"""Of one answer: nobody means so many, and none of them is carried out when there are more."""

BREATH_SECONDS = 0.004


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """What a model may do next. `tools` are those it can call now, and `answer` says whether it may answer; both hold
    it under the constrained protocol, under the native one it is believed. `temperature` None: as it is set.
    """

    tools: Sequence[ToolSchema]
    protocol: ActionProtocol
    answer: bool = True
    temperature: float | None = None


class Asking:
    """Asks models. `mask` takes secrets out of what they want to have stored."""

    def __init__(self, *, clock: Clock, ids: IdSource, mask: Callable[[str], str]) -> None:
        self._clock = clock
        self._ids = ids
        self._mask = mask

    async def ask(
        self, flight: Flight, session: Session, run: ModelRun, capsule: Capsule, offer: Offer
    ) -> CompletionReason:
        """Stream one answer into the flight; returns why the model stopped. Raises ModelError."""
        flight.counters = flight.counters.after_call()
        counted = flight.counters
        flight.emit(
            shown.StepTaken(turn_id=flight.turn_id, used=counted.iterations_used, budget=counted.iteration_budget)
        )
        answer = flight.answer = new_answer(self._ids)
        flight.secretive, flight.unusable = set(), {}
        request = self._chat_request(run, capsule, offer)
        decided = flight.traces[-1][1]
        flight.traces[-1] = (capsule, as_asked(decided, request))
        served = _ends_noted(run.transport.chat(request), session, run, answer, request)
        started, spent = self._clock.monotonic(), run.usage
        try:
            return await self._stream(flight, run, answer, served, offer)
        except ModelError as error:
            if run.usage is spent and (cost := _cost(error)) is not None:
                run.usage = spent.plus(cost)
                answer.usage = cost
                run.estimated, run.read = request.estimated, cost.prompt_tokens
            if offer.tools and is_lost_call(error, protocol=offer.protocol):
                run.calls.failed += 1
            raise
        finally:
            run.latency_ms = (run.latency_ms or 0) + self._since(started)

    def _chat_request(self, run: ModelRun, capsule: Capsule, offer: Offer) -> ChatRequest:
        request = ChatRequest(
            model=run.info.name,
            messages=capsule.messages,
            tools=capsule.tools,
            options=LoadOptions(num_ctx=run.num_ctx),
            estimated=capsule.estimated,
            think=run.think,
            temperature=offer.temperature,
        )
        if offer.protocol == "constrained":
            think = think_before(run.info, run.think)
            request = constrained_request(request, offer.tools, answer=offer.answer, think=think)
        return request

    async def _stream(
        self, flight: Flight, run: ModelRun, answer: Answer, served: AsyncGenerator[ChatChunk, None], offer: Offer
    ) -> CompletionReason:
        started = breath = self._clock.monotonic()
        async with aclosing(acting(served, tools=offer.tools, protocol=offer.protocol)) as chunks:
            async for chunk in chunks:
                if run.first_token_ms is None and isinstance(chunk, TextDelta | ThinkingDelta | ToolCallReady):
                    run.first_token_ms = self._since(started)
                if (done := self._take(flight, run, answer, chunk, offer)) is not None:
                    return done
                if self._clock.monotonic() - breath > BREATH_SECONDS:
                    # A burst of tokens comes without a pause; keys, signals and painting must get their turn.
                    await asyncio.sleep(0)
                    breath = self._clock.monotonic()
        raise ProtocolError(f"{run.info.provider} ended its stream without an end or an error")

    def _take(
        self, flight: Flight, run: ModelRun, answer: Answer, chunk: ChatChunk, offer: Offer
    ) -> CompletionReason | None:
        match chunk:
            case TextDelta(text=given):
                text = storable(given)
                answer.text.append(text)
                answer.size += len(text)
                flight.emit(shown.TextDelta(turn_id=flight.turn_id, text=text))
            case ThinkingDelta(text=given):
                text = storable(given)
                answer.thinking.append(text)
                answer.size += len(text)
                flight.emit(shown.ThinkingDelta(turn_id=flight.turn_id, text=text))
            case Progress(phase=phase, done=done, total=total):
                flight.emit(shown.Progress(turn_id=flight.turn_id, phase=phase, done=done, total=total))
            case ToolCallReady(call=call):
                if not offer.tools:
                    raise ProtocolError(f"the model asked for the tool {call.name!r}, and none was offered")
                run.calls.repaired += call.source == "repaired"
                run.calls.valid += call.source != "repaired"
                self._called(flight, answer, call)
            case Completed(reason=reason):
                answer.complete = True
                return reason
        # A server that never ends must not fill the memory; what came is kept, and marked as cut off.
        if len(answer.calls) > MOST_CALLS:
            return "length"
        return "length" if answer.size > max(LEAST_LIMIT, CHARACTERS_A_TOKEN * run.num_ctx) else None

    def unusable(self, flight: Flight, answer: Answer, error: UnusableCallError) -> None:
        """Make a call of one that cannot be used: its result then tells the model what is wrong with it."""
        answer.calls.clear()
        answer.complete = True
        self._called(flight, answer, ToolCall(id="", name=storable(error.tool), arguments=dict(error.arguments)))
        flight.unusable[answer.calls[0].id] = error.reason

    def _called(self, flight: Flight, answer: Answer, call: ToolCall) -> None:
        """Keep a call without secrets, under an id that no other call of the answer has."""
        kept, secretive = guarded(call, self._mask)
        taken = {each.id for each in answer.calls}
        if not kept.id or kept.id in taken:
            number = len(taken) + 1
            while f"call_{number}" in taken:
                number += 1
            kept = msgspec.structs.replace(kept, id=f"call_{number}")
        answer.calls.append(kept)
        answer.size += len(msgspec.json.encode(kept.arguments))
        if secretive:
            flight.secretive.add(kept.id)

    def _since(self, started: float) -> int:
        return round((self._clock.monotonic() - started) * 1000)


async def _ends_noted(
    served: AsyncGenerator[ChatChunk, None], session: Session, run: ModelRun, answer: Answer, request: ChatRequest
) -> AsyncGenerator[ChatChunk, None]:
    """Pass a transport's own stream on, and take from its end what the call cost before anybody makes another end of
    it. Raises ContextTruncatedError instead of the end of an answer whose prompt was cut.
    """
    async with aclosing(served):
        async for chunk in served:
            if isinstance(chunk, Completed):
                run.usage = run.usage.plus(chunk.usage)
                answer.usage = chunk.usage
                run.estimated, run.read = request.estimated, chunk.usage.prompt_tokens
                if (cut := session.watch(run).look(request, chunk.usage)) is not None:
                    raise cut
            yield chunk


def _cost(error: ModelError) -> Usage | None:
    """Return what is known of the cost of a call that had no end; None where the error does not say."""
    match error:
        case ContextTruncatedError(served=int(served), window=int(window)) if served <= window:
            # A count over the window is of a prompt that was refused: nothing was read.
            return Usage(calls=1, prompt_tokens=served)
        case EmptyOutputError(generated=int(generated)):
            return Usage(calls=1, output_tokens=generated)
        case _:
            return None
