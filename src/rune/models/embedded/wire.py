"""What is said to llama.cpp's server and what it says: `/v1/chat/completions` as a stream.

A complete answer is a `finish_reason` followed by `[DONE]`; anything less is not proof. Shapes were
taken from llama.cpp itself (docs/decisions/embedded-model.md); fields that Rune does not use are ignored.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from rune.errors import ContextTruncatedError, EmptyOutputError, ModelError, Phase, ProtocolError, ServerError
from rune.models.transport import (
    ChatChunk,
    ChatRequest,
    Completed,
    CompletionReason,
    Progress,
    TextDelta,
    ThinkingDelta,
    ToolCallReady,
)
from rune.models.wire.sse import EventDecoder
from rune.records.tools import ToolCall
from rune.records.usage import Usage

_REASONS: dict[str, CompletionReason] = {"stop": "stop", "length": "length", "tool_calls": "tool_calls"}


def chat_body(request: ChatRequest, sampling: Mapping[str, float]) -> bytes:
    """Return the request's body; messages, tools and format stand in it byte for byte."""
    extras: dict[str, Any] = {
        "model": request.model,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": True,
        "cache_prompt": True,
        **sampling,
    }
    if request.max_tokens is not None:
        extras["max_tokens"] = request.max_tokens
    if request.think is not None:
        extras["chat_template_kwargs"] = {"enable_thinking": request.think != "off"}
    body = msgspec.json.encode(extras)[:-1] + b',"messages":' + request.messages
    if request.tools != b"[]":
        body += b',"tools":' + request.tools
    if request.format is not None:
        body += b',"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":'
        body += request.format + b"}}"
    return body + b"}"


class _Reading(msgspec.Struct, frozen=True):
    total: int
    processed: int


class _Function(msgspec.Struct, frozen=True):
    name: str | None = None
    arguments: str | None = None


class _Fragment(msgspec.Struct, frozen=True):
    index: int = 0
    id: str | None = None
    function: _Function = _Function()


class _Delta(msgspec.Struct, frozen=True):
    content: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[_Fragment] | None = None


class _Choice(msgspec.Struct, frozen=True):
    delta: _Delta = _Delta()
    finish_reason: str | None = None


class _PromptDetails(msgspec.Struct, frozen=True):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct, frozen=True):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None


class _Timings(msgspec.Struct, frozen=True):
    prompt_ms: float | None = None
    predicted_ms: float | None = None


class _Failure(msgspec.Struct, frozen=True):
    message: str = ""
    type: str = ""
    n_prompt_tokens: int | None = None
    n_ctx: int | None = None


class _Event(msgspec.Struct, frozen=True):
    choices: list[_Choice] = []
    prompt_progress: _Reading | None = None
    usage: _Usage | None = None
    timings: _Timings | None = None
    error: _Failure | None = None


class _Refusal(msgspec.Struct, frozen=True):
    error: _Failure


_EVENT = msgspec.json.Decoder(_Event)
_ARGUMENTS = msgspec.json.Decoder(dict[str, Any])


def refusal(status: int, body: bytes, *, phase: Phase, estimated: int) -> ModelError:
    """Return the typed end for an answer that is not 200. `estimated` is the prompt's, in tokens."""
    try:
        failure = msgspec.json.decode(body, type=_Refusal).error
    except msgspec.MsgspecError:
        return ServerError(body[:300].decode("utf-8", "replace"), status=status, phase=phase)
    return _typed(failure, status=status, phase=phase, estimated=estimated)


def _typed(failure: _Failure, *, status: int, phase: Phase, estimated: int) -> ModelError:
    if failure.type == "exceed_context_size_error":
        served, window = failure.n_prompt_tokens, failure.n_ctx
        return ContextTruncatedError(
            f"the prompt has {_figure(served)} tokens and the window {_figure(window)}: nothing was answered",
            estimated=estimated,
            served=served,
            window=window,
        )
    return ServerError(failure.message, status=status, phase=phase)


def _figure(number: int | None) -> str:
    return "too many" if number is None else f"{number:,}"


