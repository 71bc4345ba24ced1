"""Every event that can be stored: a closed registry, name to meaning, partition and body.

An event is a fact in the past tense. Emitting a name that is not here is a ValueError: an unknown
event is a bug, not data. Names whose work has not been built yet are reserved, so that their place
is settled; emitting one of them is a ValueError too.
"""

from typing import Literal

import msgspec

from rune.records.approvals import PendingApprovalRecord
from rune.records.envelope import EventEnvelope
from rune.records.messages import ConversationMessageRecord, ConversationRecord
from rune.records.models import ModelScoreRecord, ModelUnavailable, Thinking
from rune.records.permissions import PermissionChanged, RuleAdded, RuleRevoked
from rune.records.record import Record
from rune.records.tasks import TaskStateRecord
from rune.records.tools import CommandRun, PreparedCall, ToolResult
from rune.records.traces import InferenceTraceRecord
from rune.records.turns import TurnRecord

PartitionKind = Literal["conversation", "memory", "model", "system"]


class SessionStarted(Record, frozen=True, kw_only=True):
    """A process opened the home. `argv_kind` is `app`, `headless` or `command`, never the arguments."""

    schema_version: int = 1
    id: str
    version: str
    surface: Literal["app", "headless", "command"]
    pid: int


class SessionEnded(Record, frozen=True, kw_only=True):
    """It closed in order; a session without this was killed."""

    schema_version: int = 1
    id: str


class TurnFailed(Record, frozen=True, kw_only=True):
    """A turn's answer itself failed (T0). `error` is the class, `message` at most 300 characters."""

    schema_version: int = 1
    turn_id: str
    conversation_id: str
    error: str
    message: str
    hint: str


class ConversationRenamed(Record, frozen=True, kw_only=True):
    """A conversation has another title."""

    schema_version: int = 1
    conversation_id: str
    title: str


class ConversationHidden(Record, frozen=True, kw_only=True):
    """A conversation is no longer listed, or is again."""

    schema_version: int = 1
    conversation_id: str
    hidden: bool


class PrefixChanged(Record, frozen=True, kw_only=True):
    """The frozen prefix of a conversation was replaced: a traced break. `prefix` is an evidence id."""

    schema_version: int = 1
    conversation_id: str
    prefix: str
    reason: str


class HistoryArchived(Record, frozen=True, kw_only=True):
    """These messages are no longer sent; they stay in the journal. `reason` names why."""

    schema_version: int = 1
    conversation_id: str
    turn_id: str
    message_ids: tuple[str, ...]
    reason: str


class ModelSelected(Record, frozen=True, kw_only=True):
    """The model of a conversation changed, by whom it was chosen."""

    schema_version: int = 1
    conversation_id: str
    model: str
    provider: str
    previous: str


class ThinkingSelected(Record, frozen=True, kw_only=True):
    """Whether and how much the models of a conversation think before they answer, from the next turn on.

    A fact of its own and no field of `model.selected`: it holds whichever model answers, and what was written before
    there was such a choice stays readable.
    """

    schema_version: int = 1
    conversation_id: str
    thinking: Thinking
    previous: Thinking


class CapabilityFailed(Record, frozen=True, kw_only=True):
    """A subsystem failed and the turn went on without it (T1)."""

    schema_version: int = 1
    subsystem: str
    error: str
    message: str
    context: str


class BackgroundFailed(Record, frozen=True, kw_only=True):
    """Background work failed (T2)."""

    schema_version: int = 1
    subsystem: str
    error: str
    message: str
    context: str


class StorageDegraded(Record, frozen=True, kw_only=True):
    """Something of the store works less well than it should; the journal itself is intact."""

    schema_version: int = 1
    what: str
    message: str


class TrustGranted(Record, frozen=True, kw_only=True):
    """A folder may instruct Rune. `digest` is sha256 over its instructing files."""

    schema_version: int = 1
    folder: str
    digest: str
    files: tuple[str, ...]


class TrustRevoked(Record, frozen=True, kw_only=True):
    """It may no longer."""

    schema_version: int = 1
    folder: str


class JournalRepaired(Record, frozen=True, kw_only=True):
    """A torn tail, or damage, was cut off and kept beside its segment. `bytes` is how much."""

    schema_version: int = 1
    segment: str
    kept_as: str
    bytes: int
    reason: str


class JournalForked(Record, frozen=True, kw_only=True):
    """The same `pseq` was given twice in a conversation; both events are kept."""

    schema_version: int = 1
    conversation_id: str
    pseq: int
    event_ids: tuple[str, ...]


