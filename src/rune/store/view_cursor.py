"""How far the views have followed each slot, and whether the journal still holds what they followed."""

from collections.abc import Iterator, Mapping

import apsw

from rune.errors import JournalMovedError, StorageError
from rune.store import event_index
from rune.store.event_index import LastEvent
from rune.store.event_store import Cursor, EventStore, Offset
from rune.store.order import Located
from rune.store.rows import read_offset

CURSOR_DDL = """
CREATE TABLE cursor (writer TEXT PRIMARY KEY, seq INTEGER, segment INTEGER, position INTEGER) WITHOUT ROWID;
"""


def read_cursor(connection: apsw.Connection) -> dict[str, Offset]:
    """Return how far each slot was applied."""
    rows = connection.execute("SELECT writer, seq, segment, position FROM cursor").fetchall()
    return {at.writer: at for at in map(read_offset, rows)}


def write_cursor(connection: apsw.Connection, cursor: Cursor) -> None:
    """Note how far each slot was applied; part of the transaction that did so."""
    connection.executemany(
        "INSERT OR REPLACE INTO cursor VALUES (?,?,?,?)",
        [(at.writer, at.seq, at.segment, at.position) for at in cursor.values()],
    )


def follow(store: EventStore, cursor: Cursor, last: Mapping[str, LastEvent]) -> Iterator[Located]:
    """Iterate over what comes after the cursor. Raises JournalMovedError when an event that was the
    `last` of its slot is there no longer, or is another one.
    """
    expected = dict(last)
    after = dict(cursor)
    for writer, event in last.items():
        after = event_index.cursor_with(after, writer, event.before)
    for offset, envelope in store.read(after, seen=cursor):
        event = expected.get(offset.writer)
        if event is None or offset.seq > event.seq:
            yield offset, envelope
        elif offset.seq == event.seq and event.event_id in {None, envelope.event_id}:
            del expected[offset.writer]
        elif offset.seq == event.seq:
            break
    if expected:
        raise JournalMovedError(f"the views hold events of {', '.join(sorted(expected))} that the journal lacks")


def batches(events: Iterator[Located], size: int) -> Iterator[list[Located]]:
    """Cut into transactions; what was read before an error is given before it is raised."""
    batch: list[Located] = []
    try:
        for item in events:
            batch.append(item)
            if len(batch) == size:
                yield batch
                batch = []
    except StorageError:
        if batch:
            yield batch
        raise
    if batch:
        yield batch
