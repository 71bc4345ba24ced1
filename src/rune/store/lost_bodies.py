"""Bodies whose evidence cannot be read: the event counts without, and with it once it is back."""

from collections.abc import Callable

import apsw

from rune.errors import EvidenceTamperedError, NotFoundError, StorageUnavailableError
from rune.records.envelope import EventEnvelope
from rune.records.events import EVENT_KINDS
from rune.records.record import Record
from rune.store.event_store import Offset
from rune.store.projection import LostBody, UnknownBody

Decode = Callable[[EventEnvelope], Record]

_DDL = "CREATE TABLE lost (event_id TEXT PRIMARY KEY) WITHOUT ROWID;\n"


class BodyReader:
    """Gives the body of an event for the views. `report` is told once of each that is lost."""

    def __init__(self, decode: Decode, report: Callable[[Exception], None]) -> None:
        self._decode = decode
        self._report = report
        self._told: set[str] = set()

    def read(self, envelope: EventEnvelope) -> Record:
        """Return the body, UnknownBody or LostBody. Raises InvalidRecordError."""
        kind = EVENT_KINDS.get(envelope.event_type)
        if kind is None or kind.body is None:
            # A later Rune may have written what this one has no name for, and so no view of.
            return UnknownBody()
        try:
            return self._decode(envelope)
        except (NotFoundError, EvidenceTamperedError, StorageUnavailableError) as error:
            # One unreadable file must not take everything else with it.
            if envelope.event_id not in self._told:
                self._told.add(envelope.event_id)
                self._report(error)
            return LostBody(reason=error.message)


class LostBodies:
    """The projection `lost`."""

    name = "lost"
    ddl = _DDL
    tables = ("lost",)

    def apply(self, connection: apsw.Connection, offset: Offset, envelope: EventEnvelope, body: Record) -> None:
        """Take one event in (Projection.apply)."""
        if isinstance(body, LostBody):
            connection.execute("INSERT INTO lost VALUES (?) ON CONFLICT DO NOTHING", (envelope.event_id,))


def lost_events(connection: apsw.Connection, limit: int) -> list[str]:
    """Return the ids of up to `limit` events whose body was lost when they were taken in."""
    rows = connection.execute("SELECT event_id FROM lost ORDER BY event_id LIMIT ?", (limit,)).fetchall()
    return [str(row[0]) for row in rows]


def found_again(connection: apsw.Connection, event_id: str) -> None:
    """Note that an event was taken in with its body after all."""
    connection.execute("DELETE FROM lost WHERE event_id = ?", (event_id,))
