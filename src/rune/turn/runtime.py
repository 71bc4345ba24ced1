"""The loop of a turn: ask the broker, ask the model, act, record; readable on one screen."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from rune.context.blocks import AssemblyRequest, Capsule, FrozenPrefix, ProjectFile
from rune.context.broker import ContextBroker
from rune.context.budget import MIN_TOOL_WINDOW
from rune.errors import ContextTruncatedError, EmptyOutputError, ModelError, ProtocolError
from rune.host.clock import Clock
from rune.host.ids import IdSource
from rune.models.text_tools.acting import acting
from rune.models.text_tools.constrained import constrained_request, think_before
from rune.models.text_tools.second_try import deserves_second_try, is_lost_call
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
from rune.records.messages import ConversationMessageRecord
from rune.records.models import ActionProtocol
from rune.records.tools import ToolSchema
from rune.records.turns import StopReason
from rune.records.usage import Usage
from rune.text.storable import storable
from rune.turn import events as shown
from rune.turn.flight import Answer, Flight, ModelRun, uninterrupted
from rune.turn.limits import Stop, decide
from rune.turn.recorder import TurnRecorder, new_answer
from rune.turn.session import Session
from rune.turn.tracing import as_asked

# The longest answer, in characters: all that the window could hold, and never less than a long text.
CHARACTERS_A_TOKEN = 8
LEAST_LIMIT = 1_000_000

BREATH_SECONDS = 0.004


class LocalToolRuntime:
    """Runs a turn's model calls within its limits. `tools` are on offer to every model whose window has room for
    them; none is run yet, and a call for one fails.
    """

    def __init__(
        self,
        *,
        broker: ContextBroker,
        recorder: TurnRecorder,
        clock: Clock,
        ids: IdSource,
        project: Callable[[str], tuple[ProjectFile, ...]],
        tools: Sequence[ToolSchema] = (),
    ) -> None:
        self._broker = broker
        self._recorder = recorder
        self._clock = clock
        self._ids = ids
        self._project = project
        self._tools = tuple(tools)

    async def run(self, flight: Flight, session: Session, run: ModelRun) -> StopReason:
        """Run a turn to its end; returns why it ended, raises what made it fail."""
        if isinstance(stop := decide(flight.counters), Stop):
            return stop.reason
        capsule = await self._assemble(flight, session, run)
        try:
            reason = await self._ask(flight, session, run, capsule)
        except ModelError as error:
            if not self._deserves_second_try(flight, run, error):
                raise
            run.protocol = "constrained"
            capsule = await self._assemble(flight, session, run)
            reason = await self._ask(flight, session, run, capsule)
        return StopReason.LENGTH if reason == "length" else StopReason.ANSWERED

    async def _assemble(self, flight: Flight, session: Session, run: ModelRun) -> Capsule:
        """Build the turn's prompt, and make durable what it changes."""
        if flight.message is None or flight.conversation is None:
            raise RuntimeError("a turn must be opened before its prompt is assembled")
        request = self._request(flight.conversation.folder, flight.message, session, run)
        capsule, trace = self._broker.assemble(request)
        flight.degraded += [name for name in trace.degraded if name not in flight.degraded]
        await uninterrupted(self._recorder.before_call(flight, session, capsule, trace))
        if left := len(trace.archived_now):
            text = f"{left} earlier messages do not fit any more and are no longer sent to the model; they are kept"
            flight.emit(shown.Notice(turn_id=flight.turn_id, text=text))
        return capsule

    def _deserves_second_try(self, flight: Flight, run: ModelRun, error: ModelError) -> bool:
        """Say whether to ask once more, constrained; that is the turn's protocol then, so it happens once."""
        if isinstance(decide(flight.counters), Stop):
            return False
        return deserves_second_try(
            error,
            protocol=self._protocol(run),
            tools_offered=bool(self._offered(run)),
            shown=flight.answer is not None and bool(flight.answer.text),
            tried=False,
        )

    def _offered(self, run: ModelRun) -> Sequence[ToolSchema]:
        return self._tools if run.num_ctx >= MIN_TOOL_WINDOW else ()

    def _protocol(self, run: ModelRun) -> ActionProtocol:
        return run.protocol if self._offered(run) else "native"

    def first_prefix(self, flight: Flight, session: Session, message: ConversationMessageRecord) -> FrozenPrefix:
        """Return the prefix with which a conversation starts. Raises as the broker does."""
        if flight.model is None:
            raise RuntimeError("a prefix needs a model")
        return self._broker.collect_prefix(self._request(flight.request.folder, message, session, flight.model))

    def _request(
        self, folder: str, message: ConversationMessageRecord, session: Session, run: ModelRun
    ) -> AssemblyRequest:
        return AssemblyRequest(
            conversation_id=session.conversation_id,
            message=message,
            history=session.history,
            archived=session.archived,
            frozen=session.frozen,
            last_messages=session.last_messages,
            tools=self._offered(run),
            model=run.info.name,
            dialect="constrained" if self._protocol(run) == "constrained" else run.transport.dialect,
            window=run.num_ctx,
            project=self._project(folder),
        )

    async def _ask(self, flight: Flight, session: Session, run: ModelRun, capsule: Capsule) -> CompletionReason:
        """Stream one answer into the flight; returns why the model stopped."""
        flight.counters = flight.counters.after_call()
        answer = flight.answer = new_answer(self._ids)
        request = self._chat_request(run, capsule)
        decided = flight.traces[-1][1]
        flight.traces[-1] = (capsule, as_asked(decided, request))
        served = _ends_noted(run.transport.chat(request), session, run, request)
        started, spent = self._clock.monotonic(), run.usage
        try:
            return await self._stream(flight, run, answer, served)
        except ModelError as error:
            if run.usage is spent and (cost := _cost(error)) is not None:
                run.usage = spent.plus(cost)
                run.estimated, run.read = request.estimated, cost.prompt_tokens
            if self._offered(run) and is_lost_call(error, protocol=self._protocol(run)):
                run.calls.failed += 1
            raise
        finally:
            run.latency_ms = (run.latency_ms or 0) + self._since(started)

    def _chat_request(self, run: ModelRun, capsule: Capsule) -> ChatRequest:
        request = ChatRequest(
            model=run.info.name,
            messages=capsule.messages,
            tools=capsule.tools,
            options=LoadOptions(num_ctx=run.num_ctx),
            estimated=capsule.estimated,
            think=run.think,
        )
        if self._protocol(run) == "constrained":
            think = think_before(run.info, run.think)
            request = constrained_request(request, self._offered(run), think=think)
        return request

    async def _stream(
        self, flight: Flight, run: ModelRun, answer: Answer, served: AsyncGenerator[ChatChunk, None]
    ) -> CompletionReason:
        started = breath = self._clock.monotonic()
        async with aclosing(acting(served, tools=self._offered(run), protocol=self._protocol(run))) as chunks:
            async for chunk in chunks:
                if run.first_token_ms is None and isinstance(chunk, TextDelta | ThinkingDelta):
                    run.first_token_ms = self._since(started)
                if (done := self._take(flight, run, answer, chunk)) is not None:
                    return done
                if self._clock.monotonic() - breath > BREATH_SECONDS:
                    # A burst of tokens comes without a pause; keys, signals and painting must get their turn.
                    await asyncio.sleep(0)
                    breath = self._clock.monotonic()
        raise ProtocolError(f"{run.info.provider} ended its stream without an end or an error")

    def _take(self, flight: Flight, run: ModelRun, answer: Answer, chunk: ChatChunk) -> CompletionReason | None:
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
                if self._offered(run):
                    run.calls.repaired += call.source == "repaired"
                    run.calls.valid += call.source != "repaired"
                raise ProtocolError(f"the model asked for the tool {call.name!r}, and none was offered")
            case Completed(reason=reason):
                answer.complete = True
                return reason
        # A server that never ends must not fill the memory; what came is kept, and marked as cut off.
        return "length" if answer.size > max(LEAST_LIMIT, CHARACTERS_A_TOKEN * run.num_ctx) else None

    def _since(self, started: float) -> int:
        return round((self._clock.monotonic() - started) * 1000)


async def _ends_noted(
    served: AsyncGenerator[ChatChunk, None], session: Session, run: ModelRun, request: ChatRequest
) -> AsyncGenerator[ChatChunk, None]:
    """Pass a transport's own stream on, and take from its end what the call cost before anybody makes another end of
    it. Raises ContextTruncatedError instead of the end of an answer whose prompt was cut.
    """
    async with aclosing(served):
        async for chunk in served:
            if isinstance(chunk, Completed):
                run.usage = run.usage.plus(chunk.usage)
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
