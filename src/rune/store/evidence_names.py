"""Which blobs an event names: only fields that hold evidence ids, never what looks like one in somebody's text."""

from collections.abc import Iterator

import msgspec

from rune.errors import StorageError
from rune.records.approvals import PendingApprovalRecord
from rune.records.envelope import EventEnvelope
from rune.records.events import EventImported, PinImported, PrefixChanged
from rune.records.messages import ConversationMessageRecord, ConversationRecord
from rune.records.record import Record
from rune.records.tasks import TaskStateRecord
from rune.records.tools import CommandRun, ToolResult
from rune.records.traces import InferenceTraceRecord
from rune.store.codec import BlobReader, evidence_form, is_digest


class _LoopState(msgspec.Struct, frozen=True):
    """What is read of a LoopState, of whatever version."""

    capsule: str = ""


def names_evidence(event_type: str) -> bool:
    """Say whether bodies of this type can name blobs."""
    return event_type in _NAMING


def outgrown(envelope: EventEnvelope) -> bool:
    """Say whether the event's body itself lies in evidence, under its `payload_hash`."""
    return bytes(envelope.body) == evidence_form(envelope.payload_hash)


def blobs_of(body: Record) -> frozenset[str]:
    """Return the evidence ids that a body names itself."""
    return frozenset(name for name in _named(body) if name and is_digest(name))


def blobs_behind(body: Record, evidence: BlobReader) -> frozenset[str]:
    """Return the evidence ids that stand in the blobs which a body names: the prompt that a question went on from."""
    if not isinstance(body, PendingApprovalRecord) or not is_digest(body.loop_state):
        return frozenset()
    try:
        name = msgspec.json.decode(evidence.get(body.loop_state), type=_LoopState).capsule
    except (StorageError, msgspec.DecodeError):
        return frozenset()  # nothing can go on from it: nobody needs that prompt, and the loss itself is told elsewhere
    return frozenset({name}) if is_digest(name) else frozenset()


def _named(body: Record) -> Iterator[str | None]:
    match body:
        case ConversationRecord():
            yield body.prefix
        case ConversationMessageRecord():
            yield from body.attachments
        case PrefixChanged():
            yield body.prefix
        case ToolResult() | CommandRun():
            yield body.output
        case TaskStateRecord():
            yield body.outcome_ref  # an imported task rests on its original
        case EventImported() | PinImported():
            yield body.evidence
        case PendingApprovalRecord():
            yield body.loop_state
        case InferenceTraceRecord():
            for request in body.requests:
                yield from request.blobs
        case _:
            return


_NAMING = frozenset(
    {
        "conversation.created",
        "conversation.forked",
        "user.message",
        "response.generated",
        "tool.message",
        "context.prefix_changed",
        "tool.result",
        "command.run",
        "approval.requested",
        "approval.decided",
        "approval.expired",
        "inference.traced",
        "model.traced",
        "event.imported",
        "pin.imported",
        "task.created",
        "task.amended",
        "task.transition",
        "task.stale",
        "task.imported",
    }
)
