"""The journal on disk: one writer thread that shares its syncs, and readers of all slots (spine.md)."""

import asyncio
import contextlib
import heapq
import os
import queue
import threading
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from rune.errors import JournalMovedError, NewerFormatError, StorageError, StorageUnavailableError
from rune.host.clock import Clock
from rune.host.ids import IdSource
from rune.records.events import Event, JournalRepaired
from rune.records.times import rfc3339
from rune.store.codec import PreparedEvent, prepare
from rune.store.erasures import ErasureIndex
from rune.store.event_store import Cursor, Offset
from rune.store.evidence_store import Evidence, EvidenceItem
from rune.store.failures import refused
from rune.store.hybrid_clock import HybridClock
from rune.store.identity import IdentityIndex, Lookup, StoredIdentity, same_fact
from rune.store.journal import SEGMENT_BYTES, Outcome, Repair, SlotWriter, Sync
from rune.store.order import Located, reading_order, up_to_damage
from rune.store.segments import list_segments
from rune.store.slot_reader import find_tip, slot_events
from rune.store.slots import Slot, claim_slot, journal_folder

# One write stays short; what waits beyond this goes into the next.
_GROUP_EVENTS = 1000


class _Job(msgspec.Struct):
    """One caller's events. `first` holds the offsets of those that are stored already, by id."""

    events: tuple[Event, ...]
    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[tuple[Offset, ...]]"
    new: list[PreparedEvent] = []
    first: dict[str, Offset] = {}


class _Settled(msgspec.Struct):
    """How a job ended: one of the two is set."""

    job: _Job
    offsets: tuple[Offset, ...] | None = None
    error: BaseException | None = None


