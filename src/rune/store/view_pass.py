"""One pass of the views over the journal: what is told of it meanwhile, and what it did."""

from collections.abc import Callable

import msgspec

from rune.errors import StorageError
from rune.records.events import JournalForked
from rune.store.event_store import Cursor, EventStore


class Pass(msgspec.Struct, frozen=True):
    """How far a pass is, in events. `total` is what there was to apply when it turned out to be a long one, and
    `applied` where more has come since, or where nobody can say.
    """

    applied: int
    total: int


class CaughtUp(msgspec.Struct, frozen=True, kw_only=True):
    """What a pass did: events applied, and the places given twice that nobody reported yet."""

    applied: int
    forks: tuple[JournalForked, ...]


Progress = Callable[[Pass], None]


class Meter:
    """Counts what a pass applies, and tells once it is `least` events or more."""

    def __init__(self, store: EventStore, start: Cursor, tell: Progress | None, least: int) -> None:
        self._store = store
        self._start = start
        self._tell = tell
        self._least = least
        self._total: int | None = None
        self.applied = 0

    def add(self, applied: int) -> None:
        """Count the events of a transaction."""
        self.applied += applied
        if self._tell is not None and self.applied >= self._least:
            if self._total is None:
                self._total = self._to_apply()
            self._tell(Pass(self.applied, max(self._total, self.applied)))

    def _to_apply(self) -> int:
        try:
            head = self._store.head()
        except StorageError:
            return 0  # the pass meets the same when it comes there, and raises it
        ahead = (at.seq - (self._start[at.writer].seq if at.writer in self._start else 0) for at in head.values())
        return sum(max(0, events) for events in ahead)