class BodyErased(Record, frozen=True, kw_only=True):
    """Bodies of these events were erased by the owner.

    `blobs` are the evidence ids that went with them, or were lost before, although events that stay name them: nobody
    is to look for them any more. Where there is none the field is not stored, as in what was written before it came.
    """

    schema_version: int = 1
    event_ids: tuple[str, ...]
    reason: str
    blobs: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET

    @property
    def gone(self) -> tuple[str, ...]:
        """The blobs."""
        return () if isinstance(self.blobs, msgspec.UnsetType) else self.blobs


class SessionCheckpoint(Record, frozen=True, kw_only=True):
    """Where the work stands, written before a compaction at red or when no clean point comes."""

    schema_version: int = 1
    conversation_id: str
    task_id: str
    phase: str
    files: tuple[str, ...]
    decisions: tuple[str, ...]
    remaining: tuple[str, ...]
    next_action: str


class EventImported(Record, frozen=True, kw_only=True):
    """Something that another program or an earlier version kept, as it was brought in.

    `original_id`, `original_type`, `source` and `channel` are its own words, at most 200 characters of each and ""
    where it has none. `occurred_at` is RFC 3339, and "" when it names no time that can be read: the envelope's
    `timestamp` is only when it was brought in. `became` is the id of what was made of it, "" when nothing was.
    `evidence` is the evidence id of the whole, masked; "" when what it became names that.
    """

    schema_version: int = 1
    original_id: str
    original_type: str
    source: str
    channel: str
    occurred_at: str
    became: str
    evidence: str


class PinImported(Record, frozen=True, kw_only=True):
    """A pinned note of an earlier version. Each field holds what stood under that label, in order.

    `original_id`, `occurred_at` and `evidence` as in EventImported.
    """

    schema_version: int = 1
    original_id: str
    topic: tuple[str, ...]
    open_question: tuple[str, ...]
    outcome: tuple[str, ...]
    status: tuple[str, ...]
    context: tuple[str, ...]
    occurred_at: str
    evidence: str


