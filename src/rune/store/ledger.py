"""The one way into the journal: durable first, then projected.

`emit` is for facts that must be on disk before anything goes on; `offer` for notes (failures,
health) that may be lost and must never hold anybody up.
"""

import asyncio
import hashlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial

import msgspec

from rune.errors import IdentityCollisionError, PartUnreadableError, StorageUnavailableError, ViewsStoppedError
from rune.host.clock import Clock
from rune.host.ids import IdSource
from rune.records.events import Event, check_event, event_of
from rune.records.record import Record
from rune.records.times import rfc3339
from rune.store import event_index
from rune.store.codec import canon, digest
from rune.store.event_store import EventStore
from rune.store.failures import refused
from rune.store.projections import ProjectionEngine

_NOTES_AT_ONCE = 100
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"

# Gets the subsystem that failed and its error; must not raise.
ReportFailure = Callable[[str, Exception], object]
# Gets the subsystem that works (again); called after each success, and must not raise.
ReportSuccess = Callable[[str], object]


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A fact before it has id, time and place. `partition` is a conversation id, `memory`, `model` or
    `system`; `event_id` is given where the same fact may be emitted twice and must be stored once.
    """

    event_type: str
    body: Record
    partition: str
    actor_id: str = "rune"
    parent_id: str | None = None
    authorization: str | None = None
    event_id: str | None = None


class _Held:
    """A partition in which one fact at a time gets its place: `last` is the place given last."""

    def __init__(self, last: int = 0) -> None:
        self.last = last
        self.lock = asyncio.Lock()


class Ledger:
    """Emits into one journal. Used from one event loop; only `offer` may be called from any thread.

    `report` is told the first of several appends in a row that failed, and `works` that one went well; and `report`
    what else failed where nobody waits for an answer: projecting after a durable append, notes that could not be
    written, an append whose caller was cancelled.
    """

    def __init__(
        self,
        store: EventStore,
        engine: ProjectionEngine,
        clock: Clock,
        ids: IdSource,
        *,
        report: ReportFailure,
        works: ReportSuccess = lambda _: None,
        capacity: int = 1000,
    ) -> None:
        self._store = store
        self._engine = engine
        self._clock = clock
        self._ids = ids
        self._report = report
        self._works = works
        self._held: dict[str, _Held] = {}
        self._shared: dict[str, _Held] = {name: _Held() for name in ("memory", "model", "system")}
        self._running: set[asyncio.Task[tuple[Event, ...]]] = set()
        # Durable and perhaps not in the views yet.
        self._unprojected: dict[str, Event] = {}
        self._forks_reported: set[tuple[str, int]] = set()
        self._notes = _Notes(capacity)
        self._writing_notes = asyncio.Lock()
        self._notes_failed = False
        self._views_failed = False
        # The first of the appends that fail since one went well.
        self._append_failure: StorageUnavailableError | None = None
        self._background: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to write what is offered, in the background; notes offered earlier are kept."""
        if self._background is None:
            loop, wake = asyncio.get_running_loop(), asyncio.Event()
            self._notes.listen(lambda: loop.call_soon_threadsafe(wake.set))
            self._background = asyncio.create_task(self._write_notes(wake))

    async def close(self) -> None:
        """Finish what was accepted; may be called twice."""
        self._notes.listen(None)
        if self._background is not None:
            self._background.cancel()
            await asyncio.wait([self._background])
            self._background = None
        await self.flush()
        if self._running:
            await asyncio.wait(self._running)

    async def adopt(self, conversation_id: str) -> None:
        """Begin to give places in a conversation, after its last one. The caller holds its lease.

        Raises StorageUnavailableError, also for a damaged journal: what its last place is cannot be known there.
        """
        if conversation_id in self._held:
            return
        try:
            await self._engine.caught_up()
        except PartUnreadableError as error:
            raise refused(error) from error
        last = await self._engine.query(lambda connection: event_index.last_pseq(connection, conversation_id))
        self._held.setdefault(conversation_id, _Held(last))

    async def release(self, conversation_id: str) -> None:
        """Stop giving places in it, after what is being written; one that is not adopted is fine."""
        held = self._held.get(conversation_id)
        if held is not None:
            async with held.lock:
                self._held.pop(conversation_id, None)

    async def emit(self, draft: Draft) -> Event:
        """Store one fact; see `emit_many`."""
        return (await self.emit_many((draft,)))[0]

    async def emit_many(self, drafts: Sequence[Draft]) -> tuple[Event, ...]:
        """Store facts, all or none, in one write and one sync; then bring the views up to date.

        Returns the events as stored; a fact whose `event_id` is stored already is the first one's.
        Cancelling the caller does not cancel the write. Raises ValueError (not in the registry),
        RuntimeError (a conversation that is not adopted), IdentityCollisionError, UnstorableValueError,
        StorageUnavailableError.
        """
        task = asyncio.create_task(self._emit(tuple(drafts)))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(self._report_orphan)
            raise

    def offer(self, event_type: str, body: Record, *, partition: str) -> None:
        """Take a note to be written soon (observability.EventSink). Never waits, never raises; the oldest
        gives way when there are too many.
        """
        self._notes.put(Draft(event_type=event_type, body=body, partition=partition))

    async def flush(self) -> None:
        """Write what was offered so far. What cannot be written is counted as dropped and reported."""
        async with self._writing_notes:
            while notes := self._notes.take(_NOTES_AT_ONCE):
                await self._write(notes)

    @property
    def dropped(self) -> int:
        """How many notes were lost: too many at once, or not writable."""
        return self._notes.dropped

    async def _emit(self, drafts: tuple[Draft, ...]) -> tuple[Event, ...]:
        timestamp = rfc3339(self._clock.now_ms())
        events = [self._event(draft, timestamp) for draft in drafts]
        async with AsyncExitStack() as stack:
            places = await self._reserve(drafts, stack)
            stored = await self._already_stored(drafts, events)
            fresh: dict[str, Event] = {}
            last = {partition: held.last for partition, held in places.items()}
            for event in events:
                if event.event_id in stored:
                    continue
                if event.event_id in fresh:
                    _check_same(fresh[event.event_id], event)
                    continue
                if event.partition_key in self._held:
                    last[event.partition_key] += 1
                    event = msgspec.structs.replace(event, pseq=last[event.partition_key])  # noqa: PLW2901 its place
                fresh[event.event_id] = event
            if fresh:
                await self._append(tuple(fresh.values()))
                # Only now are the places taken: after a failure the next fact gets them.
                for partition, held in places.items():
                    held.last = last[partition]
                self._unprojected.update(fresh)
        if fresh:
            await self._project()
        return tuple(stored.get(event.event_id) or fresh[event.event_id] for event in events)

    async def _append(self, events: tuple[Event, ...]) -> None:
        try:
            await self._store.append_many(events)
        except StorageUnavailableError as error:
            # A report may become a note, which cannot be written either: once, not round and round.
            first, self._append_failure = self._append_failure is None, self._append_failure or error
            if first:
                self._report("journal", error)
            raise
        self._append_failure = None
        self._works("journal")

    def _event(self, draft: Draft, timestamp: str) -> Event:
        event = Event(
            event_id=draft.event_id or self._ids.new_id("evt"),
            event_type=draft.event_type,
            partition_key=draft.partition,
            actor_id=draft.actor_id,
            timestamp=timestamp,
            body=draft.body,
            parent_id=draft.parent_id,
            authorization=draft.authorization,
        )
        check_event(event)
        return event

    async def _reserve(self, drafts: Sequence[Draft], stack: AsyncExitStack) -> dict[str, _Held]:
        """Lock the conversations of a batch, and shared partitions where an id might be used twice.

        Sorted, so that two batches never wait for each other.
        """
        names = {draft.partition for draft in drafts if draft.partition not in self._shared or draft.event_id}
        places: dict[str, _Held] = {}
        for name in sorted(names):
            held = self._shared.get(name) or self._held.get(name)
            if held is not None:
                await stack.enter_async_context(held.lock)
            if held is None or (name not in self._shared and self._held.get(name) is not held):
                raise RuntimeError(f"conversation {name} is not adopted: its lease is not ours")
            places[name] = held
        return places

    async def _already_stored(self, drafts: Sequence[Draft], events: Sequence[Event]) -> dict[str, Event]:
        """Return the events that a given id already stands for. Raises IdentityCollisionError."""
        stored: dict[str, Event] = {}
        for draft, event in zip(drafts, events, strict=True):
            if draft.event_id is not None:
                first = self._unprojected.get(event.event_id)
                if first is None:
                    first = await self._engine.run(partial(self._read_back, event))
                if first is not None:
                    _check_same(first, event)
                    stored[event.event_id] = first
        return stored

    def _read_back(self, event: Event) -> Event | None:
        step = self._engine.find(event.event_id)
        if step is None:
            return None
        envelope = step[1]
        same_body = envelope.payload_hash == digest(canon(event.body))
        return event_of(envelope, event.body if same_body else step[2])

    async def _project(self) -> None:
        durable = tuple(self._unprojected)
        try:
            done = await self._engine.caught_up()
        except ViewsStoppedError:
            return  # somebody wants to leave: the next start takes them in
        except Exception as error:  # noqa: BLE001 the facts are durable whatever is wrong with the views; the next pass repairs
            # A report may become a note, and that one is projected too: once, not round and round.
            if not self._views_failed:
                self._views_failed = True
                self._report("views", error)
            return
        self._views_failed = False
        for event_id in durable:
            self._unprojected.pop(event_id, None)
        for fork in done.forks:
            if (fork.conversation_id, fork.pseq) not in self._forks_reported:
                self._forks_reported.add((fork.conversation_id, fork.pseq))
                self.offer("journal.forked", fork, partition="system")

    async def _write_notes(self, wake: asyncio.Event) -> None:
        while True:
            wake.clear()
            await self.flush()
            await wake.wait()

    async def _write(self, notes: Sequence[Draft]) -> None:
        try:
            await self.emit_many(notes)
        except Exception as error:  # noqa: BLE001 nobody waits for a note: counted and reported, never raised
            if len(notes) > 1 and not isinstance(error, StorageUnavailableError):
                for note in notes:  # one that cannot be stored must not take the others with it
                    await self._write((note,))
                return
            self._notes.lost(len(notes))
            # Reporting may offer a note about this very failure: once, not round and round.
            told = isinstance(error, ViewsStoppedError) or self._append_failure is not None
            if not self._notes_failed and not told:
                self._notes_failed = True
                self._report("journal", error)
        else:
            self._notes_failed = False

    def _report_orphan(self, task: asyncio.Task[tuple[Event, ...]]) -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception) and error is not self._append_failure:
            self._report("journal", error)


