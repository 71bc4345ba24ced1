"""The one thread that writes a slot: all that waits shares one write and one sync (spine.md, Append)."""

import asyncio
import contextlib
import queue
import threading
from collections import deque
from collections.abc import Sequence

import msgspec

from rune.errors import StorageUnavailableError
from rune.records.events import Event
from rune.store.codec import PreparedEvent, prepare
from rune.store.event_store import Offset
from rune.store.evidence_store import Evidence, EvidenceItem
from rune.store.identity import IdentityIndex, StoredIdentity, same_fact
from rune.store.journal import Outcome, SlotWriter
from rune.store.slots import Slot

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


class GroupCommit:
    """Writes what it is given, in order, until `finish`; then it lets go of file and slot."""

    def __init__(self, slot: Slot, writer: SlotWriter, evidence: Evidence, identities: IdentityIndex) -> None:
        self.writer = writer
        self._slot = slot
        self._evidence = evidence
        self._identities = identities
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        # A daemon: whoever forgets to finish must not hang at the end; what was acknowledged is on disk.
        self._thread = threading.Thread(target=self._work, name="journal", daemon=True)
        self._thread.start()

    def put(self, events: Sequence[Event]) -> "asyncio.Future[tuple[Offset, ...]]":
        """Take events of one caller, all or none; the future is of the running event loop and gives their offsets,
        or raises as EventStore.append does. Cancelling it cancels nothing here.
        """
        loop = asyncio.get_running_loop()
        job = _Job(tuple(events), loop, loop.create_future())
        self._jobs.put(job)
        return job.future

    def finish(self) -> None:
        """Take nothing more and write what was taken. Returns at once; `join` waits for the end. Called once."""
        self._jobs.put(None)

    def join(self) -> None:
        """Wait until everything is written and the slot is free."""
        self._thread.join()

    def _work(self) -> None:
        waiting: deque[_Job] = deque()
        ending = False
        try:
            while waiting or not ending:
                if not waiting:
                    ending = self._receive(waiting, block=True)
                if not ending:
                    ending = self._receive(waiting, block=False)
                _tell(self._store(waiting))
        finally:
            self.writer.close()
            self._slot.release()

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

    def _store(self, waiting: deque[_Job]) -> list[_Settled]:
        """Take a group off `waiting`, make it durable, and return how each of its jobs ended."""
        settled: list[_Settled] = []
        group = self._gather(waiting, settled)
        group = self._keep_bodies(group, settled)
        outcomes: Sequence[Outcome | Exception]
        try:
            outcomes = self.writer.commit([job.new for job in group])
        except Exception as error:  # noqa: BLE001 a bug must reach those who wait, not end this thread without a word
            self.writer.end(f"writing the journal failed: {error!r}")
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

    def _gather(self, waiting: deque[_Job], settled: list[_Settled]) -> list[_Job]:
        group: list[_Job] = []
        taken: set[str] = set()
        while waiting and len(taken) < _GROUP_EVENTS:
            # An id of this group is judged once its first use is stored, or was refused.
            if any(event.event_id in taken for event in waiting[0].events):
                break
            job = waiting.popleft()
            try:
                self._prepare(job)
            except Exception as error:  # noqa: BLE001 whatever is wrong with an event, or fails in `lookup`, is its caller's
                settled.append(_Settled(job, error=error))
                continue
            if job.new:
                group.append(job)
                taken.update(item.event.event_id for item in job.new)
            else:
                settled.append(_Settled(job, offsets=_offsets_of(job)))
        return group

    def _prepare(self, job: _Job) -> None:
        fresh: dict[str, PreparedEvent] = {}
        for event in job.events:
            item = prepare(event)
            if twin := fresh.get(event.event_id):
                nowhere = Offset("", 0, 0, 0)
                same_fact(event.event_id, StoredIdentity(offset=nowhere, content=twin.content), item.content)
            elif (first := self._identities.find(event.event_id, item.content)) is not None:
                self.writer.check_durable(first)
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
