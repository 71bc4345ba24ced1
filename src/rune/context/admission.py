"""The broker's third step: what enters a prompt and what does not. Pure and deterministic.

Mandatory blocks come first; without them nothing is sent. Then the evictable ones, in this order:

1. prefix blocks, by priority: before the tail, because a prefix that depended on what is recalled for
   one message would break with the next;
2. tail blocks, by priority, within a tenth of the budget;
3. history, the newest turn groups, in what remains.

Of blocks of one priority the one registered last enters first.
"""

from collections.abc import Iterable, Sequence

import msgspec

from rune.context.blocks import AssemblyRequest, ContributionBlock
from rune.context.budget import Budget
from rune.context.collect import Collected
from rune.context.history import Layout, Layouts, leaving
from rune.context.measure import PER_MESSAGE, PER_PROMPT, PER_TAIL_BLOCK, Measure, RenderedMessage
from rune.context.prefix import Prefix, admit_prefix
from rune.context.render import tail_text
from rune.errors import ContextOverflowError
from rune.records.traces import DroppedBlock

Rows = list[tuple[str, int]]


class TailBlock(msgspec.Struct, frozen=True):
    """A block that is recalled for a message, and its tokens."""

    block: ContributionBlock
    tokens: int


class Admitted(msgspec.Struct, frozen=True):
    """All that goes into one prompt. `message` is the person's with its tail; `per_block` sums up to the
    whole estimate; `archived_now` are the ids of the history that left.
    """

    prefix: Prefix
    layout: Layout
    tail: tuple[TailBlock, ...]
    message: RenderedMessage
    per_block: dict[str, int]
    dropped: tuple[DroppedBlock, ...]
    archived_now: tuple[str, ...]


def admit(
    request: AssemblyRequest,
    collected: Collected,
    wanted: Prefix,
    budget: Budget,
    measure: Measure,
    layouts: Layouts,
) -> Admitted:
    """Decide on a request. Raises ContextOverflowError when mandatory blocks do not fit."""
    tails = _tails(request, collected, measure)
    must = [tail for tail in tails if not tail.block.evictable]
    words = measure.message(request.message, request.dialect)
    fixed = [("user", words.tokens), ("template", PER_PROMPT + PER_MESSAGE)]
    standing = [*((tail.block.name, tail.tokens) for tail in must), *fixed]
    check_fits([*wanted.mandatory_rows(), *standing], budget)

    room = budget.input - _total(standing)
    prefix = admit_prefix(wanted, request, budget, room)
    room -= prefix.tokens
    tail, refused = _admit_tail(tails, min(budget.tail, room))
    spent = sum(entry.tokens for entry in tail if entry.block.evictable)
    # The tail's tenth stays free also when little is recalled, or the next recall would trim history.
    layout, left = _admit_history(request, max(0, room - max(budget.tail, spent)), layouts)
    rows = [*prefix.rows(), ("history", layout.tokens), *((entry.block.name, entry.tokens) for entry in tail), *fixed]
    return Admitted(
        prefix=prefix,
        layout=layout,
        tail=tail,
        message=_with_tail(request, tail, words, measure),
        per_block=merged(rows),
        dropped=(*prefix.dropped(), *refused, *left),
        archived_now=left[0].message_ids if left else (),
    )


def check_fits(rows: Rows, budget: Budget) -> None:
    """Raise ContextOverflowError when these blocks exceed the budget."""
    if _total(rows) > budget.input:
        raise ContextOverflowError(blocks=tuple(merged(rows).items()), budget=budget.input, window=budget.window)


def merged(rows: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return the tokens by name, in order of first appearance; what takes none is left out."""
    tokens: dict[str, int] = {}
    for name, count in rows:
        if count:
            tokens[name] = tokens.get(name, 0) + count
    return tokens


def _total(rows: Rows) -> int:
    return sum(tokens for _, tokens in rows)


def _tails(request: AssemblyRequest, collected: Collected, measure: Measure) -> list[TailBlock]:
    # A message that carries its tail was assembled before; what was sent with it is kept byte for byte.
    if request.message.tail:
        return []
    return [
        TailBlock(block, measure.text(block.content) + PER_TAIL_BLOCK)
        for blocks in collected.blocks.values()
        for block in blocks
        if block.placement == "tail"
    ]


def _admit_tail(tails: Sequence[TailBlock], room: int) -> tuple[tuple[TailBlock, ...], list[DroppedBlock]]:
    order = sorted(
        (index for index, tail in enumerate(tails) if tail.block.evictable),
        key=lambda index: (-tails[index].block.priority, -index),
    )
    gone: set[int] = set()
    for index in order:
        if tails[index].tokens <= room:
            room -= tails[index].tokens
        else:
            gone.add(index)
    kept = tuple(tail for index, tail in enumerate(tails) if index not in gone)
    refused = (tails[index] for index in order if index in gone)
    return kept, [DroppedBlock(name=out.block.name, tokens=out.tokens, reason="over_budget") for out in refused]


def _with_tail(
    request: AssemblyRequest, tail: Sequence[TailBlock], words: RenderedMessage, measure: Measure
) -> RenderedMessage:
    if not tail:
        return words
    text = tail_text(entry.block.content for entry in tail)
    return measure.message(msgspec.structs.replace(request.message, tail=text), request.dialect)


def _admit_history(request: AssemblyRequest, allowance: int, layouts: Layouts) -> tuple[Layout, list[DroppedBlock]]:
    layout = layouts.of(request.history, request.archived, request.dialect)
    gone = leaving(layout, allowance)
    if not gone:
        return layout, []
    kept = layout.without(gone)
    left = DroppedBlock(
        name="history",
        tokens=layout.tokens - kept.tokens,
        reason="history_trimmed",
        message_ids=layout.ids(gone),
    )
    return kept, [left]