class _Notes:
    """A bounded queue that any thread may put into; the oldest gives way."""

    def __init__(self, capacity: int) -> None:
        self._queue: deque[Draft] = deque(maxlen=capacity)
        # A signal handler may offer while `put` runs in the same thread.
        self._mutex = threading.RLock()
        self._wake: Callable[[], object] | None = None
        self.dropped = 0

    def listen(self, wake: Callable[[], object] | None) -> None:
        """Call `wake` whenever something was put, and once now; None: no longer."""
        self._wake = wake
        if wake is not None:
            wake()

    def put(self, draft: Draft) -> None:
        with self._mutex:
            if len(self._queue) == self._queue.maxlen:
                self.dropped += 1
            self._queue.append(draft)
        if self._wake is not None:
            with suppress(RuntimeError):  # the loop has ended: what is queued stays for `flush`
                self._wake()

    def take(self, most: int) -> list[Draft]:
        with self._mutex:
            return [self._queue.popleft() for _ in range(min(most, len(self._queue)))]

    def lost(self, count: int) -> None:
        with self._mutex:
            self.dropped += count


def _check_same(first: Event, again: Event) -> None:
    """Raise when two facts of one id differ; time and place are the first one's and do not count."""
    if msgspec.structs.replace(again, timestamp=first.timestamp, pseq=first.pseq) != first:
        raise IdentityCollisionError(f"event {again.event_id} is stored already with another content")


def once(record_id: str) -> str:
    """Return the id of the one event that stores a record: its time, and the rest from the whole id."""
    rest = int.from_bytes(hashlib.sha256(record_id.encode()).digest()[:10], "big")
    tail = "".join(_ALPHABET[(rest >> shift) & 31] for shift in range(75, -1, -5))
    return f"evt_{record_id.partition('_')[2][:10]}{tail}"
