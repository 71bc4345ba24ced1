"""Views of the journal: tables that follow it, may be deleted at any time, and are rebuilt from it.

How far each slot was applied lies in the same transaction as the rows: a crash leaves both or
neither (spine.md, ProjectionEngine). Slots are read one after the other, so an event can be applied
before one that precedes it in its conversation: a projection orders by `rank`, never by arrival.
"""

import asyncio
import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Protocol, TypeVar, cast

import apsw
import msgspec

from rune.errors import (
    CorruptJournalError,
    JournalMovedError,
    NotFoundError,
    StorageError,
    StorageUnavailableError,
)
from rune.records.envelope import EventEnvelope
from rune.records.events import EVENT_KINDS, JournalForked
from rune.records.record import Record
from rune.store import event_index
from rune.store.event_index import EventIndex, LastEvent
from rune.store.event_store import Cursor, EventStore, Offset
from rune.store.identity import StoredIdentity
from rune.store.order import Located, reading_order
from rune.store.views_file import DAMAGED, ViewsFile, transaction, translated

T = TypeVar("T")
Decode = Callable[[EventEnvelope], Record]
Query = Callable[[apsw.Connection], T]
Step = tuple[Offset, EventEnvelope, Record]

_EVENTS_PER_TRANSACTION = 500
_CURSOR_DDL = """
CREATE TABLE cursor (writer TEXT PRIMARY KEY, seq INTEGER, segment INTEGER, position INTEGER) WITHOUT ROWID;
"""


class Projection(Protocol):
    """Tables that follow the journal."""

    @property
    def name(self) -> str:
        """The name by which a person knows it."""
        ...

    @property
    def ddl(self) -> str:
        """The statements that make its tables and indexes. Changing them makes a new views file."""
        ...

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables' names."""
        ...

    def apply(self, connection: apsw.Connection, offset: Offset, envelope: EventEnvelope, body: Record) -> None:
        """Take one event in, inside a running transaction. An erased body comes as `ErasedBody`, one of a
        later version as `UnknownBody`.

        The same event twice changes nothing; events of a conversation may come in any order.
        """
        ...


class UnknownBody(Record, frozen=True, kw_only=True):
    """Stands for the body of an event that this version does not know."""


class CaughtUp(msgspec.Struct, frozen=True, kw_only=True):
    """What a pass did: events applied, and the places given twice that nobody reported yet."""

    applied: int
    forks: tuple[JournalForked, ...]


def rank(envelope: EventEnvelope) -> str:
    """Return a text that sorts as events do: in a conversation by pseq, else by hlc, writer, seq."""
    return f"{envelope.pseq:010d}.{envelope.hlc:014d}.{envelope.writer}.{envelope.seq:010d}"


