"""What a model's stream means where tools are on offer: words, or calls, whichever protocol it asks for them by.

Whoever runs a turn or a side call reads this instead of the transport's own stream. It ends as that does, with one
Completed or one ModelError, and closing it closes the transport's.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Protocol

from rune.errors import EmptyOutputError, InvalidArgumentsError, ModelError, UnusableCallError
from rune.models.text_tools.answer_reader import ConstrainedReader
from rune.models.text_tools.arguments import fitted
from rune.models.text_tools.offered import offered_name
from rune.models.text_tools.repair import CallHold, calls_in
from rune.models.transport import (
    ChatChunk,
    Completed,
    CompletionReason,
    Progress,
    TextDelta,
    ThinkingDelta,
    ToolCallReady,
)
from rune.records.models import ActionProtocol
from rune.records.tools import ToolCall, ToolSchema


def acting(
    chunks: AsyncGenerator[ChatChunk, None], *, tools: Sequence[ToolSchema], protocol: ActionProtocol
) -> AsyncGenerator[ChatChunk, None]:
    """Return the stream with every call checked: its tool is one of `tools` and its arguments fit; both as they were
    offered for this answer. Native without tools: the very same stream.

    Raises what the stream raises, after what it held back was given out as text; UnusableCallError for a call that
    cannot be used. Constrained also StreamBrokenError, EmptyOutputError and ProtocolError, as the reader does.
    """
    if protocol == "constrained":
        return _read(chunks, tools, _Constrained(tools))
    return _read(chunks, tools, _Native(tools)) if tools else chunks


class _Reading(Protocol):
    """How text is taken apart."""

    def text(self, text: str) -> list[ChatChunk]:
        """Take a piece; return what can be given out."""
        ...

    def called(self) -> list[ChatChunk]:
        """Take in that the server itself gave a call; return what can be given out."""
        ...

    def end(self, *, cut: bool) -> list[ChatChunk]:
        """Return the rest of a stream that is complete."""
        ...

    def release(self) -> list[ChatChunk]:
        """Return what was held back, as text."""
        ...


async def _read(
    chunks: AsyncGenerator[ChatChunk, None], tools: Sequence[ToolSchema], reading: _Reading
) -> AsyncGenerator[ChatChunk, None]:
    offered = {tool.name: tool for tool in tools}
    given, calls = False, False
    try:
        async with aclosing(chunks):
            async for chunk in chunks:
                for each in _taken(chunk, reading, offered):
                    given = given or not isinstance(each, Progress)
                    calls = calls or isinstance(each, ToolCallReady)
                    yield each
                if isinstance(chunk, Completed):
                    yield _completed(chunk, given=given, calls=calls)
    except (UnusableCallError, EmptyOutputError):
        # What was held back is the call itself, or blanks; it is no answer.
        raise
    except ModelError:
        for each in reading.release():
            yield each
        raise


def _taken(chunk: ChatChunk, reading: _Reading, offered: dict[str, ToolSchema]) -> list[ChatChunk]:
    match chunk:
        case Progress() | ThinkingDelta():
            return [chunk]
        case TextDelta(text=text):
            return reading.text(text)
        case ToolCallReady(call=call):
            return [*reading.called(), ToolCallReady(_checked(call, offered))]
        case Completed(reason=reason):
            return reading.end(cut=reason == "length")


def _completed(end: Completed, *, given: bool, calls: bool) -> Completed:
    if not given:
        # A server counts blanks and brackets as an answer.
        raise EmptyOutputError(generated=end.usage.output_tokens)
    reason: CompletionReason = "tool_calls" if calls else end.reason
    return Completed(reason=reason, usage=end.usage)


def _checked(call: ToolCall, offered: dict[str, ToolSchema]) -> ToolCall:
    name = offered_name(call.name, offered)
    if name is None:
        raise UnusableCallError(call.name, "no tool of that name was offered", call.arguments)
    try:
        arguments = fitted(offered[name], call.arguments)
    except InvalidArgumentsError as error:
        raise UnusableCallError(name, error.message, call.arguments) from error
    return ToolCall(id=call.id, name=name, arguments=arguments, source=call.source)


class _Native:
    """Text is held back while it may be nothing but calls; what a server calls by itself is believed first."""

    def __init__(self, tools: Sequence[ToolSchema]) -> None:
        self._tools = tools
        self._hold = CallHold([tool.name for tool in tools])
        self._held: list[str] = []
        self._open = False

    def text(self, text: str) -> list[ChatChunk]:
        """Give a text out at once where it cannot be a call any more."""
        if self._open:
            return [TextDelta(text)]
        self._held.append(text)
        return [] if self._hold.feed(text) else self.called()

    def called(self) -> list[ChatChunk]:
        """Text beside a call is no call."""
        self._open = True
        return self.release()

    def end(self, *, cut: bool) -> list[ChatChunk]:
        """Raise UnusableCallError for a call that cannot be used."""
        del cut  # a call that was cut off is not whole, whoever cut it
        found = calls_in("".join(self._held), self._tools) if self._held else None
        if found is not None and found.unusable is not None:
            raise UnusableCallError(found.unusable.name, found.unusable.reason)
        if found is not None and found.calls:
            self._held = []
            return [ToolCallReady(call) for call in found.calls]
        return self.release()

    def release(self) -> list[ChatChunk]:
        """Return what was held back, as text."""
        left, self._held = "".join(self._held), []
        return [TextDelta(left)] if left else []


class _Constrained:
    """Text is one move."""

    def __init__(self, tools: Sequence[ToolSchema]) -> None:
        self._reader = ConstrainedReader(tools)

    def text(self, text: str) -> list[ChatChunk]:
        """Read on."""
        return self._reader.feed(text)

    def called(self) -> list[ChatChunk]:
        """Change nothing: a server that knows a call when it sees one has taken it out of the text."""
        return []

    def end(self, *, cut: bool) -> list[ChatChunk]:
        """Raise as the reader does."""
        return self._reader.end(cut=cut)

    def release(self) -> list[ChatChunk]:
        """Return what was held back, as text."""
        return self._reader.release()
