"""Views held against what the journal says: made anew up to the same event, elsewhere, and compared row by row."""

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

import apsw
import msgspec

from rune.errors import StorageUnavailableError
from rune.records.envelope import EventEnvelope
from rune.records.events import Event
from rune.store.event_store import Cursor, EventStore, Offset
from rune.store.lost_bodies import LostBodies
from rune.store.mending.views_inspection import reading
from rune.store.order import Located
from rune.store.projection import Projection
from rune.store.projections import ProjectionEngine
from rune.store.view_cursor import read_cursor
from rune.store.view_hash import rows_hash

_UNREADABLE: Final = "unreadable"


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it. `differing` names the projections whose rows are not what the journal says; `not_compared`
    says why nothing can be said ("": they were compared).
    """

    differing: tuple[str, ...] = ()
    not_compared: str = ""


class TooLongError(Exception):
    """Comparing took longer than it may. Stays inside the look that set the time."""


def compare_views(
    path: Path,
    store: EventStore,
    anew: Callable[[EventStore], ProjectionEngine],
    scratch: Path,
    go_on: Callable[[int], None] = lambda _: None,
) -> Comparison:
    """Compare the views at `path` with those that `anew` makes at `scratch`, where nothing stands yet, out of what the
    journal had when the former were written last: events that come meanwhile make no difference.

    `go_on` is told how many events were taken in; what it raises ends the look, and with TooLongError that is the
    result. Changes nothing but `scratch`. Raises what ProjectionEngine.catch_up raises.
    """
    seen = _Count(go_on)
    try:
        with reading(path) as connection:
            end = read_cursor(connection)
            engine = anew(_JournalUpTo(store, end, seen))
            try:
                if connection.pragma("user_version") != engine.schema:
                    return Comparison(not_compared="they have another form, and the next start makes them anew")
                engine.move_to(scratch)
                found = _hashes(connection, engine.projections, seen.now)
                engine.catch_up()
                wanted = engine.read(lambda fresh: _hashes(fresh, engine.projections, seen.now))
            finally:
                engine.close()
    except TooLongError:
        return Comparison(not_compared="that would take too long for a look")
    except apsw.Error as error:
        return Comparison(not_compared=str(error) or type(error).__name__)
    if found[LostBodies.name] != wanted[LostBodies.name]:
        return Comparison(not_compared="files of evidence came or went since they took them in")
    return Comparison(differing=tuple(name for name in wanted if found[name] != wanted[name]))


def _hashes(
    connection: apsw.Connection, projections: Sequence[Projection], go_on: Callable[[], None]
) -> dict[str, str]:
    return {each.name: _hash(connection, each.tables, go_on) for each in projections}


def _hash(connection: apsw.Connection, tables: Sequence[str], go_on: Callable[[], None]) -> str:
    try:
        return rows_hash(connection, tables, go_on)
    except (apsw.SQLError, apsw.CorruptError):
        return _UNREADABLE  # a table is not there, or not in order: no hash equals that


class _Count:
    """Counts events, and says how many at every step."""

    def __init__(self, go_on: Callable[[int], None]) -> None:
        self._go_on = go_on
        self._events = 0

    def one_more(self) -> None:
        self._events += 1
        self._go_on(self._events)

    def now(self) -> None:
        self._go_on(self._events)


class _JournalUpTo(EventStore):
    """A journal that ends at a cursor, for reading."""

    def __init__(self, store: EventStore, end: Cursor, seen: _Count) -> None:
        self._store = store
        self._end = end
        self._seen = seen

    async def append(self, event: Event) -> Offset:
        raise StorageUnavailableError("a journal that is looked at is not written")

    async def append_many(self, events: Sequence[Event]) -> tuple[Offset, ...]:
        raise StorageUnavailableError("a journal that is looked at is not written")

    def read(self, after: Cursor, *, seen: Cursor | None = None) -> Iterator[Located]:
        return self._cut(self._store.read(after, seen=seen))

    def replay(
        self, partition: str | None = None, types: Collection[str] | None = None
    ) -> Iterator[tuple[Offset, EventEnvelope]]:
        return self._cut(self._store.replay(partition, types))

    def head(self) -> Cursor:
        return self._end

    async def close(self) -> None:
        """Leave the journal to whoever opened it."""

    def _cut(self, events: Iterator[Located]) -> Iterator[Located]:
        for item in events:
            last = self._end.get(item[0].writer)
            if last is not None and item[0].seq <= last.seq:
                self._seen.one_more()
                yield item
