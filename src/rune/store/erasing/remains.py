"""What stays behind an erasure: who else says the same, which blobs nobody needs, which prompts cannot be rebuilt."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec

from rune.errors import EvidenceTamperedError, NotFoundError, StorageUnavailableError
from rune.records.envelope import EventEnvelope
from rune.records.messages import ConversationMessageRecord
from rune.records.record import Record
from rune.records.traces import InferenceTraceRecord
from rune.store.codec import ErasedBody
from rune.store.erasing.aim import Decode
from rune.store.erasing.choice import Choice
from rune.store.evidence_names import blobs_behind, blobs_of, outgrown
from rune.store.evidence_store import Evidence
from rune.store.failures import why_unreadable
from rune.store.order import Located
from rune.text.sought import Sought

# Notes that quote somebody: they go with the words. Everything else that holds them was said on its own.
_QUOTING = frozenset(
    {
        "turn.failed",
        "inference.traced",
        "model.traced",
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
    """`blobs` nobody needs any more, or hold the text and only the memory of prompts names them; `bodies` are outgrown
    bodies of events that are erased; `traces` counts, by conversation, the prompts that can no longer be rebuilt.
    `missed` are those blobs, and those that were lost before, that events which stay name.
    """

    others: list[Other] = []
    blobs: frozenset[str] = frozenset()
    bodies: frozenset[str] = frozenset()
    traces: Counter[str] = msgspec.field(default_factory=Counter[str])
    missed: frozenset[str] = frozenset()


class _Names:
    """Blob names by who needs them."""

    def __init__(self) -> None:
        self.kept: set[str] = set()
        # Named by more than a trace: an original, a frozen prefix. What stays would be worth less without it.
        self.needed: set[str] = set()
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
        says_it = sought and sought.within(_bytes_of(envelope, evidence))
        if says_it and envelope.event_id not in choice.chosen and envelope.event_type in _QUOTING:
            choice.add(item, None, ())
        if envelope.event_id in choice.chosen:
            names.left |= blobs_of(body) | blobs_behind(body, evidence)
            names.left_bodies.add(envelope.payload_hash)
            continue
        named = blobs_of(body)
        # A prompt that a question went on from is kept for it, and goes with the text all the same: not `needed`.
        names.kept |= named | blobs_behind(body, evidence)
        if not isinstance(body, InferenceTraceRecord):
            names.needed |= named
        if says_it or (not isinstance(body, InferenceTraceRecord) and not holding.isdisjoint(named)):
            found.others.append(_other(envelope, body))
        if outgrown(envelope):
            names.bodies.add(envelope.payload_hash)
        if isinstance(body, InferenceTraceRecord) and _rests_on(body, holding, messages):
            found.traces[envelope.partition_key] += 1
    found.bodies = frozenset(name for name in names.left_bodies - names.bodies - names.kept if evidence.has(name))
    # Also what is lost: who erases what rests on it does not look for it any more.
    lost = frozenset(name for name in names.left & names.kept if read_whole(evidence, name) is None)
    unneeded = (names.left - names.kept - names.bodies) | lost
    telling = holding - names.bodies - names.needed - found.bodies
    found.blobs = frozenset(name for name in unneeded if evidence.has(name)) | telling
    found.missed = (found.blobs | lost) & names.kept
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


def read_whole(evidence: Evidence, name: str) -> bytes | None:
    """Return the bytes of a blob; None where it is lost for good. Raises StorageUnavailableError where that is not
    known.
    """
    try:
        return evidence.get(name)
    except (NotFoundError, EvidenceTamperedError):
        return None
    except StorageUnavailableError as error:
        if why_unreadable(error.__cause__) is None:
            raise
        return None


def _other(envelope: EventEnvelope, body: Record) -> Other:
    identity = body.id if isinstance(body, ConversationMessageRecord) else envelope.event_id
    return Other(identity, envelope.event_type, envelope.partition_key)


def _rests_on(trace: InferenceTraceRecord, holding: frozenset[str], messages: frozenset[str]) -> bool:
    sent = {entry.message_id for request in trace.requests for entry in request.history}
    return not holding.isdisjoint(blobs_of(trace)) or not messages.isdisjoint(sent)


def _bytes_of(envelope: EventEnvelope, evidence: Evidence) -> bytes:
    if not outgrown(envelope):
        return bytes(envelope.body)
    return read_whole(evidence, envelope.payload_hash) or b""  # where it is lost nobody can read it