class ProjectionEngine:
    """Keeps a views file in step with a journal. Blocking, from any thread; the coroutines use threads
    of their own.

    `decode` gives the body of an envelope. `report` is told what was wrong with the
    file when it had to be replaced; it must not raise.
    """

    def __init__(
        self,
        path: Path,
        store: EventStore,
        decode: Decode,
        projections: Sequence[Projection],
        report: Callable[[Exception], None],
    ) -> None:
        self._store = store
        self._decode = decode
        self._projections: tuple[Projection, ...] = (EventIndex(), *projections)
        self._report = report
        ddl = _CURSOR_DDL + "".join(projection.ddl for projection in self._projections)
        self._file = ViewsFile(path, ddl, report)
        self._pass = threading.RLock()
        # The birth of the file that followed the journal.
        self._followed: int | None = None
        self._queue = threading.Lock()
        self._queued: Future[CaughtUp] | None = None
        self._closed = False
        # Two threads: a read never waits for a pass, nor a pass for a long read.
        self._follower = ThreadPoolExecutor(1, thread_name_prefix="rune-views-write")
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="rune-views-read")

    def catch_up(self, progress: Callable[[int], None] | None = None) -> CaughtUp:
        """Apply what the journal has and the views lack. `progress` gets the events applied so far.

        Raises CorruptJournalError and InvalidRecordError (what was read), StorageUnavailableError.
        """
        with self._pass, translated(self._file.path):
            try:
                return self._follow(progress)
            except (*DAMAGED, JournalMovedError) as error:
                self._report(error)
                self._file.discard()
                return self._follow(progress)
            except CorruptJournalError:
                # What lies before the damage is in the views now and stays readable.
                self._followed = self._file.opened().birth
                raise

    def rebuild(self, progress: Callable[[int], None] | None = None) -> CaughtUp:
        """Throw the file away and apply the whole journal again."""
        with self._pass, translated(self._file.path):
            self._file.discard()
            return self.catch_up(progress)

    def read(self, query: Query[T]) -> T:
        """Run a query on views that have followed the journal at least once since the file was made.

        Where they cannot follow (the disk is full, the journal damaged) what they hold is still read, and
        why is reported. Raises StorageUnavailableError when the file itself cannot be used.
        """
        with translated(self._file.path):
            try:
                return query(self._followed_connection())
            except DAMAGED as error:
                self._report(error)
                self._file.discard()
                return query(self._followed_connection())

    def lookup(self, event_id: str) -> StoredIdentity | None:
        """Say where an id is stored already (the store's `Lookup`)."""
        return self.read(lambda connection: event_index.identity(connection, event_id))

    async def query(self, query: Query[T]) -> T:
        """Run a query in a thread; as `read`."""
        return await self.run(partial(self.read, query))

    async def caught_up(self) -> CaughtUp:
        """Return when all that is durable at the time of this call is in the views.

        Callers that come while a pass runs share the next one. Raises as `catch_up` does.
        """
        self._check_open()
        with self._queue:
            if self._queued is None:
                self._queued = self._follower.submit(self._next_pass)
            queued = self._queued
        return await asyncio.shield(asyncio.wrap_future(queued))

    async def run(self, work: Callable[[], T]) -> T:
        """Do something that reads views or journal in a thread."""
        self._check_open()
        return await asyncio.get_running_loop().run_in_executor(self._reader, work)

    def find(self, event_id: str) -> Step | None:
        """Read one event back from the journal; None when the views know none of that id."""

        def locate(connection: apsw.Connection) -> tuple[event_index.Place | None, dict[str, Offset]]:
            return event_index.place_of(connection, event_id), _cursor(connection)

        def search() -> Step | None:
            place, cursor = self.read(locate)
            if place is None:
                return None
            after = event_index.cursor_with(cursor, place.offset.writer, place.before)
            for offset, envelope in self._store.read(after):
                if envelope.event_id == event_id:
                    return offset, envelope, self._body(envelope)
            raise NotFoundError(f"event {event_id} is in the views and not in the journal", hint="Run `rune doctor`.")

        return self._with_places(search)

    def recent(self, types: Sequence[str] | None, limit: int) -> Iterator[tuple[Offset, EventEnvelope]]:
        """Iterate over the `limit` newest events, oldest of them first; of those types only when named.

        Reads only the end of the journal that holds them and keeps only what it gives.
        """

        def plan(connection: apsw.Connection) -> tuple[list[Offset], dict[str, Offset]]:
            chosen = event_index.newest(connection, types, limit)
            cursor = _cursor(connection)
            # Newest first: what is left for a writer is its oldest.
            for writer, seq in {offset.writer: offset.seq for offset in chosen}.items():
                cursor = event_index.cursor_with(cursor, writer, event_index.before(connection, writer, seq))
            return chosen, cursor

        def pick() -> list[Located]:
            chosen, cursor = self.read(plan)
            wanted = {(offset.writer, offset.seq) for offset in chosen}
            events = self._store.read(cursor) if wanted else iter(())
            found = islice((item for item in events if (item[0].writer, item[0].seq) in wanted), len(wanted))
            return sorted(found, key=reading_order(None))

        return iter(self._with_places(pick))

    def state_hash(self, name: str) -> str:
        """Return 32 hex digits over a projection's rows, whatever their order in the file."""
        projection = next(known for known in self._projections if known.name == name)

        def add_up(connection: apsw.Connection) -> int:
            total = 0
            for table in projection.tables:
                for row in connection.execute(f"SELECT * FROM {table}"):  # noqa: S608 a projection's own name
                    digest = hashlib.sha256(repr((table, row)).encode()).digest()
                    total += int.from_bytes(digest[:16], "big")
            return total % (1 << 128)

        return f"{self.read(add_up):032x}"

    def close(self) -> None:
        """Finish what runs and close the file; may be called twice."""
        self._closed = True
        self._follower.shutdown()
        self._reader.shutdown()
        self._file.close()

    def _check_open(self) -> None:
        if self._closed:
            raise StorageUnavailableError(f"{self._file.path} was closed")

    def _followed_connection(self) -> apsw.Connection:
        views = self._file.opened()
        if views.birth != self._followed:
            try:
                self.catch_up()
            except (CorruptJournalError, StorageUnavailableError) as error:
                self._report(error)
            views = self._file.opened()
        return views.connection

    def _with_places(self, search: Callable[[], T]) -> T:
        """Search the journal by the places that the views hold; they move when bodies were erased."""
        try:
            return search()
        except JournalMovedError as error:
            self._report(error)
            self.rebuild()
            return search()

    def _next_pass(self) -> CaughtUp:
        # From here on a newcomer's events may be missed by this pass: it must ask for the next.
        with self._queue:
            self._queued = None
        return self.catch_up()

    def _follow(self, progress: Callable[[int], None] | None) -> CaughtUp:
        views = self._file.opened()
        start = _cursor(views.connection)
        # Views may have read a line of another process that a power cut then took from the journal:
        # the first pass reads the last event of each slot once more.
        last = {} if views.birth == self._followed else event_index.last_events(views.connection, start)
        count, again = self._follow_from(_at_last_events(self._store, start, last), progress, 0)
        applied = count
        while again:
            views = self._file.opened()
            now = _cursor(views.connection)
            if not count and now == start:
                raise StorageError("the journal has a gap: its events cannot be applied in order")
            start = now
            count, again = self._follow_from(self._store.read(start), progress, applied)
            applied += count
        views = self._file.opened()
        self._followed = views.birth
        return CaughtUp(applied=applied, forks=event_index.unreported_forks(views.connection))

    def _follow_from(
        self, events: Iterator[Located], progress: Callable[[int], None] | None, before: int
    ) -> tuple[int, bool]:
        """Apply these; the flag says that the views moved meanwhile: start again from where they are."""
        applied = 0
        for batch in _batches(events):
            # Bodies may come from evidence files: read them before the write lock is held.
            steps = [(offset, envelope, self._body(envelope)) for offset, envelope in batch]
            count, fits = self._apply(steps)
            applied += count
            if progress is not None:
                progress(before + applied)
            if not fits:
                return applied, True
        return applied, False

    def _body(self, envelope: EventEnvelope) -> Record:
        kind = EVENT_KINDS.get(envelope.event_type)
        # A later Rune may have written what this one has no name for, and so no view of.
        return UnknownBody() if kind is None or kind.body is None else self._decode(envelope)

    def _apply(self, steps: Sequence[Step]) -> tuple[int, bool]:
        """Apply a batch in one transaction; False when its events do not go on from where the views are."""
        connection = self._file.opened().connection
        applied, fits = 0, True
        with transaction(connection):
            cursor = _cursor(connection)
            for offset, envelope, body in steps:
                last = cursor[offset.writer].seq if offset.writer in cursor else 0
                if offset.seq <= last:
                    continue  # another process was faster
                if offset.seq != last + 1:
                    fits = False
                    break
                for projection in self._projections:
                    projection.apply(connection, offset, envelope, body)
                cursor[offset.writer] = offset
                applied += 1
            connection.executemany(
                "INSERT OR REPLACE INTO cursor VALUES (?,?,?,?)",
                [(at.writer, at.seq, at.segment, at.position) for at in cursor.values()],
            )
        return applied, fits


