"""The model of the state machine: what was acknowledged, slot by slot, and what may be there as well."""

from collections.abc import Sequence

from rune.records.envelope import EventEnvelope
from rune.records.events import Event
from rune.store.codec import content_of, prepare
from rune.store.event_store import Offset
from rune.store.identity import StoredIdentity
from rune.store.order import Located

REPAIR = "journal.repaired"


class Model:
    """Acknowledged events in the order of their slots; batches that were refused or never answered are `perhaps`
    until the journal is opened again: then each of them is there, whole, or it is not.
    """

    def __init__(self) -> None:
        self.slots: dict[str, list[Event]] = {}
        self.offsets: dict[str, Offset] = {}
        self.identities: dict[str, StoredIdentity] = {}
        self.perhaps: list[tuple[Event, ...]] = []
        self.erased: dict[str, str] = {}

    def events(self) -> list[Event]:
        """Return all that was acknowledged, in a fixed order."""
        return [event for slot in sorted(self.slots) for event in self.slots[slot]]

    def acknowledge(self, events: Sequence[Event], offsets: Sequence[Offset]) -> None:
        """Note what a store said is durable."""
        assert len(offsets) == len(events)
        for event, offset in zip(events, offsets, strict=True):
            self.slots.setdefault(offset.writer, []).append(event)
            self.offsets[event.event_id] = offset
            self.identities[event.event_id] = StoredIdentity(offset=offset, content=prepare(event).content)

    def settle(self, found: Sequence[Located]) -> None:
        """Learn from a journal that was opened again which of the doubtful events are there."""
        places = {envelope.event_id: offset for offset, envelope in found}
        for batch in self.perhaps:
            there = [event for event in batch if event.event_id in places]
            assert there in ([], list(batch)), f"{len(there)} of a batch of {len(batch)}"
            if there and there[0].event_id not in self.offsets:
                self.acknowledge(there, [places[event.event_id] for event in there])
        self.perhaps = []

    def place_anew(self, found: Sequence[Located], may_be_lost: set[str]) -> None:
        """Learn where events are after damage was mended: all of them but those that may be lost, each once."""
        events = {event.event_id: event for event in self.events()}
        places = {envelope.event_id: offset for offset, envelope in found if envelope.event_id in events}
        assert len(places) == sum(envelope.event_id in events for _, envelope in found), "an event is there twice"
        lost = events.keys() - places.keys()
        assert lost <= may_be_lost, f"lost: {lost - may_be_lost}"
        self.slots = {}
        for event_id, offset in sorted(places.items(), key=lambda place: place[1]):
            self.slots.setdefault(offset.writer, []).append(events[event_id])
            self.offsets[event_id] = offset
            self.identities[event_id] = StoredIdentity(offset=offset, content=self.identities[event_id].content)
        for event_id in lost:
            del self.offsets[event_id], self.identities[event_id]
            self.erased.pop(event_id, None)

    def check(self, found: Sequence[Located]) -> None:
        """Compare with what a store reads: each event once, in its slot's order, with its content."""
        doubtful = {event.event_id for batch in self.perhaps for event in batch} - self.offsets.keys()
        slots: dict[str, list[str]] = {}
        for offset, envelope in found:
            if envelope.event_type != REPAIR and envelope.event_id not in doubtful:
                slots.setdefault(offset.writer, []).append(envelope.event_id)
                self._compare(envelope)
        assert slots == {slot: [event.event_id for event in events] for slot, events in self.slots.items()}
        stamps = [envelope.hlc for _, envelope in found]
        assert stamps == sorted(stamps)

    def _compare(self, envelope: EventEnvelope) -> None:
        offset = self.offsets[envelope.event_id]
        assert (envelope.writer, envelope.seq) == (offset.writer, offset.seq)
        assert content_of(envelope) == self.identities[envelope.event_id].content
