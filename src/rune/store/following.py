"""Following the journal: one pass after another takes in what is new, in whichever process it comes (spine.md,
ProjectionEngine).
"""

from collections.abc import Callable, Iterator, Sequence

import apsw

from rune.errors import NotFoundError, PartUnreadableError, StorageError
from rune.records.envelope import EventEnvelope
from rune.records.record import Record
from rune.store import event_index
from rune.store.event_store import EventStore, Offset
from rune.store.lost_bodies import BodyReader, found_again, lost_events
from rune.store.order import Located
from rune.store.projection import LostBody, Projection
from rune.store.view_cursor import batches, follow, read_cursor, write_cursor
from rune.store.view_pass import CaughtUp, Meter, Progress
from rune.store.views_file import ViewsFile, transaction

Step = tuple[Offset, EventEnvelope, Record]

_EVENTS_PER_TRANSACTION = 500
# What a person lost long ago must not be looked for for ever at each start.
_LOOKED_FOR_AGAIN = 100


class Follower:
    """Applies the journal to a views file. `followed` is the birth of the file that has come to the journal's end.

    `on_progress` and `on_damage` are those of ProjectionEngine; `go_on` raises when the pass is to end early.
    """

    def __init__(
        self,
        file: ViewsFile,
        store: EventStore,
        bodies: BodyReader,
        projections: Sequence[Projection],
        *,
        on_progress: Progress | None,
        on_damage: Callable[[StorageError], object],
        go_on: Callable[[], None],
    ) -> None:
        self.followed: int | None = None
        self._file = file
        self._store = store
        self._bodies = bodies
        self._projections = projections
        self._on_progress = on_progress
        self._on_damage = on_damage
        self._go_on = go_on
        # The birth of the file that the running pass goes by: it was there before anything was read for it.
        self._following: int | None = None

    def follow(self, progress: Progress | None) -> CaughtUp:
        """Apply what the journal has and the views lack. One at a time. Raises as ProjectionEngine.catch_up."""
        try:
            return self._follow_to_the_end(progress)
        except PartUnreadableError as error:
            # What lies before the damage is in the views now and stays readable: in the file that was followed, which
            # may not be the one that is there by now.
            self.followed = self._following
            self._on_damage(error)
            raise

    def _follow_to_the_end(self, progress: Progress | None) -> CaughtUp:
        views = self._file.opened()
        self._following = views.birth
        start = read_cursor(views.connection)
        # Views may have read a line of another process that a power cut or a failed sync then took from
        # the journal: the last event of each slot is read once more.
        last = event_index.last_events(views.connection, start)
        meter = Meter(
            self._store, start, progress or self._on_progress, 0 if progress is not None else _EVENTS_PER_TRANSACTION
        )
        again = self._follow_from(follow(self._store, start, last), meter)
        before = 0
        # Until the file that is there is the one that was followed: it may have been deleted and made anew meanwhile,
        # and hold no more than a beginning.
        while (there := self._file.opened()).birth != views.birth or again:
            now = read_cursor(there.connection)
            if there.birth == views.birth and meter.applied == before and now == start:
                raise StorageError("the journal has a gap: its events cannot be applied in order")
            views, start, before = there, now, meter.applied
            self._following = views.birth
            again = self._follow_from(self._store.read(start, seen=start), meter)
        views = there
        if views.birth != self.followed:
            self._look_again(views.connection)
            self._file.remove_older()
        self.followed = views.birth
        return CaughtUp(applied=meter.applied, forks=event_index.unreported_forks(views.connection))

    def _follow_from(self, events: Iterator[Located], meter: Meter) -> bool:
        """Apply these; True when the views moved meanwhile: start again from where they are."""
        for batch in batches(events, _EVENTS_PER_TRANSACTION):
            # Bodies may come from evidence files: read them before the write lock is held.
            steps: list[Step] = []
            for offset, envelope in batch:
                self._go_on()
                steps.append((offset, envelope, self._bodies.read(envelope)))
            count, fits = self._apply(steps)
            meter.add(count)
            if not fits:
                return True
        return False

    def step_at(self, event_id: str, place: event_index.Place, cursor: dict[str, Offset]) -> Step:
        """Read one event, with its body, at the place that the views give it. Raises NotFoundError, JournalMovedError,
        and what reading raises.
        """
        after = event_index.cursor_with(cursor, place.offset.writer, place.before)
        for offset, envelope in self._store.read(after, seen=cursor):
            if envelope.event_id == event_id:
                return offset, envelope, self._bodies.read(envelope)
        raise NotFoundError(f"event {event_id} is in the views and not in the journal", hint="Run `rune doctor`.")

    def _look_again(self, connection: apsw.Connection) -> None:
        """Take in what was lost when it was due and is back: a folder that was not mounted, a restored file."""
        cursor = read_cursor(connection)
        places = [
            (event_id, place)
            for event_id in lost_events(connection, _LOOKED_FOR_AGAIN)
            if (place := event_index.place_of(connection, event_id)) is not None
        ]
        steps = [self.step_at(event_id, place, cursor) for event_id, place in places]
        found = [step for step in steps if not isinstance(step[2], LostBody)]
        if not found:
            return
        with transaction(connection):
            for offset, envelope, body in found:
                for projection in self._projections:
                    projection.apply(connection, offset, envelope, body)
                found_again(connection, envelope.event_id)

    def _apply(self, steps: Sequence[Step]) -> tuple[int, bool]:
        """Apply a batch in one transaction; False when its events do not go on from where the views are, or these
        are not those that the pass goes by: they may have been thrown away because of what was read, as erasing does.
        """
        connection, there, _ = self._file.opened()
        if there != self._following:
            return 0, False
        applied, fits = 0, True
        with transaction(connection):
            cursor = read_cursor(connection)
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
            write_cursor(connection, cursor)
        return applied, fits
