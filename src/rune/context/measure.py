"""Rendering and measuring, each done once: by far the dearest part of a long conversation."""

from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache

import msgspec

from rune.context.render import arguments_json, constrained_text, evidence_id, message_json, message_text
from rune.models.text_tools.constrained import fenced
from rune.records.messages import ConversationMessageRecord
from rune.records.traces import Dialect, RecipeMessage
from rune.text.storable import storable

# What a chat template puts around things, in tokens. Estimated on ChatML, Llama 3 and Mistral templates
# and rounded up: marks and role of a message, marks of a call, the lines that introduce tools, and the
# start of the answer with the model's own start mark.
PER_MESSAGE = 8
PER_CALL = 16
PER_TOOLS = 200
PER_PROMPT = 16
# Marks and blank lines that come with a tail.
PER_TAIL_BLOCK = 16

_BLOCK_TEXTS = 256


class RenderedMessage(msgspec.Struct, frozen=True):
    """A message as sent: its record, its JSON object, its tokens with the template's, its recipe."""

    record: ConversationMessageRecord
    data: bytes
    tokens: int
    recipe: RecipeMessage


class Measure:
    """The one estimator, with a memory of `limit` bytes of rendered messages; the oldest leave first.

    A remembered rendering is used only for an equal record, so that a memory never changes an answer.
    """

    def __init__(self, estimate: Callable[[str], int], *, limit: int = 64 * 1024 * 1024) -> None:
        self._estimate = estimate
        self._limit = limit
        self._size = 0
        self._known: OrderedDict[tuple[Dialect, str], RenderedMessage] = OrderedDict()
        self._text = lru_cache(maxsize=_BLOCK_TEXTS)(estimate)

    def text(self, text: str) -> int:
        """Return the tokens of a block's text; remembered, for blocks come again with every request."""
        return self._text(text)

    def message(self, record: ConversationMessageRecord, dialect: Dialect) -> RenderedMessage:
        """Return a message rendered and measured."""
        key = (dialect, record.id)
        known = self._known.get(key)
        if known is not None:
            if known.record is record or _same(known, record, dialect):
                return known
            self._forget(key)
        rendered = self._render(record, dialect)
        if len(rendered.data) <= self._limit // 4:
            self._known[key] = rendered
            self._size += len(rendered.data)
            while self._size > self._limit:
                self._forget(next(iter(self._known)))
        return rendered

    def _forget(self, key: tuple[Dialect, str]) -> None:
        self._size -= len(self._known.pop(key).data)

    def _render(self, record: ConversationMessageRecord, dialect: Dialect) -> RenderedMessage:
        data = message_json(record, dialect)
        if dialect == "constrained":
            tokens = self._estimate(constrained_text(record)) + PER_MESSAGE
        else:
            tokens = self._estimate(_native_text(record)) + PER_MESSAGE + PER_CALL * len(record.tool_calls)
        recipe = RecipeMessage(message_id=record.id, rendering=evidence_id(data))
        return RenderedMessage(record, data, tokens, recipe)


def _native_text(record: ConversationMessageRecord) -> str:
    """Return a message as the model reads it, not as JSON escapes it."""
    text = message_text(record)
    parts = [fenced(text) if record.role == "tool" else text]
    if record.role == "assistant":
        parts.append(storable(record.thinking))
        parts.extend(f"{storable(call.name)} {arguments_json(call)}" for call in record.tool_calls)
    elif record.role == "tool":
        parts.append(storable(record.tool_name))
    return "\n".join(part for part in parts if part)


def _same(known: RenderedMessage, record: ConversationMessageRecord, dialect: Dialect) -> bool:
    if known.record != record:
        return False
    # Arguments are plain values, and 1 == 1.0 == True: equal records may still be written differently.
    return not record.tool_calls or known.data == message_json(record, dialect)
