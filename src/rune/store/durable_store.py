"""The journal on disk: appending to a slot of one's own, reading all of them in order (spine.md)."""

import asyncio
import contextlib
import heapq
import os
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from rune.errors import (
    JournalMovedError,
    NewerFormatError,
    StorageError,
    StorageUnavailableError,
    UnmigratedDialectError,
)
from rune.host.clock import Clock
from rune.host.ids import IdSource
from rune.records.events import Event, JournalRepaired
from rune.records.times import rfc3339
from rune.store.codec import prepare
from rune.store.erasures import ErasureIndex
from rune.store.event_store import Cursor, Offset
from rune.store.evidence_store import Evidence
from rune.store.failures import refused
from rune.store.group_commit import GroupCommit
from rune.store.hybrid_clock import HybridClock
from rune.store.identity import IdentityIndex, Lookup
from rune.store.journal import SEGMENT_BYTES, Repair, SlotWriter, Sync
from rune.store.order import Located, reading_order, up_to_damage
from rune.store.segments import list_segments
from rune.store.slot_reader import check_end, find_tip, slot_events
from rune.store.slots import claim_slot, journal_folder


class DurableEventStore:
    """EventStore on files. Made by `open`. That, `read`, `replay` and `head` block: use them on a thread."""

    def __init__(self, folder: Path, *, evidence: Evidence, hlc: HybridClock, identities: IdentityIndex) -> None:
        self._folder = folder
        self._evidence = evidence
        self._hlc = hlc
        self._identities = identities
        self._erasures = ErasureIndex(folder, evidence)
        self._accepting = threading.Lock()
        self._commits: GroupCommit | None = None
        self._refusal: StorageError | None = None
        self._repair: Repair | None = None
        self._closed = False

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        clock: Clock,
        ids: IdSource,
        device_id: str,
        evidence: Evidence,
        lookup: Lookup | None = None,
        read_only: bool = False,
        refusal: StorageError | None = None,
        beside: Mapping[str, int] | None = None,
        sync: Sync = os.fdatasync,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> "DurableEventStore":
        """Open the journal in `folder`, take the first free slot, repair its torn tail.

        `lookup` says what is stored already under an event id (IdentityIndex); without it only the
        events of this process are told apart from new ones. With `read_only` no slot is taken, nothing is
        changed, and `append` raises StorageUnavailableError, with the words of `refusal` when there is one: why it
        could not be opened for writing. `beside` are damaged slots that are not looked at, each with the latest hlc
        that it gave: for mending them. `sync` makes a descriptor's data durable; `segment_bytes` is the length at
        which the next segment is begun.

        Raises StorageUnavailableError and PartUnreadableError; after either `read_only` still reads what can be read.
        """
        journal_folder(folder, create=not read_only)
        store = cls(folder, evidence=evidence, hlc=HybridClock(clock), identities=IdentityIndex(lookup))
        store._refusal = refusal
        if read_only:
            return store
        slot = claim_slot(folder, clock)
        writer = SlotWriter(
            folder,
            slot.writer,
            clock=clock,
            hlc=store._hlc,
            device_id=device_id,
            sync=sync,
            segment_bytes=segment_bytes,
        )
        try:
            store._repair = repair = store._catch_up_with(writer, beside or {})
            if repair is not None:
                _note_repair(writer, repair, event_id=ids.new_id("evt"), timestamp=rfc3339(clock.now_ms()))
        except BaseException:
            writer.close()
            slot.release()
            raise
        store._commits = GroupCommit(slot, writer, evidence, store._identities)
        return store

    @property
    def writer(self) -> str | None:
        """The slot that this store appends to, None when it only reads."""
        return None if self._commits is None else self._commits.writer.writer

    @property
    def refusal(self) -> StorageError | None:
        """Why nothing is written although it should be; None where it is, or where nobody wanted to."""
        return self._refusal

    @property
    def repair(self) -> Repair | None:
        """The torn tail that was cut off on opening; None when there was none."""
        return self._repair

    def refuse(self, why: StorageError) -> None:
        """Accept nothing from now on, for this reason; what was accepted is still written. The first one stays."""
        with self._accepting:
            self._refusal = self._refusal or why

    async def append(self, event: Event) -> Offset:
        """Store one event; returns when it is on disk (EventStore.append)."""
        return (await self.append_many((event,)))[0]

    async def append_many(self, events: Sequence[Event]) -> tuple[Offset, ...]:
        """Store all of them or none (EventStore.append_many)."""
        if not events:
            return ()
        with self._accepting:
            if self._closed or self._commits is None or self._refusal is not None:
                raise self._unwritable()
            stored = self._commits.put(events)
        return await stored

    def _unwritable(self) -> StorageUnavailableError:
        if self._closed or self._refusal is None:
            return StorageUnavailableError(f"the journal is {'closed' if self._closed else 'open for reading only'}")
        return refused(self._refusal)

    def read(self, after: Cursor, *, seen: Cursor | None = None) -> Iterator[Located]:
        """Iterate over what came after the cursor, merged by hlc, each slot in its order (EventStore.read).

        Raises PartUnreadableError, once the other slots were read to their ends, StorageUnavailableError, and
        JournalMovedError when the cursor names a place that is no longer there.
        """
        yield from self._merged(after, None, seen or {})

    def replay(self, partition: str | None = None, types: Collection[str] | None = None) -> Iterator[Located]:
        """Iterate over everything in order, verifying all of it (EventStore.replay). Raises as `read`."""
        events = self._merged({}, partition, {})
        yield from events if types is None else (item for item in events if item[1].event_type in types)

    def head(self) -> Cursor:
        """Return the offset of the last event of each slot; of this one, the last that is durable.

        Of a slot that a later Rune, or another program, went on with, the last event that this one can read.
        """
        found: dict[str, Offset] = {}
        for writer, numbers in list_segments(self._folder).items():
            if self._commits is not None and writer == self._commits.writer.writer:
                last = self._commits.writer.last
            else:
                last = self._last_readable(writer, numbers)
            if last is not None:
                found[writer] = last
        return found

    def _last_readable(self, writer: str, numbers: list[int]) -> Offset | None:
        for count in range(len(numbers), 0, -1):
            with contextlib.suppress(NewerFormatError, UnmigratedDialectError):
                tip = find_tip(self._folder, writer, numbers[:count], self._erasures.names)
                return None if tip is None else tip.offset
        return None

    async def close(self) -> None:
        """Finish what was accepted and let go of the slot; may be called twice."""
        with self._accepting:
            if not self._closed and self._commits is not None:
                self._commits.finish()
            self._closed = True
        if self._commits is not None:
            await asyncio.to_thread(self._commits.join)

    def _catch_up_with(self, writer: SlotWriter, beside: Mapping[str, int]) -> Repair | None:
        """Learn the latest hlc of every slot and go to the end of one's own. Damage in another is damage too: what is
        written now might rest on what cannot be read.
        """
        for hlc in beside.values():
            self._hlc.see(hlc)
        segments = list_segments(self._folder)
        for other, numbers in segments.items():
            if other in beside or other == writer.writer:
                continue
            if tip := check_end(self._folder, other, numbers, self._erasures.names):
                self._hlc.see(tip.hlc)
        return writer.open(segments.get(writer.writer, []), self._erasures.names)

    def _merged(self, after: Cursor, partition: str | None, seen: Cursor) -> Iterator[Located]:
        with contextlib.ExitStack() as opened:
            streams: list[Iterator[Located]] = []
            damage: list[StorageError] = []
            slots = list_segments(self._folder)
            mine = None if self._commits is None else self._commits.writer
            if gone := after.keys() - slots.keys():
                raise JournalMovedError(f"the journal has no slot {', '.join(sorted(gone))} any more")
            for name in slots:
                stream = slot_events(
                    self._folder,
                    name,
                    after.get(name),
                    limit=mine.limit if mine is not None and name == mine.writer else None,
                    seen=seen.get(name),
                    erased=self._erasures.names,
                    see=self._hlc.see,
                )
                opened.callback(stream.close)
                readable = up_to_damage(stream, damage)
                streams.append(readable if partition is None else _of_partition(readable, partition))
            yield from streams[0] if len(streams) == 1 else heapq.merge(*streams, key=reading_order(partition))
            if damage:
                raise damage[0]


def _of_partition(stream: Iterator[Located], partition: str) -> Iterator[Located]:
    return (item for item in stream if item[1].partition_key == partition)


def _note_repair(writer: SlotWriter, repair: Repair, *, event_id: str, timestamp: str) -> None:
    event = Event(
        event_id=event_id,
        event_type="journal.repaired",
        partition_key="system",
        actor_id="rune",
        timestamp=timestamp,
        body=JournalRepaired(segment=repair.segment, kept_as=repair.kept_as, bytes=repair.bytes, reason=repair.reason),
    )
    (outcome,) = writer.commit([[prepare(event)]])
    if isinstance(outcome, Exception):
        raise outcome
