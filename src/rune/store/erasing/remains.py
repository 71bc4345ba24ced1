"""What stays behind an erasure: who else says the same, which blobs nobody needs, which prompts cannot be rebuilt."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec

from rune.errors import EvidenceTamperedError, NotFoundError
from rune.records.envelope import EventEnvelope
from rune.records.messages import ConversationMessageRecord
from rune.records.record import Record
from rune.records.traces import InferenceTraceRecord
from rune.store.codec import ErasedBody
from rune.store.erasing.aim import Decode
from rune.store.erasing.choice import Choice
from rune.store.evidence_names import blobs_of, outgrown
from rune.store.evidence_store import Evidence
from rune.store.order import Located
from rune.text.sought import Sought

# Notes that quote somebody: they go with the words. Everything else that holds them was said on its own.
_QUOTING = frozenset(
    {
        "turn.failed",
        "inference.traced",
        "capability.failed",
        "background.failed",
        "storage.degraded",
        "model.unavailable",
        "session.checkpoint",
    }
)


class Other(msgspec.Struct, frozen=True):
    """An event that stays and holds the text: of a message `id` is its own, else the event's; `conversation` may be
    `system` or another shared partition.
    """

    id: str
    event_type: str
    conversation: str


class Remains(msgspec.Struct, kw_only=True):
    """`blobs` nobody needs any more or hold the text, `bodies` are outgrown bodies of events that are erased;
    `traces` counts, by conversation, the prompts that can no longer be rebuilt.
    """

    others: list[Other] = []
    blobs: frozenset[str] = frozenset()
    bodies: frozenset[str] = frozenset()
    traces: Counter[str] = msgspec.field(default_factory=Counter[str])


class _Names:
    """Blob names by who needs them."""

    def __init__(self) -> None:
        self.kept: set[str] = set()
        self.bodies: set[str] = set()
        self.left: set[str] = set()
        self.left_bodies: set[str] = set()


def remains(
    events: Iterable[Located],
    decode: Decode,
    evidence: Evidence,
    choice: Choice,
    sought: Sought,
    holding: frozenset[str],
    messages: frozenset[str],
) -> Remains:
    """Look through everything once more for what `choice` leaves behind. `holding` are the blobs that hold the text,
    `messages` the ids of messages that go. Notes that quote the text are added to the choice.
    """
    found, names = Remains(), _Names()
    for item in events:
        envelope = item[1]
        body = decode(envelope)
        if isinstance(body, ErasedBody):
            names.left_bodies.add(envelope.payload_hash)
            continue
        if sought and envelope.event_id not in choice.chosen and sought.within(_bytes_of(envelope, evidence)):
            if envelope.event_type in _QUOTING:
                choice.add(item, None, ())
            else:
                found.others.append(_other(envelope, body))
        if envelope.event_id in choice.chosen:
            names.left |= blobs_of(body)
            names.left_bodies.add(envelope.payload_hash)
            continue
        names.kept |= blobs_of(body)
        if outgrown(envelope):
            names.bodies.add(envelope.payload_hash)
        if isinstance(body, InferenceTraceRecord) and _rests_on(body, holding, messages):
            found.traces[envelope.partition_key] += 1
    found.bodies = frozenset(name for name in names.left_bodies - names.bodies - names.kept if evidence.has(name))
    unneeded = names.left - names.kept - names.bodies
    found.blobs = frozenset(name for name in unneeded if evidence.has(name)) | (holding - names.bodies - found.bodies)
    return found


def blobs_holding(root: Path, sought: Sought) -> frozenset[str]:
    """Return the ids of the blobs that hold one of the texts."""
    if not sought:
        return frozenset()
    return frozenset(
        f"sha256:{path.parent.name}{path.name}"
        for path in sorted(root.glob("[0-9a-f][0-9a-f]/*"))
        if path.is_file() and sought.within(path.read_bytes())
    )


def _other(envelope: EventEnvelope, body: Record) -> Other:
    identity = body.id if isinstance(body, ConversationMessageRecord) else envelope.event_id
    return Other(identity, envelope.event_type, envelope.partition_key)


def _rests_on(trace: InferenceTraceRecord, holding: frozenset[str], messages: frozenset[str]) -> bool:
    sent = {entry.message_id for request in trace.requests for entry in request.history}
    return not holding.isdisjoint(blobs_of(trace)) or not messages.isdisjoint(sent)


def _bytes_of(envelope: EventEnvelope, evidence: Evidence) -> bytes:
    if not outgrown(envelope):
        return bytes(envelope.body)
    try:
        return evidence.get(envelope.payload_hash)
    except (NotFoundError, EvidenceTamperedError):
        return b""  # it is lost: nobody can read it there
