"""The frozen prefix: what it is made of, when it breaks, and how it is kept (context.md, What was sent
stays as sent).
"""

import json
from collections.abc import Callable, Iterator, Sequence

import msgspec

from rune.context.blocks import AssemblyRequest, ContributionBlock, Contributor, FrozenBlock, FrozenPrefix, LeftOutBlock
from rune.context.budget import Budget
from rune.context.collect import Collected
from rune.context.measure import PER_TOOLS
from rune.context.render import evidence_id, tools_json
from rune.errors import InvalidRecordError
from rune.records.traces import DroppedBlock

NO_TOOLS = "[]"


class MeasuredBlock(msgspec.Struct, frozen=True):
    """A block of the prefix and its tokens."""

    block: FrozenBlock
    tokens: int


class Prefix(msgspec.Struct, frozen=True):
    """The admitted prefix: blocks in their order, the tools with their tokens, and what did not enter."""

    blocks: tuple[MeasuredBlock, ...]
    tools: str
    tools_tokens: int
    out: tuple[MeasuredBlock, ...]

    @property
    def tokens(self) -> int:
        """Return the tokens of blocks and tools."""
        return sum(tokens for _, tokens in self.rows())

    def rows(self) -> list[tuple[str, int]]:
        """Return (name, tokens) of each block and of the tools on offer."""
        return [*((measured.block.name, measured.tokens) for measured in self.blocks), ("tools", self.tools_tokens)]

    def mandatory_rows(self) -> list[tuple[str, int]]:
        """Return the rows of what cannot leave."""
        must = ((each.block.name, each.tokens) for each in self.blocks if not each.block.evictable)
        return [*must, ("tools", self.tools_tokens)]

    def dropped(self) -> list[DroppedBlock]:
        """Return what did not enter, for the trace."""
        return [DroppedBlock(name=out.block.name, tokens=out.tokens, reason="over_budget") for out in self.out]

    def freeze(self, frozen: FrozenPrefix | None, window: int) -> FrozenPrefix:
        """Return the prefix to keep: the frozen one while the content is the same."""
        if frozen is not None and not changes(frozen, self):
            return frozen
        return FrozenPrefix(
            blocks=tuple(measured.block for measured in self.blocks),
            tools=self.tools,
            left_out=tuple(
                LeftOutBlock(name=out.block.name, content=_content_id(out.block), window=window) for out in self.out
            ),
        )


def encode_prefix(prefix: FrozenPrefix) -> bytes:
    """Return the canonical bytes of a prefix: JSON with sorted keys, in ASCII, without blanks."""
    values = msgspec.to_builtins(prefix)
    return json.dumps(values, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()


def decode_prefix(data: bytes) -> FrozenPrefix:
    """Return the prefix that `encode_prefix` wrote. Raises InvalidRecordError."""
    try:
        return msgspec.json.decode(data, type=FrozenPrefix)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidRecordError("FrozenPrefix", field="prefix", expected="a frozen prefix", got=str(error)) from error


def measured_prefix(
    contributors: Sequence[Contributor], collected: Collected, request: AssemblyRequest, estimate: Callable[[str], int]
) -> Prefix:
    """Return everything that wants to be in the prefix, measured. A contributor that failed keeps the
    blocks that it has in the frozen prefix: its failure must not break what was sent.
    """
    blocks = tuple(
        MeasuredBlock(block, estimate(block.content)) for block in _candidates(contributors, collected, request.frozen)
    )
    # In the dialect `constrained` the contributor `tools` gives them as text.
    tools = NO_TOOLS if request.dialect == "constrained" else tools_json(request.tools)
    tools_tokens = 0 if tools == NO_TOOLS else estimate(tools) + PER_TOOLS
    return Prefix(blocks, tools, tools_tokens, ())


def admit_prefix(prefix: Prefix, request: AssemblyRequest, budget: Budget, room: int) -> Prefix:
    """Return the prefix with the evictable blocks that may enter.

    They enter by priority, the latest registered first, while the prefix is within its share of the
    budget and `room` tokens, which is what the person's message leaves. One that once had to leave
    stays out until the prefix breaks for another reason: then trying again costs nothing.
    """
    left_out = _left_out(request)
    admitted = _admit(prefix, min(budget.prefix, room), left_out)
    if left_out and request.frozen is not None and changes(request.frozen, admitted):
        return _admit(prefix, min(budget.prefix, room), set())
    return admitted


def changes(frozen: FrozenPrefix, prefix: Prefix) -> tuple[str, ...]:
    """Return the names of what differs from the frozen prefix, in the order of the prefix; empty when
    its bytes can be sent as they were. Source and provenance are not sent and do not count.
    """
    before, now = frozen.blocks, tuple(measured.block for measured in prefix.blocks)
    names = list(dict.fromkeys(block.name for block in (*now, *before)))
    different = [name for name in names if _contents(before, name) != _contents(now, name)]
    if not different and [block.name for block in before] != [block.name for block in now]:
        different = ["order"]
    if frozen.tools != prefix.tools and "tools" not in different:
        different.append("tools")
    return tuple(different)


def _admit(prefix: Prefix, room: int, left_out: set[tuple[str, str]]) -> Prefix:
    order = sorted(
        (index for index, measured in enumerate(prefix.blocks) if measured.block.evictable),
        key=lambda index: (-prefix.blocks[index].block.priority, -index),
    )
    tokens, gone = sum(tokens for _, tokens in prefix.mandatory_rows()), set[int]()
    for index in order:
        measured = prefix.blocks[index]
        fits = tokens + measured.tokens <= room
        if fits and (measured.block.name, _content_id(measured.block)) not in left_out:
            tokens += measured.tokens
        else:
            gone.add(index)
    return Prefix(
        tuple(measured for index, measured in enumerate(prefix.blocks) if index not in gone),
        prefix.tools,
        prefix.tools_tokens,
        tuple(prefix.blocks[index] for index in order if index in gone),
    )


def _candidates(
    contributors: Sequence[Contributor], collected: Collected, frozen: FrozenPrefix | None
) -> Iterator[FrozenBlock]:
    for contributor in contributors:
        name = contributor.name
        if name in collected.blocks:
            yield from (_frozen(block) for block in collected.blocks[name] if block.placement == "prefix")
        elif frozen is not None:
            yield from (block for block in frozen.blocks if block.name == name)


def _left_out(request: AssemblyRequest) -> set[tuple[str, str]]:
    if request.frozen is None:
        return set()
    return {(out.name, out.content) for out in request.frozen.left_out if request.window <= out.window}


def _frozen(block: ContributionBlock) -> FrozenBlock:
    return FrozenBlock(
        name=block.name,
        content=block.content,
        source=block.source,
        provenance=block.provenance,
        priority=block.priority,
        evictable=block.evictable,
    )


def _contents(blocks: Sequence[FrozenBlock], name: str) -> list[str]:
    return [block.content for block in blocks if block.name == name]


def _content_id(block: FrozenBlock) -> str:
    return evidence_id(block.content.encode())
