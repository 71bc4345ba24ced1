"""What contributors give, what the broker makes of it, and the port between them."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from rune.records.messages import ConversationMessageRecord, Provenance
from rune.records.tools import ToolSchema
from rune.records.traces import BlockPlacement, Dialect, DroppedBlock, PromptRecipe


class ContributionBlock(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of the prompt (context.md, ContextBroker). `priority`: higher enters first;
    `source` says where it came from in a few words, for a person.
    """

    name: str
    priority: int
    content: str
    source: str
    evictable: bool
    placement: BlockPlacement
    provenance: Provenance


class FrozenBlock(msgspec.Struct, frozen=True, kw_only=True):
    """One block of a frozen prefix. `priority` and `evictable` are its contributor's, needed when that
    one fails later and the block must be admitted again without it.
    """

    name: str
    content: str
    source: str
    provenance: Provenance
    priority: int = 100
    evictable: bool = False


class LeftOutBlock(msgspec.Struct, frozen=True, kw_only=True):
    """An evictable block that had to leave the prefix for a message. It stays out while its content is
    the same (`content` is its evidence id) and the window no larger than `window`: a block that came
    back with the next short message would break the prefix twice.
    """

    name: str
    content: str
    window: int


class FrozenPrefix(msgspec.Struct, frozen=True, kw_only=True):
    """The prefix as it was when the conversation started or last broke: its blocks in order and the
    rendered tools (JSON array). Kept as evidence, encoded by `prefix.encode_prefix`.
    """

    blocks: tuple[FrozenBlock, ...]
    tools: str
    left_out: tuple[LeftOutBlock, ...] = ()


class ProjectFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the project that may instruct the model: its path for a person, its text."""

    path: str
    text: str


class AssemblyRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a prompt depends on: same request, same bytes.

    `history` is all earlier messages that may be sent, oldest first, without `message` (the person's
    new one). `archived` are ids that left the prompt before and stay out. `frozen` None: the conversation
    has no prefix yet. `last_messages` are the bytes of the last request's messages array (b"" if none).
    `window` in tokens. `project` holds the instructing files of a trusted folder, outermost first; it is
    empty where the folder is not trusted.
    """

    conversation_id: str
    message: ConversationMessageRecord
    history: Sequence[ConversationMessageRecord]
    archived: frozenset[str]
    frozen: FrozenPrefix | None
    last_messages: bytes
    tools: Sequence[ToolSchema]
    model: str
    dialect: Dialect
    window: int
    project: Sequence[ProjectFile]


class ContextTrace(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided about a prompt. Tokens by estimate; `blobs` are the contents that the recipe
    names by evidence id and that must be stored with it; `archived_now` are ids that left with this
    prompt; `prefix_break` the reason of a break, None when the prefix is as it was. `tail` is what was
    rendered before the person's words: the message's record must carry it in every later request.
    """

    recipe: PromptRecipe
    blobs: Mapping[str, bytes]
    window: int
    input_budget: int
    per_block_tokens: Mapping[str, int]
    dropped: tuple[DroppedBlock, ...]
    archived_now: tuple[str, ...]
    prefix_reuse: float | None
    prefix_break: str | None
    degraded: tuple[str, ...]
    tail: str = ""


class Capsule(msgspec.Struct, frozen=True, kw_only=True):
    """A rendered prompt: what the transport sends, byte for byte. `estimated` in tokens. `trace` says how
    it came about and is all that `extend` needs, in this process or, after a pause, in another one.
    """

    messages: bytes
    tools: bytes
    estimated: int
    frozen: FrozenPrefix
    trace: ContextTrace


class Contributor(Protocol):
    """Gives blocks for one prompt. Whatever it raises is a T1 failure under its name; the turn goes on."""

    @property
    def name(self) -> str:
        """The name under which its blocks and failures appear."""
        ...

    def contribute(self, request: AssemblyRequest) -> Sequence[ContributionBlock]:
        """Return its blocks; none is a good answer."""
        ...
