"""What a model call saw, as a recipe from which the prompt can be rebuilt byte for byte."""

from typing import Literal

from rune.records.models import ThinkLevel
from rune.records.record import Record

BlockPlacement = Literal["prefix", "body", "tail", "last"]
DropReason = Literal["over_budget", "struck_by_owner", "history_trimmed"]
Dialect = Literal["ollama", "openai", "constrained"]
"""How messages are written: the two servers' ways with native calls, and plain text with calls as JSON."""


class RecipeBlock(Record, frozen=True, kw_only=True):
    """One admitted block: `blob` is the evidence id of its content."""

    name: str
    placement: BlockPlacement
    tokens: int
    blob: str


class RecipeMessage(Record, frozen=True, kw_only=True):
    """One message of history in this prompt: `rendering` is sha256 of its rendered bytes."""

    message_id: str
    rendering: str


class DroppedBlock(Record, frozen=True, kw_only=True):
    """A block that did not enter. `message_ids` names the history that left, oldest first."""

    name: str
    tokens: int
    reason: DropReason
    message_ids: tuple[str, ...] = ()


class PromptRecipe(Record, frozen=True, kw_only=True, omit_defaults=True):
    """How one request was built. `messages_hash` is sha256 of the rendered array of messages,
    `tools` the evidence id of the rendered tools ("" when none were offered), `format` that of the JSON schema which
    held the answer ("": nothing did). `think` and `temperature` as they were asked for; None left them to the model.

    What has a default is stored only where it differs: older recipes lack it.
    """

    dialect: Dialect
    prefix: str
    blocks: tuple[RecipeBlock, ...]
    history: tuple[RecipeMessage, ...]
    tools: str
    messages_hash: str
    messages_bytes: int
    prompt_tokens_estimated: int
    format: str = ""
    think: ThinkLevel | None = None
    temperature: float | None = None

    @property
    def blobs(self) -> frozenset[str]:
        """The evidence ids that it names."""
        return frozenset({self.prefix, self.tools, self.format, *(block.blob for block in self.blocks)}) - {""}


class TracedToolCall(Record, frozen=True, kw_only=True):
    """One tool call of the run, as it went."""

    name: str
    source: str
    outcome: str
    milliseconds: int | None


class InferenceTraceRecord(Record, frozen=True, kw_only=True):
    """Body of `inference.traced`: one for each run and each side call (context.md, Traces); of `model.traced` where a
    side call belongs to no conversation. Times in milliseconds, sizes in tokens; None where nobody measured it.
    `requests` holds one recipe a model call; of a side call it has one block, the whole array of messages.
    """

    schema_version: int = 1
    id: str
    kind: Literal["conversation", "side"]
    provider: str
    model: str
    remote: bool
    turn_id: str | None
    task_id: str | None
    conversation_id: str | None
    window: int
    num_ctx: int
    input_budget: int
    model_calls: int
    prompt_tokens_estimated: int
    prompt_tokens_served: int | None
    cached_tokens: int | None
    output_tokens: int | None
    latency_ms: int | None
    first_token_ms: int | None
    model_time_ms: int | None
    per_block_tokens: dict[str, int]
    dropped_blocks: tuple[DroppedBlock, ...]
    folds: tuple[str, ...] = ()
    compaction: str | None = None
    prefix_reuse: float | None
    prefix_break: str | None
    tools_exposed: tuple[str, ...] = ()
    tool_calls: tuple[TracedToolCall, ...] = ()
    memories_exposed: tuple[str, ...] = ()
    memory_tokens: int = 0
    degraded: tuple[str, ...] = ()
    cost_usd: float | None = None
    cost_basis: Literal["local-unpriced", "price-map"] = "local-unpriced"
    stop_reason: str
    success: bool
    error: str = ""
    requests: tuple[PromptRecipe, ...]