class AnswerReader:
    """Turns the bytes of one answer into chunks.

    `begun` is True once a piece of the answer itself has come, `complete` once Completed was given.
    """

    def __init__(self, *, estimated: int) -> None:
        self._estimated = estimated
        self._events = EventDecoder()
        self._count = 0
        self._calls: dict[int, _Call] = {}
        self._reason: CompletionReason | None = None
        self._usage = _Usage()
        self._timings = _Timings()
        self.begun = False
        self.complete = False

    @property
    def events(self) -> int:
        """Return how many events have come; a comment that only keeps the line open is none."""
        return self._count

    def read(self, piece: bytes) -> Iterator[ChatChunk]:
        """Yield what `piece` completes, also what stands before an error in it. Raises ServerError,
        ProtocolError, ContextTruncatedError, EmptyOutputError.
        """
        for data in self._events.feed(piece):
            self._count += 1
            if self.complete:
                raise ProtocolError("something follows [DONE]", line=self._count)
            if data.strip() == b"[DONE]":
                if self._reason is None:
                    raise ProtocolError("[DONE] without a finish_reason", line=self._count)
                yield self._completed(self._reason)
            else:
                yield from self._take(data)

    def _take(self, data: bytes) -> Iterator[ChatChunk]:
        try:
            event = _EVENT.decode(data)
        except msgspec.MsgspecError as error:
            raise ProtocolError(f"not an event of a chat answer: {error}", line=self._count) from error
        if event.error is not None:
            raise _typed(
                event.error, status=0, phase="token" if self.begun else "first_byte", estimated=self._estimated
            )
        self._usage = event.usage or self._usage
        self._timings = event.timings or self._timings
        if event.prompt_progress is not None:
            yield Progress(phase="reading", done=event.prompt_progress.processed, total=event.prompt_progress.total)
        for choice in event.choices:
            yield from self._piece(choice.delta)
            if choice.finish_reason is not None:
                yield from self._finish(choice.finish_reason)

    def _piece(self, delta: _Delta) -> list[ChatChunk]:
        chunks: list[ChatChunk] = []
        if delta.reasoning_content:
            chunks.append(ThinkingDelta(text=delta.reasoning_content))
        if delta.content:
            chunks.append(TextDelta(text=delta.content))
        for fragment in delta.tool_calls or ():
            self._calls.setdefault(fragment.index, _Call()).add(fragment)
            self.begun = True
        self.begun = self.begun or bool(chunks)
        return chunks

    def _finish(self, word: str) -> list[ChatChunk]:
        reason = _REASONS.get(word)
        if reason is None:
            raise ProtocolError(f"finish_reason {word!r} is not known", line=self._count)
        self._reason = reason
        taken: set[str] = set()
        # A call that was cut off by the limit is no call; its fragments prove nothing.
        calls = [] if reason == "length" else list(self._calls.values())
        return [ToolCallReady(call=call.whole(taken, line=self._count)) for call in calls]

    def _completed(self, reason: CompletionReason) -> Completed:
        if not self.begun:
            raise EmptyOutputError(generated=self._usage.completion_tokens)
        self.complete = True
        details = self._usage.prompt_tokens_details or _PromptDetails()
        times = [spent for spent in (self._timings.prompt_ms, self._timings.predicted_ms) if spent is not None]
        usage = Usage(
            calls=1,
            prompt_tokens=self._usage.prompt_tokens,
            cached_tokens=details.cached_tokens,
            output_tokens=self._usage.completion_tokens,
            model_time_ms=round(sum(times)) if times else None,
        )
        return Completed(reason=reason, usage=usage)


class _Call:
    """One tool call while its fragments come."""

    def __init__(self) -> None:
        self._id = ""
        self._name = ""
        self._arguments: list[str] = []

    def add(self, fragment: _Fragment) -> None:
        self._id = fragment.id or self._id
        self._name += fragment.function.name or ""
        self._arguments.append(fragment.function.arguments or "")

    def whole(self, taken: set[str], *, line: int) -> ToolCall:
        """Return the call, with an id of its own where the server gave none or one twice."""
        text = "".join(self._arguments)
        try:
            arguments = _ARGUMENTS.decode(text) if text.strip() else {}
        except msgspec.MsgspecError as error:
            raise ProtocolError(f"the arguments of {self._name!r} are not a JSON object: {error}", line=line) from error
        identity = self._id
        if not identity or identity in taken:
            identity = next(name for n in range(1, len(taken) + 2) if (name := f"call_{n}") not in taken)
        taken.add(identity)
        return ToolCall(id=identity, name=self._name, arguments=arguments)
