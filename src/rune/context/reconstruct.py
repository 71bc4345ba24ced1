"""From a recipe back to the bytes that were sent (`rune trace --show`), with proof that they are the same."""

from collections.abc import Collection, Mapping

import msgspec

from rune.context.history import Layouts
from rune.context.measure import Measure, RenderedMessage
from rune.context.render import array_json, evidence_id, system_json, system_text, tail_text
from rune.records.messages import ConversationMessageRecord
from rune.records.traces import BlockPlacement, PromptRecipe


class Reconstruction(msgspec.Struct, frozen=True, kw_only=True):
    """A rebuilt prompt. `matches` says that its bytes have the hash of what was sent; else `problems`
    says what is missing or differs, one sentence each, and `messages` holds what could be rebuilt. `format` is the
    JSON schema that held the answer, b"" where nothing did.
    """

    messages: bytes
    tools: bytes
    format: bytes = b""
    matches: bool
    problems: tuple[str, ...]


def rebuild_messages(
    recipe: PromptRecipe,
    blobs: Mapping[str, bytes],
    messages: Mapping[str, ConversationMessageRecord],
    erased: Collection[str] = (),
) -> Reconstruction:
    """Rebuild one request from its recipe, the evidence by id and the message records by id. `erased` are the ids
    of both kinds that the owner erased: they are not merely missing.
    """
    problems = _Problems(erased)
    array = _side_call(recipe, blobs, problems)
    if array is None:
        system = _contents(recipe, "prefix", blobs, problems)
        tail = tail_text(_contents(recipe, "tail", blobs, problems))
        rendered = _history(recipe, messages, tail, problems)
        parts = [system_json(system_text(system))] if system else []
        array = array_json([*parts, *(message.data for message in rendered)])
    tools = _blob(recipe.tools, "the tools", blobs, problems) if recipe.tools else b"[]"
    schema = _blob(recipe.format, "the schema of the answer", blobs, problems) if recipe.format else b""
    matches = not problems.found and evidence_id(array) == recipe.messages_hash
    if not problems.found and not matches:
        problems.found.append(
            f"the rebuilt messages ({len(array)} bytes, {recipe.messages_bytes} sent) have another hash"
        )
    return Reconstruction(messages=array, tools=tools, format=schema, matches=matches, problems=tuple(problems.found))


class _Problems:
    """What stands in the way, a sentence each."""

    def __init__(self, erased: Collection[str]) -> None:
        self.found: list[str] = []
        self._erased = erased

    def lacks(self, what: str, name: str, where: str = "") -> None:
        """Note that something is not there, and whether that is on purpose."""
        self.found.append(f"{what} {'was erased' if name in self._erased else 'is missing'}{where}")


def _side_call(recipe: PromptRecipe, blobs: Mapping[str, bytes], problems: _Problems) -> bytes | None:
    """Return the messages of a side call, which are kept whole; None for a prompt that the broker rendered."""
    body = [block for block in recipe.blocks if block.placement == "body"]
    return _blob(body[0].blob, f"block {body[0].name!r}", blobs, problems) or b"[]" if body else None


def _contents(
    recipe: PromptRecipe, placement: BlockPlacement, blobs: Mapping[str, bytes], problems: _Problems
) -> list[str]:
    named = ((block.blob, f"block {block.name!r}") for block in recipe.blocks if block.placement == placement)
    return [_blob(blob, what, blobs, problems).decode("utf-8", "replace") for blob, what in named]


def _blob(name: str, what: str, blobs: Mapping[str, bytes], problems: _Problems) -> bytes:
    content = blobs.get(name)
    if content is None:
        problems.lacks(f"the content of {what}", name, f" ({name})")
        return b""
    if evidence_id(content) != name:
        problems.found.append(f"the content of {what} is not what it was ({name})")
    return content


def _history(
    recipe: PromptRecipe, messages: Mapping[str, ConversationMessageRecord], tail: str, problems: _Problems
) -> list[RenderedMessage]:
    ids = [entry.message_id for entry in recipe.history]
    for message_id in ids:
        if message_id not in messages:
            problems.lacks(f"message {message_id}", message_id)
    records = [messages[message_id] for message_id in ids if message_id in messages]
    if tail:
        records = _with_tail(records, tail)
    # Nothing is measured here; only the broker's own way to lay out a history can give its bytes.
    rendered = Layouts(Measure(lambda _: 0)).of(records, frozenset(), recipe.dialect).rendered
    sent = {entry.message_id: entry.rendering for entry in recipe.history}
    problems.found += [
        f"message {message.record.id} is not rendered as it was sent"
        for message in rendered
        if sent[message.record.id] != message.recipe.rendering
    ]
    return rendered


def _with_tail(records: list[ConversationMessageRecord], tail: str) -> list[ConversationMessageRecord]:
    """Return the records with the tail on the person's message, the newest of role user, if it has none:
    it may have been stored before anything was recalled for it.
    """
    for position in range(len(records) - 1, -1, -1):
        if records[position].role == "user":
            if not records[position].tail:
                records[position] = msgspec.structs.replace(records[position], tail=tail)
            break
    return records