def _at_last_events(store: EventStore, cursor: Cursor, last: Mapping[str, LastEvent]) -> Iterator[Located]:
    """Iterate over what comes after the cursor. Raises JournalMovedError when an event that was the
    `last` of its slot is there no longer, or is another one.
    """
    expected = dict(last)
    after = dict(cursor)
    for writer, event in last.items():
        after = event_index.cursor_with(after, writer, event.before)
    for offset, envelope in store.read(after):
        event = expected.get(offset.writer)
        if event is None or offset.seq > event.seq:
            yield offset, envelope
        elif offset.seq == event.seq and event.event_id in {None, envelope.event_id}:
            del expected[offset.writer]
        elif offset.seq == event.seq:
            break
    if expected:
        raise JournalMovedError(f"the views hold events of {', '.join(sorted(expected))} that the journal lacks")


def _batches(events: Iterator[Located]) -> Iterator[list[Located]]:
    """Cut into transactions; what was read before an error is given before it is raised."""
    batch: list[Located] = []
    try:
        for item in events:
            batch.append(item)
            if len(batch) == _EVENTS_PER_TRANSACTION:
                yield batch
                batch = []
    except StorageError:
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def _cursor(connection: apsw.Connection) -> dict[str, Offset]:
    rows = cast(
        "list[tuple[str, int, int, int]]",
        connection.execute("SELECT writer, seq, segment, position FROM cursor").fetchall(),
    )
    return {row[0]: Offset(*row) for row in rows}
