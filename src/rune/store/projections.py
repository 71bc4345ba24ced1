"""Views of the journal: tables that follow it, may be deleted at any time, and are rebuilt from it.

How far each slot was applied lies in the same transaction as the rows: a crash leaves both or
neither (spine.md, ProjectionEngine). Slots are read one after the other, so an event can be applied
before one that precedes it in its conversation: a projection orders by `rank`, never by arrival.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeVar

import apsw

from rune.errors import (
    DamagedViewsError,
    JournalMovedError,
    PartUnreadableError,
    StorageError,
    StorageUnavailableError,
    ViewsStoppedError,
)
from rune.records.envelope import EventEnvelope
from rune.store import event_index
from rune.store.event_index import EventIndex
from rune.store.event_store import EventStore, Offset
from rune.store.following import Follower, Step
from rune.store.identity import StoredIdentity
from rune.store.lost_bodies import BodyReader, Decode, LostBodies
from rune.store.order import Located, reading_order
from rune.store.projection import Projection
from rune.store.rows import at_most
from rune.store.view_cursor import CURSOR_DDL, read_cursor
from rune.store.view_hash import rows_hash
from rune.store.view_pass import CaughtUp, Progress
from rune.store.views_file import ViewsFile, translated

T = TypeVar("T")
Query = Callable[[apsw.Connection], T]


class ProjectionEngine:
    """Keeps a views file in step with a journal. Blocking, from any thread; the coroutines use threads
    of their own.

    `decode` gives the body of an envelope. `report` is told what was wrong with the file when it had to be
    replaced, and once of each body that is lost. `on_progress` is told how far a pass is, after each
    transaction of a long one (500 events and more); a pass of a few tells nothing. `on_damage` is told, before it is
    raised, at what the journal cannot be read on from. All are called on the thread that runs the pass, and must not
    raise.
    """

    def __init__(
        self,
        path: Path,
        store: EventStore,
        decode: Decode,
        projections: Sequence[Projection],
        report: Callable[[Exception], None],
        *,
        on_progress: Progress | None = None,
        on_damage: Callable[[StorageError], object] = lambda _: None,
    ) -> None:
        self._store = store
        self._projections: tuple[Projection, ...] = (EventIndex(), LostBodies(), *projections)
        self._report = report
        ddl = CURSOR_DDL + "".join(projection.ddl for projection in self._projections)
        self._file = ViewsFile(path, ddl, report)
        self._pass = threading.RLock()
        self._follower = Follower(
            self._file,
            store,
            BodyReader(decode, report),
            self._projections,
            on_progress=on_progress,
            on_damage=on_damage,
            go_on=self._go_on_or_stop,
        )
        self._queue = threading.Lock()
        self._queued: Future[CaughtUp | Exception] | None = None
        # The birth of a file that was made anew and did not work either.
        self._in_vain: int | None = None
        self._stopping = False
        self._closed = False
        # Two threads: a read never waits for a pass, nor a pass for a long read.
        self._writing = ThreadPoolExecutor(1, thread_name_prefix="rune-views-write")
        self._reading = ThreadPoolExecutor(1, thread_name_prefix="rune-views-read")

    def catch_up(self, progress: Progress | None = None) -> CaughtUp:
        """Apply what the journal has and the views lack. `progress` is told how far the pass is, in
        place of `on_progress` and after each transaction.

        Raises CorruptJournalError and InvalidRecordError (what was read), StorageUnavailableError, and
        ViewsStoppedError after `stop`.
        """
        with self._pass:
            return self._mended(lambda: self._follower.follow(progress))

    def rebuild(self, progress: Progress | None = None) -> CaughtUp:
        """Throw the file away and apply the whole journal again. Raises as `catch_up`."""
        with self._pass, translated(self._file.path):
            self._go_on_or_stop()
            self._file.discard()
            return self.catch_up(progress)

    def move_to(self, path: Path) -> None:
        """Keep the views in the file at `path` from now on: a copy of what they were, or one to be made there."""
        self._file.move_to(path)

    def stop(self) -> None:
        """Call off the pass that runs, and every later one that has something to apply: ViewsStoppedError.

        A pass ends before its next event; the transactions that it finished are kept, and the next start goes
        on from there.
        Views that had caught up before can still be read. For good, from any thread or signal handler;
        returns at once.
        """
        self._stopping = True

    def read(self, query: Query[T]) -> T:
        """Run a query on views that have followed the journal at least once since the file was made.

        Where they cannot follow (the disk is full, the journal damaged) what they hold is still read, and
        why is reported. Views that something else changed are made anew, once. Raises
        StorageUnavailableError when the file cannot be used, and ViewsStoppedError after `stop`.
        """
        return self._mended(lambda: query(self._followed_connection()))

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
                self._queued = self._writing.submit(self._next_pass)
            queued = self._queued
        done = await asyncio.shield(asyncio.wrap_future(queued))
        if isinstance(done, Exception):
            raise done
        return done

    async def run(self, work: Callable[[], T]) -> T:
        """Do something that reads views or journal in a thread."""
        self._check_open()
        return await asyncio.get_running_loop().run_in_executor(self._reading, work)

    def find(self, event_id: str) -> Step | None:
        """Read one event back from the journal; None when the views know none of that id."""

        def locate(connection: apsw.Connection) -> tuple[event_index.Place | None, dict[str, Offset]]:
            return event_index.place_of(connection, event_id), read_cursor(connection)

        def search() -> Step | None:
            place, cursor = self.read(locate)
            return None if place is None else self._follower.step_at(event_id, place, cursor)

        return self._with_places(search)

    def recent(self, types: Sequence[str] | None, limit: int) -> Iterator[tuple[Offset, EventEnvelope]]:
        """Iterate over the `limit` newest events, oldest of them first; of those types only when named.

        Reads only the end of the journal that holds them and keeps only what it gives: at most
        `rows.MOST_ROWS`, and none for a limit below one.
        """

        def plan(connection: apsw.Connection) -> tuple[list[Offset], dict[str, Offset], dict[str, Offset]]:
            chosen = event_index.newest(connection, types, at_most(limit))
            seen = cursor = read_cursor(connection)
            # Newest first: what is left for a writer is its oldest.
            for writer, seq in {offset.writer: offset.seq for offset in chosen}.items():
                cursor = event_index.cursor_with(cursor, writer, event_index.before(connection, writer, seq))
            return chosen, cursor, seen

        def pick() -> list[Located]:
            chosen, cursor, seen = self.read(plan)
            wanted = {(offset.writer, offset.seq) for offset in chosen}
            events = self._store.read(cursor, seen=seen) if wanted else iter(())
            found = islice((item for item in events if (item[0].writer, item[0].seq) in wanted), len(wanted))
            return sorted(found, key=reading_order(None))

        return iter(self._with_places(pick))

    def state_hash(self, name: str) -> str:
        """Return 32 hex digits over a projection's rows, whatever their order in the file."""
        projection = next(known for known in self._projections if known.name == name)
        return self.read(lambda connection: rows_hash(connection, projection.tables))

    @property
    def projections(self) -> tuple[Projection, ...]:
        """What is kept in step, in the order in which an event is applied."""
        return self._projections

    @property
    def schema(self) -> int:
        """The number that a file with these tables carries (SQLite's `user_version`)."""
        return self._file.schema

    def close(self) -> None:
        """Call off a pass that runs, finish reading and close the file; may be called twice."""
        self._closed = True
        self._writing.shutdown()
        self._reading.shutdown()
        self._file.close()

    def _check_open(self) -> None:
        if self._closed:
            raise StorageUnavailableError(f"{self._file.path} was closed")

    def _followed_connection(self) -> apsw.Connection:
        views = self._file.opened()
        # Another process may have made the file anew meanwhile: what was followed must be what is read.
        while views.birth != self._follower.followed:
            try:
                self.catch_up()
            except ViewsStoppedError:
                raise  # what is there may be no more than a beginning
            except (PartUnreadableError, StorageUnavailableError) as error:
                self._report(error)
                views = self._file.opened()
                if isinstance(error, PartUnreadableError) and views.birth != self._follower.followed:
                    continue  # made anew by another process meanwhile: it may hold no more than a beginning
                return views.connection
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

    def _next_pass(self) -> CaughtUp | Exception:
        # From here on a newcomer's events may be missed by this pass: it must ask for the next.
        with self._queue:
            self._queued = None
        try:
            return self.catch_up()
        except Exception as error:  # noqa: BLE001 a value: when all who waited have left, the loop must not tell it at its end
            return error

    def _mended(self, work: Callable[[], T]) -> T:
        """Work on the views; when they are not what Rune made, or what the journal says, make them anew once."""
        try:
            with translated(self._file.path):
                return work()
        except (DamagedViewsError, JournalMovedError) as error:
            damaged = self._file.birth()
            if damaged is not None and damaged == self._in_vain:
                raise self._beyond_repair(error) from error
            self._go_on_or_stop()
            self._report(error)
            with translated(self._file.path):
                self._file.discard()
        except StorageUnavailableError as error:
            if not isinstance(error.__cause__, apsw.IOError):
                raise
            # A file beside it may have been deleted between two looks at it: what is opened now is judged afresh.
            self._file.let_go()
        try:
            with translated(self._file.path):
                return work()
        except DamagedViewsError as error:
            self._in_vain = self._file.birth()
            raise self._beyond_repair(error) from error

    def _beyond_repair(self, error: StorageError) -> StorageUnavailableError:
        return StorageUnavailableError(
            f"the views cannot be used, although they were made anew: {error.message}",
            hint="The journal itself is not affected. Run `rune doctor`.",
        )

    def _go_on_or_stop(self) -> None:
        self._check_open()
        if self._stopping:
            raise ViewsStoppedError(
                "bringing the views up to date was stopped", hint="Nothing is lost: the next start goes on from there."
            )
