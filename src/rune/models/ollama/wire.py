"""Ollama's native chat as bytes: the body that asks, and what its lines mean (models.md, rules 1 to 15)."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from rune.errors import EmptyOutputError, ModelError, ProtocolError, StreamBrokenError, UnusableCallError
from rune.models.ollama.failures import ErrorText, typed, unwrap
from rune.models.transport import (
    ChatChunk,
    ChatRequest,
    Completed,
    CompletionReason,
    TextDelta,
    ThinkingDelta,
    ToolCallReady,
)
from rune.models.truncation import truncated, was_cut
from rune.models.wire.http import Asked
from rune.models.wire.ndjson import as_list, as_object, decode_object, excerpt
from rune.models.wire.stray_tag import LeakedThinkingFilter
from rune.records.tools import ToolCall
from rune.records.usage import Usage

NO_TOOLS: Final = b"[]"

_KNOWN_KEYS: Final = frozenset({"message", "response", "status", "done"})
_THINK: Final = {"off": False, "on": True}
_LARGEST_COUNT: Final = 2**53
_NAME_SHOWN: Final = 80


def chat_body(request: ChatRequest) -> bytes:
    """Return the body for `/api/chat`; `messages` and `tools` stand in it byte for byte.

    The temperature is no load option, so another one reloads nothing. Raises ProtocolError for an empty messages
    array, which means "load the model" (rule 12).
    """
    if request.messages.strip() in {b"", b"[]"}:
        raise ProtocolError("a chat needs at least one message")
    options: dict[str, float] = {"num_ctx": request.options.num_ctx}
    if request.max_tokens is not None:
        options["num_predict"] = request.max_tokens
    if request.temperature is not None:
        options["temperature"] = request.temperature
    encode = msgspec.json.encode
    parts = [b'{"model":', encode(request.model), b',"messages":', request.messages]
    if offers_tools(request):
        parts += [b',"tools":', request.tools]
    if request.format is not None:
        parts += [b',"format":', request.format]
    if request.think is not None:
        parts += [b',"think":', encode(_THINK.get(request.think, request.think))]
    # A cut prompt must be an error, never a silence, and the same load options go with every call (rules 8, 9).
    parts += [b',"stream":true,"truncate":false,"shift":false,"options":', encode(options), b"}"]
    return b"".join(parts)


def offers_tools(request: ChatRequest) -> bool:
    """Whether the model is offered any tool."""
    return request.tools.strip() not in {b"", NO_TOOLS}


class AnswerDecoder:
    """Turns the lines of one answer into chunks, and its end into the one typed end.

    Feed `read` with lines until `done`; call `ended` where the stream ends before that. When one of them
    raises, or the connection fails, `held` has what was kept back of the text.
    """

    def __init__(self, request: ChatRequest) -> None:
        self._asked = Asked(model=request.model, estimated=request.estimated, window=request.options.num_ctx)
        self._estimated = request.estimated
        self._window = request.options.num_ctx
        self._text = LeakedThinkingFilter()
        self._call_ids: set[str] = set()
        self._calls = 0
        self._anything = False
        self.done = False

    def read(self, line: bytes, number: int) -> Iterator[ChatChunk]:
        """Give the chunks of one line; `number` is its own, 1-based. A blank line says nothing.

        Raises ModelError: an error line, a line that is not the protocol, a call that cannot be used, an end that is
        not a good one.
        """
        if not line.strip():
            return
        value = decode_object(line, number=number)
        if (failure := self._failure(value, number)) is not None:
            raise failure
        done = value.get("done", False)
        if not isinstance(done, bool):
            raise ProtocolError("`done` is neither true nor false", line=number)
        yield from self._message(value, number)
        if done:
            yield from self.held()
            completed = self._completed(value, number)
            self.done = True
            yield completed

    def ended(self, rest: bytes | None, number: int) -> Iterator[ChatChunk]:
        """Take the stream's end; `rest` is its unfinished last line, `number` that line's own.

        A whole JSON object cannot be the beginning of another one, so a last line that only lacks its
        newline counts. Raises StreamBrokenError unless it was the proof that the answer is complete.
        """
        if rest is not None and rest.strip():
            try:
                decode_object(rest, number=number)
            except ProtocolError as error:
                raise self._not_an_answer(rest) from error
            yield from self.read(rest, number)
        if not self.done:
            raise StreamBrokenError("the answer ended before the model server said that it is complete")

    def held(self) -> Iterator[ChatChunk]:
        """Give the text that was kept back because it might have been the beginning of a tag."""
        yield from self._came(self._text.flush())

    def _came(self, pieces: list[TextDelta | ThinkingDelta]) -> Iterator[ChatChunk]:
        self._anything = self._anything or bool(pieces)
        yield from pieces

    def _not_an_answer(self, rest: bytes) -> ModelError:
        if not self._anything and rest.lstrip()[:1] not in {b"{", b""}:
            return ProtocolError(f"the answer is not JSON: {excerpt(rest)}")
        return StreamBrokenError("the answer ended in the middle of a line")

    def _failure(self, value: dict[str, Any], number: int) -> ModelError | None:
        if value.get("error") is not None:
            return typed(unwrap(value), status=0, phase="token", asked=self._asked)
        if _KNOWN_KEYS & value.keys():
            return None
        for key, text in value.items():
            if "error" in key.lower():
                said = unwrap(text)
                said = ErrorText(text=f"{key}: {said.text}", details=said.details)
                return typed(said, status=0, phase="token", asked=self._asked)
        return ProtocolError(f"a line of an unknown kind: {', '.join(value)[:80] or 'empty object'}", line=number)

    def _message(self, value: dict[str, Any], number: int) -> Iterator[ChatChunk]:
        if value.get("message") is None:
            return
        fields = as_object(value["message"])
        if fields is None:
            raise ProtocolError("`message` is not an object", line=number)
        if thinking := _text(fields, "thinking", number):
            yield from self.held()
            self._anything = True
            yield ThinkingDelta(thinking)
        yield from self._came(self._text.feed(_text(fields, "content", number)))
        if fields.get("tool_calls") is None:
            return
        calls = as_list(fields["tool_calls"])
        if calls is None:
            raise ProtocolError("`tool_calls` is not a list", line=number)
        for item in calls:
            yield from self.held()
            call = self._call(item)
            self._anything = True
            yield ToolCallReady(call)

    def _call(self, item: object) -> ToolCall:
        fields = as_object(item) or {}
        function = as_object(fields.get("function")) or {}
        name = function.get("name")
        if not isinstance(name, str) or not name:
            raise UnusableCallError("", "it names no tool")
        arguments = _arguments(function.get("arguments"), name)
        self._calls += 1
        given = fields.get("id")
        call_id = given if isinstance(given, str) and given and given not in self._call_ids else self._new_call_id()
        self._call_ids.add(call_id)
        return ToolCall(id=call_id, name=name, arguments=arguments)

    def _new_call_id(self) -> str:
        call_id = f"call_{self._calls}"
        while call_id in self._call_ids:
            call_id += "_"
        return call_id

    def _completed(self, value: dict[str, Any], number: int) -> Completed:
        given = value.get("done_reason")
        if given in {"load", "unload"}:
            raise ProtocolError(f"the server took the chat for a request to {given} the model", line=number)
        usage = _usage(value)
        if usage.prompt_tokens is not None and was_cut(self._estimated, usage.prompt_tokens, self._window):
            raise truncated(estimated=self._estimated, served=usage.prompt_tokens, window=self._window)
        if not self._anything:
            raise EmptyOutputError(generated=usage.output_tokens)
        # The server says "stop" also when the model asked for tools (rule 4).
        reason: CompletionReason = "tool_calls" if self._calls else "length" if given == "length" else "stop"
        return Completed(reason=reason, usage=usage)


def _text(fields: dict[str, Any], key: str, number: int) -> str:
    value = fields.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ProtocolError(f"`{key}` is not text", line=number)
    return value


def _arguments(value: object, name: str) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = decode_object(value.encode()) if value.strip() else {}
        except ProtocolError as error:
            raise UnusableCallError(
                name[:_NAME_SHOWN], f"its arguments are not a JSON object: {error.reason}"
            ) from error
    arguments = {} if value is None else as_object(value)
    if arguments is None:
        raise UnusableCallError(name[:_NAME_SHOWN], "its arguments are not a JSON object")
    return arguments


def _count(value: dict[str, Any], key: str) -> int | None:
    """Return a figure; None where it is missing (zero is left out by the server) or senseless."""
    figure = value.get(key)
    return figure if type(figure) is int and 0 <= figure <= _LARGEST_COUNT else None


def _usage(value: dict[str, Any]) -> Usage:
    nanoseconds = _count(value, "total_duration")
    return Usage(
        calls=1,
        prompt_tokens=_count(value, "prompt_eval_count"),
        cached_tokens=_count(value, "prompt_eval_cached_count"),
        output_tokens=_count(value, "eval_count"),
        model_time_ms=None if nanoseconds is None else nanoseconds // 1_000_000,
    )
