"""What `/v1/chat/completions` streams, turned into chunks: the one reader for llama.cpp inside and servers outside.

**When an answer is whole.** Only a `finish_reason` says that the model has ended, and only what follows it says that
the server has: `[DONE]`, or the body's own clean end, for servers exist that never send `[DONE]`. HTTP proves that end
(the last chunk, the length, or for want of both the closed connection), and after a `finish_reason` nothing but usage
can be lost. An end without a `finish_reason` is never whole, however clean; nor is a connection that breaks after one.

Calls are given out at the end: some servers send the last fragments together with the `finish_reason`, or behind it.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from rune.errors import CallCancelledError, EmptyOutputError, ModelError, ProtocolError, ServerError, StreamBrokenError
from rune.models.transport import (
    ChatChunk,
    Completed,
    CompletionReason,
    Progress,
    TextDelta,
    ThinkingDelta,
    ToolCallReady,
)
from rune.models.wire.chat_calls import CallAssembly, Fragment, Function
from rune.models.wire.chat_failures import Said, read_error
from rune.models.wire.ndjson import decode_object
from rune.models.wire.sse import EventDecoder
from rune.models.wire.stray_tag import LeakedThinkingFilter
from rune.records.usage import Usage

_REASONS: Final[dict[str, CompletionReason]] = {
    "stop": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "stop_sequence": "stop",
    "end_turn": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "tool_calls": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
}
_LARGEST_COUNT: Final = 2**53
_DONE: Final = b"[DONE]"

Failing = Callable[[Said], ModelError]


class _Reading(msgspec.Struct, frozen=True):
    total: int
    processed: int


class _Part(msgspec.Struct, frozen=True):
    """A piece of content that is an object; `thinking` holds such pieces again."""

    type: str = ""
    text: str | None = None
    thinking: "str | list[_Part] | None" = None


class _Delta(msgspec.Struct, frozen=True):
    content: str | list[_Part] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[Fragment] | None = None
    function_call: Function | None = None


class _Choice(msgspec.Struct, frozen=True):
    index: int | None = None
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None


class _PromptDetails(msgspec.Struct, frozen=True):
    cached_tokens: Any = None


class _Usage(msgspec.Struct, frozen=True):
    prompt_tokens: Any = None
    completion_tokens: Any = None
    prompt_tokens_details: _PromptDetails | None = None


class _Timings(msgspec.Struct, frozen=True):
    prompt_ms: float | None = None
    predicted_ms: float | None = None


class _Event(msgspec.Struct, frozen=True):
    choices: list[_Choice] | None = None
    prompt_progress: _Reading | None = None
    usage: _Usage | None = None
    timings: _Timings | None = None


class ChatAnswer:
    """Turns the bytes of one answer into chunks; `failing` types an error that stands in the stream.

    Feed `read` until `complete`; call `ended` where the body ends cleanly before that. When one of them raises, or the
    connection fails, `held` has what was kept back of the text. `begun` is True once a piece of the answer itself has
    come, `complete` once Completed was given.
    """

    def __init__(self, failing: Failing) -> None:
        self._failing = failing
        self._events = EventDecoder()
        self._count = 0
        self._text = LeakedThinkingFilter()
        self._calls = CallAssembly()
        self._finish = ""
        self._usage = _Usage()
        self._timings = _Timings()
        self._given = False
        self.begun = False
        self.complete = False

    @property
    def events(self) -> int:
        """Return how many events have come; a comment that only keeps the line open is none."""
        return self._count

    def read(self, piece: bytes) -> Iterator[ChatChunk]:
        """Yield what `piece` completes, also what stands before an error in it. Raises what `failing` makes of it,
        ProtocolError, UnusableCallError, EmptyOutputError, ServerError for an answer that a filter cut.
        """
        for data in self._events.feed(piece):
            yield from self.take(data)

    def take(self, data: bytes) -> Iterator[ChatChunk]:
        """Yield the chunks of one event's data. Raises as `read`."""
        self._count += 1
        if self.complete:
            raise ProtocolError("something follows [DONE]", line=self._count)
        if data.strip() == _DONE:
            if not self._finish:
                raise ProtocolError("[DONE] without a finish_reason", line=self._count)
            yield from self._completed()
        else:
            yield from self._event(data)

    def ended(self) -> Iterator[ChatChunk]:
        """Take the body's clean end. Raises StreamBrokenError unless a finish_reason came before it, else as `read`."""
        if self._finish:
            yield from self._completed()
        elif not self._count:
            raise ProtocolError("the answer holds no event: that is not a server that streams chat answers")
        else:
            raise StreamBrokenError("the answer ended before the model server said that it is complete")

    def held(self) -> Iterator[ChatChunk]:
        """Give the text that was kept back because it might have been the beginning of a tag."""
        yield from self._came(self._text.flush())

    def _event(self, data: bytes) -> Iterator[ChatChunk]:
        fields = decode_object(data, number=self._count)
        if fields.get("error") is not None or fields.get("object") == "error" or "detail" in fields:
            raise self._failing(read_error(fields))
        try:
            event = msgspec.convert(fields, _Event)
        except msgspec.ValidationError as error:
            raise ProtocolError(f"not an event of a chat answer: {error}", line=self._count) from error
        self._usage = event.usage or self._usage
        self._timings = event.timings or self._timings
        if event.prompt_progress is not None:
            yield Progress(phase="reading", done=event.prompt_progress.processed, total=event.prompt_progress.total)
        for choice in event.choices or ():
            if choice.index not in {0, None}:
                raise ProtocolError("a second answer, and one was asked for", line=self._count)
            yield from self._piece(choice.delta or choice.message or _Delta())
            if choice.finish_reason:
                self._finished(choice.finish_reason)

    def _piece(self, delta: _Delta) -> Iterator[ChatChunk]:
        thinking, text = _parts(delta.content)
        # Both names may stand there with the same words.
        thinking = (delta.reasoning_content or delta.reasoning or "") + thinking
        text += delta.refusal or ""
        if self._finish and (thinking or text):
            raise ProtocolError("more of the answer follows its finish_reason", line=self._count)
        if thinking:
            yield from self.held()
            yield from self._came([ThinkingDelta(text=thinking)])
        if text:
            self.begun = True
            yield from self._came(self._text.feed(text))
        fragments = list(delta.tool_calls or ())
        if delta.function_call is not None:
            fragments.append(Fragment(index=0, function=delta.function_call))
        for fragment in fragments:
            if not self._calls:
                yield from self.held()
            self._calls.add(fragment)
            self.begun = self._given = True

    def _came(self, pieces: list[TextDelta | ThinkingDelta]) -> Iterator[ChatChunk]:
        if pieces:
            self.begun = self._given = True
        yield from pieces

    def _finished(self, word: str) -> None:
        if self._finish and self._finish != word:
            raise ProtocolError(f"finish_reason {self._finish!r}, and then {word!r}", line=self._count)
        self._finish = word

    def _completed(self) -> Iterator[ChatChunk]:
        yield from self.held()
        reason = self._reason()
        if not self._given:
            raise EmptyOutputError(generated=_figure(self._usage.completion_tokens))
        # A call that was cut off by the limit is no call; its fragments prove nothing.
        calls = [] if reason == "length" else self._calls.whole()
        for call in calls:
            yield ToolCallReady(call=call)
        self.complete = True
        # Some servers say `stop` where the model asked for tools, some the other way round.
        yield Completed(
            reason="tool_calls" if calls else "stop" if reason == "tool_calls" else reason, usage=self._sum()
        )

    def _reason(self) -> CompletionReason:
        reason = _REASONS.get(self._finish)
        if reason is not None:
            return reason
        match self._finish:
            case "content_filter":
                raise ServerError(
                    "its content filter cut the answer off", status=0, phase="token", hint="Ask in other words."
                )
            case "abort" | "cancelled":
                raise CallCancelledError("the server says that the call was cancelled")
            case "error":
                raise ServerError("it ended the answer with an error that it does not name", status=0, phase="token")
            case word:
                raise ProtocolError(f"finish_reason {word[:40]!r} is not known", line=self._count)

    def _sum(self) -> Usage:
        details = self._usage.prompt_tokens_details or _PromptDetails()
        times = [spent for spent in (self._timings.prompt_ms, self._timings.predicted_ms) if spent is not None]
        return Usage(
            calls=1,
            prompt_tokens=_figure(self._usage.prompt_tokens),
            cached_tokens=_figure(details.cached_tokens),
            output_tokens=_figure(self._usage.completion_tokens),
            model_time_ms=round(sum(times)) if times else None,
        )


def _parts(content: str | list[_Part] | None) -> tuple[str, str]:
    """Return the thinking and the text of content, which may be a list of pieces."""
    if content is None or isinstance(content, str):
        return "", content or ""
    thinking, text = "", ""
    for part in content:
        if part.thinking is not None:
            thinking += "".join(_parts(part.thinking))
        text += part.text or ""
    return thinking, text


def _figure(value: object) -> int | None:
    """Return a figure; None where it is missing or senseless."""
    return value if type(value) is int and 0 <= value <= _LARGEST_COUNT else None
