"""Small tasks beside the conversation: a title, a summary, a probe (context.md, Two kinds of model call).

Each has a prompt file, is measured before it is sent, and leaves a trace of its own from which its prompt can be
rebuilt byte for byte. Only this and `turn.runtime` call a transport's `chat`.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Final, Protocol

import msgspec

from rune.errors import ContextOverflowError, ModelError, ProtocolError, StorageError
from rune.host.clock import Clock
from rune.host.ids import IdSource
from rune.models.prompt_files import prompt
from rune.models.side_messages import SideMessage, evidence_id, rendered, template_tokens
from rune.models.transport import (
    ChatRequest,
    ChatTransport,
    Completed,
    CompletionReason,
    LoadOptions,
    ModelInfo,
    TextDelta,
    ThinkingDelta,
    ToolCallReady,
)
from rune.records.tools import ToolCall
from rune.records.traces import Dialect, InferenceTraceRecord, PromptRecipe, RecipeBlock
from rune.records.usage import Usage

BLOCK: Final = "side_call"
NO_TOOLS: Final = b"[]"
_ERROR_LENGTH: Final = 300
# A server that does not keep to the limit must not fill the memory.
_CHARACTERS_A_TOKEN: Final = 32


class SideRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A small task. `task` names the prompt file (`prompts/<task>.md`), which with `details` after it is the system
    message; `max_tokens` bounds the answer and is kept free in the window. `format` and `tools` are as in ChatRequest.

    What is said of a conversation names it, and is asked while its lease is held: the trace is kept with it, and erased
    with it.
    """

    task: str
    messages: tuple[SideMessage, ...]
    max_tokens: int
    details: str = ""
    tools: bytes = NO_TOOLS
    format: bytes | None = None
    temperature: float | None = None
    conversation_id: str | None = None
    turn_id: str | None = None


class SideAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A whole answer. `reason` `length`: it was cut at `max_tokens`. `trace_id` None: the trace could not be kept."""

    text: str
    thinking: str
    calls: tuple[ToolCall, ...]
    reason: CompletionReason
    usage: Usage
    milliseconds: int
    trace_id: str | None


class SideTraces(Protocol):
    """Keeps what a side call saw."""

    async def keep(self, trace: InferenceTraceRecord, blobs: Sequence[bytes]) -> None:
        """Keep the blobs, then the trace that names them. Raises StorageError."""
        ...


class SideCalls:
    """Asks models small things. `background` is told that a trace could not be kept (T2)."""

    def __init__(
        self,
        *,
        traces: SideTraces,
        estimate: Callable[[str], int],
        clock: Clock,
        ids: IdSource,
        background: Callable[[str, Exception], object],
    ) -> None:
        self._traces = traces
        self._estimate = estimate
        self._clock = clock
        self._ids = ids
        self._background = background

    async def ask(self, transport: ChatTransport, info: ModelInfo, num_ctx: int, request: SideRequest) -> SideAnswer:
        """Return the model's whole answer. `num_ctx` is the window that conversations use for it: any other would
        make the server load it anew (models.md, rule 9).

        Raises ContextOverflowError before anything is sent, and the ModelError that the call ended in. A call that is
        cancelled leaves its trace too.
        """
        call = self._call(transport, info, num_ctx, request)
        try:
            await call.run(transport)
        except ModelError as error:
            call.ended("failed", error.message)
            raise
        except asyncio.CancelledError:
            call.ended("cancelled")
            raise
        finally:
            kept = await self._keep(call.trace(request, self._ids.new_id("trc")), call.blobs)
        return call.answer(kept)

    def _call(self, transport: ChatTransport, info: ModelInfo, num_ctx: int, request: SideRequest) -> "_Call":
        system = "\n\n".join(part for part in (prompt(request.task), request.details) if part)
        messages = (SideMessage(role="system", content=system), *request.messages)
        array = rendered(messages, transport.dialect)
        tokens = self._estimate(array.decode()) + template_tokens(messages)
        if request.tools != NO_TOOLS:
            tokens += self._estimate(request.tools.decode())
        if tokens > num_ctx - request.max_tokens:
            blocks = ((request.task, tokens),)
            raise ContextOverflowError(blocks=blocks, budget=max(0, num_ctx - request.max_tokens), window=num_ctx)
        chat = ChatRequest(
            model=info.name,
            messages=array,
            tools=request.tools,
            options=LoadOptions(num_ctx=num_ctx),
            estimated=tokens,
            format=request.format,
            # Absent means on (rule 7), and a title is not worth minutes of thought.
            think="off" if "thinking" in info.capabilities else None,
            max_tokens=request.max_tokens,
            temperature=request.temperature,
        )
        return _Call(chat, info, transport, self._clock)

    async def _keep(self, trace: InferenceTraceRecord, blobs: Sequence[bytes]) -> str | None:
        keeping = asyncio.ensure_future(self._kept(trace, blobs))
        # Cancelled in the middle of it, the write goes on: the ledger finishes what it has accepted.
        return await asyncio.shield(keeping)

    async def _kept(self, trace: InferenceTraceRecord, blobs: Sequence[bytes]) -> str | None:
        try:
            await self._traces.keep(trace, blobs)
        except StorageError as error:
            self._background("inference_trace", error)
            return None
        return trace.id


class _Call:
    """One call in the air, and what its trace says of it."""

    def __init__(self, chat: ChatRequest, info: ModelInfo, transport: ChatTransport, clock: Clock) -> None:
        self._chat = chat
        self._info = info
        self._dialect: Dialect = transport.dialect
        self._clock = clock
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._calls: list[ToolCall] = []
        self._completed: Completed | None = None
        self._stop = "bug"
        self._error = ""
        self._milliseconds = 0
        self._first_token: int | None = None
        self.blobs = [blob for blob in (chat.messages, chat.tools, chat.format) if blob and blob != NO_TOOLS]

    async def run(self, transport: ChatTransport) -> None:
        """Take the answer in to its end. Raises ModelError."""
        started = self._clock.monotonic()
        most = _CHARACTERS_A_TOKEN * (self._chat.max_tokens or self._chat.options.num_ctx)
        size = 0
        try:
            async with aclosing(transport.chat(self._chat)) as chunks:
                async for chunk in chunks:
                    if isinstance(chunk, TextDelta | ThinkingDelta):
                        (self._text if isinstance(chunk, TextDelta) else self._thinking).append(chunk.text)
                        size += len(chunk.text)
                        if self._first_token is None:
                            self._first_token = self._since(started)
                    elif isinstance(chunk, ToolCallReady):
                        self._calls.append(chunk.call)
                    elif isinstance(chunk, Completed):
                        self._completed = chunk
                        self.ended("length" if chunk.reason == "length" else "answered")
                        return
                    if size > most:
                        self._completed = Completed("length", Usage(calls=1))
                        self.ended("length")
                        return
        finally:
            self._milliseconds = self._since(started)
        raise ProtocolError(f"{self._info.provider} ended its stream without an end or an error")

    def ended(self, stop: str, error: str = "") -> None:
        """Note how it ended; the words are a turn's (StopReason)."""
        self._stop, self._error = stop, error

    def answer(self, trace_id: str | None) -> SideAnswer:
        """Return the answer of a call that has completed."""
        if self._completed is None:
            raise RuntimeError("a call that has not completed has no answer")
        return SideAnswer(
            text="".join(self._text),
            thinking="".join(self._thinking),
            calls=tuple(self._calls),
            reason=self._completed.reason,
            usage=self._completed.usage,
            milliseconds=self._milliseconds,
            trace_id=trace_id,
        )

    def trace(self, request: SideRequest, trace_id: str) -> InferenceTraceRecord:
        """Return the trace: one block that holds the whole array of messages."""
        chat, usage = self._chat, self._completed.usage if self._completed else Usage(calls=1)
        messages = evidence_id(chat.messages)
        recipe = PromptRecipe(
            dialect=self._dialect,
            prefix="",
            blocks=(RecipeBlock(name=BLOCK, placement="body", tokens=chat.estimated, blob=messages),),
            history=(),
            tools="" if chat.tools == NO_TOOLS else evidence_id(chat.tools),
            messages_hash=messages,
            messages_bytes=len(chat.messages),
            prompt_tokens_estimated=chat.estimated,
            format=evidence_id(chat.format) if chat.format else "",
            think=chat.think,
            temperature=chat.temperature,
        )
        return InferenceTraceRecord(
            id=trace_id,
            kind="side",
            provider=self._info.provider,
            model=self._info.name,
            remote=self._info.remote,
            turn_id=request.turn_id,
            task_id=None,
            conversation_id=request.conversation_id,
            window=chat.options.num_ctx,
            num_ctx=chat.options.num_ctx,
            input_budget=chat.options.num_ctx - request.max_tokens,
            model_calls=1,
            prompt_tokens_estimated=chat.estimated,
            prompt_tokens_served=usage.prompt_tokens,
            cached_tokens=usage.cached_tokens,
            output_tokens=usage.output_tokens,
            latency_ms=self._milliseconds,
            first_token_ms=self._first_token,
            model_time_ms=usage.model_time_ms,
            per_block_tokens={request.task: chat.estimated},
            dropped_blocks=(),
            prefix_reuse=None,
            prefix_break=None,
            stop_reason=self._stop,
            success=self._stop == "answered",
            error=self._error[:_ERROR_LENGTH],
            requests=(recipe,),
        )

    def _since(self, started: float) -> int:
        return round((self._clock.monotonic() - started) * 1000)
