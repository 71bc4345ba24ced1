"""Where every event lies and what it said: identity, place, time; and places that were given twice."""

from collections.abc import Collection
from typing import cast

import apsw
import msgspec

from rune.records.envelope import EventEnvelope
from rune.records.events import JournalForked
from rune.records.record import Record
from rune.store.codec import content_of
from rune.store.event_store import Cursor, Offset
from rune.store.identity import StoredIdentity
from rune.store.rows import as_written, read_offset

_DDL = """
CREATE TABLE events (
    event_id TEXT NOT NULL UNIQUE,
    event_type TEXT NOT NULL,
    partition_key TEXT NOT NULL,
    pseq INTEGER NOT NULL,
    hlc INTEGER NOT NULL,
    writer TEXT NOT NULL,
    seq INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    position INTEGER NOT NULL,
    digest TEXT NOT NULL
);
CREATE UNIQUE INDEX events_of_slot ON events (writer, seq);
CREATE INDEX events_of_conversation ON events (partition_key, pseq) WHERE pseq > 0;
CREATE INDEX events_in_time ON events (hlc, writer, seq);
CREATE TABLE forks (
    conversation_id TEXT NOT NULL,
    pseq INTEGER NOT NULL,
    event_ids TEXT NOT NULL,
    reported INTEGER NOT NULL,
    PRIMARY KEY (conversation_id, pseq)
) WITHOUT ROWID;
CREATE INDEX forks_to_report ON forks (conversation_id) WHERE reported = 0;
"""
_INSERT = "INSERT INTO events VALUES (?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING"
# `pseq > 0` is what lets SQLite use the partial index.
_SAME_PLACE = "SELECT event_id FROM events WHERE partition_key = ? AND pseq = ? AND pseq > 0"


class Place(msgspec.Struct, frozen=True):
    """An event's own offset, and the one to read after to find it (None: from the slot's beginning)."""

    offset: Offset
    before: Offset | None


class LastEvent(msgspec.Struct, frozen=True):
    """The last event of a slot and the offset to read after to find it. `event_id` is None where the
    index holds the id under another number.
    """

    seq: int
    event_id: str | None
    before: Offset | None


class EventIndex:
    """The projection `identities`: every event by id, by conversation and by time."""

    name = "identities"
    ddl = _DDL
    tables = ("events", "forks")

    def apply(self, connection: apsw.Connection, offset: Offset, envelope: EventEnvelope, body: Record) -> None:
        """Enter the event, and the place in its conversation if another event has it too."""
        connection.execute(
            _INSERT,
            (
                envelope.event_id,
                envelope.event_type,
                envelope.partition_key,
                envelope.pseq,
                envelope.hlc,
                offset.writer,
                offset.seq,
                offset.segment,
                offset.position,
                content_of(envelope),
            ),
        )
        if envelope.pseq > 0:
            _note_fork(connection, envelope)
        if isinstance(body, JournalForked):
            _note_report(connection, body)


def place_of(connection: apsw.Connection, event_id: str) -> Place | None:
    """Return where the event lies; None when there is none of that id."""
    known = identity(connection, event_id)
    return None if known is None else Place(known.offset, before(connection, known.offset.writer, known.offset.seq))


def identity(connection: apsw.Connection, event_id: str) -> StoredIdentity | None:
    """Return where an id was stored first and what it said; None when there is none."""
    row = connection.execute(
        "SELECT writer, seq, segment, position, digest FROM events WHERE event_id = ?", (event_id,)
    ).fetchone()
    return None if row is None else StoredIdentity(offset=read_offset(row[:4]), content=row[4])


def before(connection: apsw.Connection, writer: str, seq: int) -> Offset | None:
    """Return the slot's last indexed offset below `seq`; None when there is none."""
    row = connection.execute(
        "SELECT writer, seq, segment, position FROM events WHERE writer = ? AND seq < ? ORDER BY seq DESC LIMIT 1",
        (writer, seq),
    ).fetchone()
    return None if row is None else read_offset(row)


def last_events(connection: apsw.Connection, cursor: Cursor) -> dict[str, LastEvent]:
    """Return the event at which each slot's cursor stands."""
    return {
        writer: LastEvent(
            at.seq,
            connection.execute("SELECT event_id FROM events WHERE writer = ? AND seq = ?", (writer, at.seq)).get,
            before(connection, writer, at.seq),
        )
        for writer, at in cursor.items()
    }


def last_pseq(connection: apsw.Connection, conversation_id: str) -> int:
    """Return the highest place given in a conversation; 0 when it has no events."""
    last = connection.execute(
        "SELECT coalesce(max(pseq), 0) FROM events WHERE partition_key = ? AND pseq > 0", (conversation_id,)
    ).get
    with as_written():
        return msgspec.convert(last, int)


def newest(connection: apsw.Connection, types: Collection[str] | None, limit: int) -> list[Offset]:
    """Return the offsets of the `limit` newest events, newest first; of those types only when named."""
    wanted = "" if types is None else f"WHERE event_type IN ({','.join('?' * len(types))})"
    rows = connection.execute(
        f"SELECT writer, seq, segment, position FROM events {wanted} ORDER BY hlc DESC, writer DESC, seq DESC LIMIT ?",  # noqa: S608 only placeholders are put in
        (*(types or ()), limit),
    )
    return [read_offset(row) for row in rows]


def unreported_forks(connection: apsw.Connection) -> tuple[JournalForked, ...]:
    """Return the places given twice for which no `journal.forked` was read yet."""
    rows = cast(
        "list[tuple[str, int, str]]",
        connection.execute(
            "SELECT conversation_id, pseq, event_ids FROM forks WHERE reported = 0 ORDER BY conversation_id, pseq"
        ).fetchall(),
    )
    return tuple(
        JournalForked(conversation_id=conversation, pseq=pseq, event_ids=_ids(ids)) for conversation, pseq, ids in rows
    )


def _note_fork(connection: apsw.Connection, envelope: EventEnvelope) -> None:
    place = (envelope.partition_key, envelope.pseq)
    if connection.execute(f"{_SAME_PLACE} LIMIT 1 OFFSET 1", place).fetchone() is None:
        return
    rows = connection.execute(f"{_SAME_PLACE} ORDER BY hlc, writer, seq", place).fetchall()
    connection.execute(
        "INSERT INTO forks VALUES (?,?,?,0) ON CONFLICT DO UPDATE SET event_ids = excluded.event_ids",
        (*place, msgspec.json.encode([row[0] for row in rows]).decode()),
    )


def _note_report(connection: apsw.Connection, body: JournalForked) -> None:
    # The report may be read before the events it is about: they can lie in another slot.
    connection.execute(
        "INSERT INTO forks VALUES (?,?,?,1) ON CONFLICT DO UPDATE SET reported = 1",
        (body.conversation_id, body.pseq, msgspec.json.encode(body.event_ids).decode()),
    )


def _ids(text: str) -> tuple[str, ...]:
    with as_written():
        return msgspec.json.decode(text, type=tuple[str, ...])


def cursor_with(base: Cursor, writer: str, offset: Offset | None) -> dict[str, Offset]:
    """Return the cursor with one slot set back to `offset` (None: its beginning)."""
    cursor = {**base}
    if offset is None:
        cursor.pop(writer, None)
    else:
        cursor[writer] = offset
    return cursor