class EventKind(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the registry. `body` is None for a name that no work emits yet."""

    name: str
    meaning: str
    partition: PartitionKind
    body: type[Record] | None


def _kinds(partition: PartitionKind, *rows: tuple[str, str, type[Record] | None]) -> dict[str, EventKind]:
    return {name: EventKind(name=name, meaning=meaning, partition=partition, body=body) for name, meaning, body in rows}


EVENT_KINDS: dict[str, EventKind] = {
    **_kinds(
        "conversation",
        ("conversation.created", "a conversation began", ConversationRecord),
        ("conversation.renamed", "it has another title", ConversationRenamed),
        ("conversation.forked", "it was branched off an earlier message of another", ConversationRecord),
        ("conversation.hidden", "it is no longer listed, or is again", ConversationHidden),
        ("turn.started", "a turn began", TurnRecord),
        ("turn.finished", "a turn ended, for this reason", TurnRecord),
        ("turn.failed", "a turn's answer itself failed", TurnFailed),
        ("user.message", "the person said something", ConversationMessageRecord),
        ("response.generated", "the model answered", ConversationMessageRecord),
        ("tool.message", "a tool's result as the model sees it", ConversationMessageRecord),
        ("tool.intent", "a prepared call is about to act", PreparedCall),
        ("tool.result", "what a call came to", ToolResult),
        ("command.run", "the person ran a shell command", CommandRun),
        ("owner.correction", "the person corrected an answer", None),
        ("task.created", "a task began", TaskStateRecord),
        ("task.amended", "a message went on with a task", TaskStateRecord),
        ("task.transition", "a task changed its state", TaskStateRecord),
        ("task.stale", "a task has not moved for long", TaskStateRecord),
        ("task.imported", "a task was brought in from elsewhere", TaskStateRecord),
        ("approval.requested", "the person is asked", PendingApprovalRecord),
        ("approval.decided", "the person answered", PendingApprovalRecord),
        ("approval.expired", "nobody answered in time", PendingApprovalRecord),
        ("inference.traced", "what a run's model calls saw and cost", InferenceTraceRecord),
        ("summary.written", "a summary replaces older history", None),
        ("summary.undone", "a compaction was taken back", None),
        ("history.archived", "messages left the prompt and stay in the journal", HistoryArchived),
        ("session.checkpoint", "where the work stands", SessionCheckpoint),
        ("context.prefix_changed", "the frozen prefix was replaced", PrefixChanged),
        ("context.pressure", "the context's health level changed", None),
        ("model.selected", "another model was chosen", ModelSelected),
        ("thinking.selected", "how much the model thinks was chosen", ThinkingSelected),
        ("permission.changed", "another permission mode", PermissionChanged),
        ("mode.changed", "another behaviour mode", None),
    ),
    **_kinds(
        "memory",
        ("memory.created", "a memory was kept", None),
        ("memory.recalled", "memories were shown to the model", None),
        ("memory.conflict", "two memories disagree", None),
        ("memory.superseded", "a newer fact took its place", None),
        ("memory.disputed", "it is unclear which holds", None),
        ("memory.retired", "it is no longer offered", None),
        ("memory.erased", "the owner erased it", None),
        ("memory.abstraction_candidate", "several episodes suggest a fact", None),
        ("dream.proposed", "a consolidation proposes changes", None),
        ("dream.applied", "its changes were accepted", None),
        ("dream.undone", "they were taken back", None),
        ("lesson.candidate", "something may be worth learning", None),
        ("lesson.promoted", "it is kept as a lesson", None),
        ("commitment.created", "something was promised", None),
        ("commitment.closed", "it was kept or dropped", None),
    ),
    **_kinds(
        "model",
        ("model.score", "how a model did", ModelScoreRecord),
        ("model.traced", "what a side call of no conversation saw and cost", InferenceTraceRecord),
        ("model.unavailable", "a model or its server could not be reached", ModelUnavailable),
    ),
    **_kinds(
        "system",
        ("session.started", "a process opened the home", SessionStarted),
        ("session.ended", "it closed in order", SessionEnded),
        ("trust.granted", "a folder may instruct Rune", TrustGranted),
        ("trust.revoked", "it may no longer", TrustRevoked),
        ("rule.added", "a permission rule was made", RuleAdded),
        ("rule.revoked", "it was taken back", RuleRevoked),
        ("rule.fired", "it decided something", None),
        ("capability.requested", "a subsystem was asked for", None),
        ("capability.selected", "one was chosen", None),
        ("capability.failed", "a turn went on without it", CapabilityFailed),
        ("capability.unavailable", "it is not there", None),
        ("background.failed", "background work failed", BackgroundFailed),
        ("storage.degraded", "the store works less well", StorageDegraded),
        ("journal.repaired", "a torn tail or damage was cut off and kept", JournalRepaired),
        ("journal.forked", "one place in a conversation was given twice", JournalForked),
        ("body.erased", "bodies were erased by the owner", BodyErased),
        ("config.changed", "a setting changed", None),
        ("event.imported", "an event of another program", EventImported),
        ("pin.imported", "a pinned note of an earlier version", PinImported),
    ),
}


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """An event before it is sealed into a line: the store adds slot, order, device and hashes.

    `partition_key` is a conversation id, or `memory`, `model`, `system`. `pseq` is given by the
    ledger that holds the conversation's lease and is 0 elsewhere. `authorization` is None, `owner`,
    `approval:<id>` or `rule:<id>`.
    """

    event_id: str
    event_type: str
    partition_key: str
    actor_id: str
    timestamp: str
    body: Record
    pseq: int = 0
    parent_id: str | None = None
    authorization: str | None = None


def kind_of(event_type: str) -> EventKind:
    """Return the registry's entry. Raises ValueError for a name that is not registered."""
    try:
        return EVENT_KINDS[event_type]
    except KeyError:
        raise ValueError(f"event type {event_type!r} is not registered") from None


def check_event(event: Event) -> None:
    """Raise ValueError when name, body type or partition of the event do not fit the registry."""
    kind = kind_of(event.event_type)
    if kind.body is None:
        raise ValueError(f"event type {event.event_type!r} is reserved and not emitted by this version")
    if type(event.body) is not kind.body:
        raise ValueError(f"{event.event_type} carries a {kind.body.__name__}, not a {type(event.body).__name__}")
    shared = kind.partition != "conversation"
    if shared and event.partition_key != kind.partition:
        raise ValueError(f"{event.event_type} belongs to partition {kind.partition!r}, not {event.partition_key!r}")
    if not shared and not event.partition_key.startswith("cnv_"):
        raise ValueError(f"{event.event_type} belongs to a conversation, not to {event.partition_key!r}")


def event_of(envelope: EventEnvelope, body: Record) -> Event:
    """Return what was sealed into an envelope, with its body: the same event, as it was before it had a place."""
    return Event(
        event_id=envelope.event_id,
        event_type=envelope.event_type,
        partition_key=envelope.partition_key,
        actor_id=envelope.actor_id,
        timestamp=envelope.timestamp,
        body=body,
        pseq=envelope.pseq,
        parent_id=envelope.parent_id,
        authorization=envelope.authorization,
    )
