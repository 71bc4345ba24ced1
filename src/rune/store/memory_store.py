"""The journal of a private conversation: the same promises but durability."""

import threading
from collections.abc import Collection, Iterator, Sequence

from rune.errors import StorageUnavailableError
from rune.host.clock import Clock
from rune.records.envelope import EventEnvelope
from rune.records.events import Event
from rune.store.codec import CHAIN_START, Place, PreparedEvent, parse, prepare, seal
from rune.store.event_store import Cursor, Offset
from rune.store.evidence_store import Evidence, MemoryEvidenceStore
from rune.store.hybrid_clock import HybridClock
from rune.store.identity import IdentityIndex, Lookup, StoredIdentity, same_fact
from rune.store.order import reading_order

MEMORY_WRITER = "m000"


class MemoryEventStore:
    """Keeps sealed envelopes in memory; passes the contract suite of DurableEventStore. Thread-safe.

    Bodies over 8 KiB go to `evidence`, which by default is in memory too.
    """

    def __init__(
        self, clock: Clock, *, device_id: str, evidence: Evidence | None = None, lookup: Lookup | None = None
    ) -> None:
        self.evidence: Evidence = MemoryEvidenceStore(clock) if evidence is None else evidence
        self._device_id = device_id
        self._hlc = HybridClock(clock)
        self._identities = IdentityIndex(lookup)
        self._events: list[tuple[Offset, EventEnvelope]] = []
        self._chain = CHAIN_START
        self._closed = False
        self._lock = threading.Lock()

    async def append(self, event: Event) -> Offset:
        """Store one event (EventStore.append)."""
        return (await self.append_many((event,)))[0]

    async def append_many(self, events: Sequence[Event]) -> tuple[Offset, ...]:
        """Store all of them or none (EventStore.append_many)."""
        prepared = [prepare(event) for event in events]
        with self._lock:
            if self._closed:
                raise StorageUnavailableError("this store is closed")
            return self._store(prepared)

    def read(self, after: Cursor, *, seen: Cursor | None = None) -> Iterator[tuple[Offset, EventEnvelope]]:
        """Iterate over what came after the cursor; here everything is at once as durable as it gets."""
        place = after.get(MEMORY_WRITER)
        yield from self._from(0 if place is None else place.seq)

    def replay(
        self, partition: str | None = None, types: Collection[str] | None = None
    ) -> Iterator[tuple[Offset, EventEnvelope]]:
        """Iterate over everything in order (EventStore.replay)."""
        chosen = (
            item
            for item in self._from(0)
            if (partition is None or item[1].partition_key == partition)
            and (types is None or item[1].event_type in types)
        )
        yield from chosen if partition is None else sorted(chosen, key=reading_order(partition))

    def head(self) -> Cursor:
        """Return the offset of the last event."""
        return {MEMORY_WRITER: self._events[-1][0]} if self._events else {}

    async def close(self) -> None:
        """Accept no more."""
        self._closed = True

    def _store(self, prepared: Sequence[PreparedEvent]) -> tuple[Offset, ...]:
        fresh: dict[str, StoredIdentity] = {}
        offsets: list[Offset] = []
        new: list[PreparedEvent] = []
        for item in prepared:
            event_id = item.event.event_id
            if event_id in fresh:
                offsets.append(same_fact(event_id, fresh[event_id], item.content))
            elif (first := self._identities.find(event_id, item.content)) is not None:
                offsets.append(first)
            else:
                offset = Offset(MEMORY_WRITER, len(self._events) + len(new) + 1, 0, 0)
                fresh[event_id] = StoredIdentity(offset=offset, content=item.content)
                offsets.append(offset)
                new.append(item)
        chain, rows = self._chain, list[tuple[Offset, EventEnvelope]]()
        for index, item in enumerate(new):
            offset = fresh[item.event.event_id].offset
            place = Place(
                writer=MEMORY_WRITER,
                seq=offset.seq,
                hlc=self._hlc.tick(),
                more=len(new) - index - 1,
                prev=chain,
                device_id=self._device_id,
            )
            line, chain = seal(item, place)
            rows.append((offset, parse(line[:-1]).envelope))
        for item in new:
            if item.outgrown:
                self.evidence.put(item.body, source=f"event:{item.event.event_id}")
        self._events += rows
        self._chain = chain
        for event_id, identity in fresh.items():
            self._identities.remember(event_id, identity)
        return tuple(offsets)

    def _from(self, start: int) -> Iterator[tuple[Offset, EventEnvelope]]:
        # What is appended meanwhile is seen too, as in a file; the list only grows.
        while start < len(self._events):
            yield self._events[start]
            start += 1