class DurableEventStore:
    """EventStore on files. Made by `open`. That, `read`, `replay` and `head` block: use them on a thread."""

    def __init__(self, folder: Path, *, evidence: Evidence, hlc: HybridClock, identities: IdentityIndex) -> None:
        self._folder = folder
        self._evidence = evidence
        self._hlc = hlc
        self._identities = identities
        self._erasures = ErasureIndex(folder, evidence)
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._accepting = threading.Lock()
        self._slot: Slot | None = None
        self._writer: SlotWriter | None = None
        self._thread: threading.Thread | None = None
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
        could not be opened for writing. `beside` are damaged slots that are not
        looked at, each with the latest hlc that it gave: for mending them. `sync` makes a descriptor's data durable;
        `segment_bytes` is the length at which the next segment is begun.

        Raises StorageUnavailableError (also for a journal of a newer format), CorruptJournalError,
        UnmigratedDialectError; after any of these `read_only` still reads what can be read.
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
        store._start(slot, writer)
        return store

    @property
    def writer(self) -> str | None:
        """The slot that this store appends to, None when it only reads."""
        return None if self._writer is None else self._writer.writer

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
        loop = asyncio.get_running_loop()
        job = _Job(tuple(events), loop, loop.create_future())
        with self._accepting:
            if self._closed or self._thread is None or self._refusal is not None:
                raise self._unwritable()
            self._jobs.put(job)
        # A cancelled caller cancels this future and nothing else: the writer thread does not look at it.
        return await job.future

    def _unwritable(self) -> StorageUnavailableError:
        if self._closed or self._refusal is None:
            return StorageUnavailableError(f"the journal is {'closed' if self._closed else 'open for reading only'}")
        return refused(self._refusal)

    def read(self, after: Cursor, *, seen: Cursor | None = None) -> Iterator[Located]:
        """Iterate over what came after the cursor, merged by hlc, each slot in its order (EventStore.read).

        Raises CorruptJournalError and NewerFormatError, once the other slots were read to their ends,
        UnmigratedDialectError, StorageUnavailableError, and JournalMovedError when the cursor names a place that is
        no longer there.
        """
        yield from self._merged(after, None, seen or {})

    def replay(self, partition: str | None = None, types: Collection[str] | None = None) -> Iterator[Located]:
        """Iterate over everything in order, verifying all of it (EventStore.replay). Raises as `read`."""
        events = self._merged({}, partition, {})
        yield from events if types is None else (item for item in events if item[1].event_type in types)

    def head(self) -> Cursor:
        """Return the offset of the last event of each slot; of this one, the last that is durable.

        Of a slot that a later Rune went on with, the last event that this one can read.
        """
        found: dict[str, Offset] = {}
        for writer, numbers in list_segments(self._folder).items():
            if self._writer is not None and writer == self._writer.writer:
                last = self._writer.last
            else:
                last = self._last_readable(writer, numbers)
            if last is not None:
                found[writer] = last
        return found

    def _last_readable(self, writer: str, numbers: list[int]) -> Offset | None:
        for count in range(len(numbers), 0, -1):
            with contextlib.suppress(NewerFormatError):
                tip = find_tip(self._folder, writer, numbers[:count], self._erasures.names)
                return None if tip is None else tip.offset
        return None

    async def close(self) -> None:
        """Finish what was accepted and let go of the slot; may be called twice."""
        with self._accepting:
            if not self._closed:
                self._closed = True
                self._jobs.put(None)
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    def _catch_up_with(self, writer: SlotWriter, beside: Mapping[str, int]) -> Repair | None:
        """Learn the latest hlc of every slot and go to the end of one's own."""
        for hlc in beside.values():
            self._hlc.see(hlc)
        segments = list_segments(self._folder)
        for other, numbers in segments.items():
            if other in beside or other == writer.writer:
                continue
            if tip := find_tip(self._folder, other, numbers, self._erasures.names):
                self._hlc.see(tip.hlc)
        return writer.open(segments.get(writer.writer, []), self._erasures.names)

    def _start(self, slot: Slot, writer: SlotWriter) -> None:
        self._slot, self._writer = slot, writer
        # A daemon: whoever forgets `close` must not hang at the end; what was acknowledged is on disk.
        self._thread = threading.Thread(target=self._work, args=(slot, writer), name="journal", daemon=True)
        self._thread.start()

    def _merged(self, after: Cursor, partition: str | None, seen: Cursor) -> Iterator[Located]:
        with contextlib.ExitStack() as opened:
            streams: list[Iterator[Located]] = []
            damage: list[StorageError] = []
            slots = list_segments(self._folder)
            if gone := after.keys() - slots.keys():
                raise JournalMovedError(f"the journal has no slot {', '.join(sorted(gone))} any more")
            for name in slots:
                stream = slot_events(
                    self._folder,
                    name,
                    after.get(name),
                    limit=self._writer.limit if self._writer is not None and name == self._writer.writer else None,
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

    def _work(self, slot: Slot, writer: SlotWriter) -> None:
        waiting: deque[_Job] = deque()
        ending = False
        try:
            while waiting or not ending:
                if not waiting:
                    ending = self._receive(waiting, block=True)
                if not ending:
                    ending = self._receive(waiting, block=False)
                _tell(self._store(writer, waiting))
        finally:
            writer.close()
            slot.release()

    def _receive(self, waiting: deque[_Job], *, block: bool) -> bool:
        """Move what has come into `waiting`; True when the end was among it."""
        with contextlib.suppress(queue.Empty):
            while True:
                job = self._jobs.get(block=block)
                if job is None:
                    return True
                waiting.append(job)
                if block:
                    break
        return False

    def _store(self, writer: SlotWriter, waiting: deque[_Job]) -> list[_Settled]:
        """Take a group off `waiting`, make it durable, and return how each of its jobs ended."""
        settled: list[_Settled] = []
        group = self._gather(writer, waiting, settled)
        group = self._keep_bodies(group, settled)
        outcomes: Sequence[Outcome | Exception]
        try:
            outcomes = writer.commit([job.new for job in group])
        except Exception as error:  # noqa: BLE001 a bug must reach those who wait, not end this thread without a word
            writer.end(f"writing the journal failed: {error!r}")
            outcomes = [error for _ in group]
        for job, outcome in zip(group, outcomes, strict=True):
            if isinstance(outcome, Exception):
                settled.append(_Settled(job, error=outcome))
                continue
            for item, offset in zip(job.new, outcome, strict=True):
                job.first[item.event.event_id] = offset
                identity = StoredIdentity(offset=offset, content=item.content)
                self._identities.remember(item.event.event_id, identity)
            settled.append(_Settled(job, offsets=_offsets_of(job)))
        return settled

    def _gather(self, writer: SlotWriter, waiting: deque[_Job], settled: list[_Settled]) -> list[_Job]:
        group: list[_Job] = []
        taken: set[str] = set()
        while waiting and len(taken) < _GROUP_EVENTS:
            # An id of this group is judged once its first use is stored, or was refused.
            if any(event.event_id in taken for event in waiting[0].events):
                break
            job = waiting.popleft()
            try:
                self._prepare(writer, job)
            except Exception as error:  # noqa: BLE001 whatever is wrong with an event, or fails in `lookup`, is its caller's
                settled.append(_Settled(job, error=error))
                continue
            if job.new:
                group.append(job)
                taken.update(item.event.event_id for item in job.new)
            else:
                settled.append(_Settled(job, offsets=_offsets_of(job)))
        return group

    def _prepare(self, writer: SlotWriter, job: _Job) -> None:
        fresh: dict[str, PreparedEvent] = {}
        for event in job.events:
            item = prepare(event)
            if twin := fresh.get(event.event_id):
                nowhere = Offset("", 0, 0, 0)
                same_fact(event.event_id, StoredIdentity(offset=nowhere, content=twin.content), item.content)
            elif (first := self._identities.find(event.event_id, item.content)) is not None:
                writer.check_durable(first)
                job.first[event.event_id] = first
            else:
                fresh[event.event_id] = item
        job.new = list(fresh.values())

    def _keep_bodies(self, group: list[_Job], settled: list[_Settled]) -> list[_Job]:
        """Write bodies that are too long for a line to evidence, synced, before any line names them."""
        long = [item for job in group for item in job.new if item.outgrown]
        if not long:
            return group
        try:
            self._evidence.put_many(
                [EvidenceItem(data=item.body, source=f"event:{item.event.event_id}") for item in long]
            )
        except Exception as error:  # noqa: BLE001 a bug must reach those who wait, not end this thread without a word
            refused = [job for job in group if any(item.outgrown for item in job.new)]
            settled += [_Settled(job, error=error) for job in refused]
            return [job for job in group if not any(item.outgrown for item in job.new)]
        return group


def _of_partition(stream: Iterator[Located], partition: str) -> Iterator[Located]:
    return (item for item in stream if item[1].partition_key == partition)


def _offsets_of(job: _Job) -> tuple[Offset, ...]:
    return tuple(job.first[event.event_id] for event in job.events)


def _tell(settled: list[_Settled]) -> None:
    """Wake the callers, with one call for each event loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_Settled]] = {}
    for one in settled:
        by_loop.setdefault(one.job.loop, []).append(one)
    for loop, ones in by_loop.items():
        # A loop that has ended has nobody left to tell; the events are stored all the same.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_settle, ones)


def _settle(settled: list[_Settled]) -> None:
    for one in settled:
        future = one.job.future
        if future.done():  # the caller was cancelled meanwhile
            continue
        if one.offsets is not None:
            future.set_result(one.offsets)
        elif isinstance(one.error, StorageUnavailableError):
            # Many may wait for the same failure: each gets an exception of its own to raise.
            future.set_exception(StorageUnavailableError(one.error.message, hint=one.error.hint))
        else:
            future.set_exception(one.error or RuntimeError("a job without an outcome"))


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
