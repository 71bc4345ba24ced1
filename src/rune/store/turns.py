"""Turns: which began, which ended and why, and which were cut off by a kill."""

import apsw
import msgspec

from rune.errors import NotFoundError
from rune.records.envelope import EventEnvelope
from rune.records.events import TurnFailed
from rune.records.record import Record
from rune.records.turns import TurnRecord
from rune.store.event_store import Offset
from rune.store.lineage import lineage
from rune.store.projection import rank
from rune.store.projections import ProjectionEngine
from rune.store.rows import read_record

_DDL = """
CREATE TABLE turns (
    id TEXT NOT NULL UNIQUE,
    conversation_id TEXT NOT NULL,
    started_rank TEXT NOT NULL,
    changed_rank TEXT NOT NULL,
    finished INTEGER NOT NULL,
    record BLOB NOT NULL
);
CREATE INDEX turns_of_conversation ON turns (conversation_id, started_rank);
CREATE INDEX turns_open ON turns (id) WHERE finished = 0;
CREATE TABLE turn_failures (
    turn_id TEXT PRIMARY KEY,
    conversation_id TEXT NOT NULL,
    rank TEXT NOT NULL,
    record BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX turn_failures_of_conversation ON turn_failures (conversation_id);
"""
_UPSERT = """
INSERT INTO turns VALUES (?1,?2,?3,?3,?4,?5) ON CONFLICT (id) DO UPDATE SET
    started_rank = min(started_rank, excluded.started_rank),
    finished = max(finished, excluded.finished),
    record = iif(excluded.changed_rank > changed_rank, excluded.record, record),
    changed_rank = max(changed_rank, excluded.changed_rank)
"""
# Of two failures of one turn the later tells more.
_UPSERT_FAILURE = """
INSERT INTO turn_failures VALUES (?1,?2,?3,?4) ON CONFLICT (turn_id) DO UPDATE SET
    record = excluded.record, rank = excluded.rank WHERE excluded.rank > rank
"""


class TurnViews:
    """The projection `turns`: one row a turn, as its last event left it, and beside it what made it fail."""

    name = "turns"
    ddl = _DDL
    tables = ("turns", "turn_failures")

    def apply(self, connection: apsw.Connection, offset: Offset, envelope: EventEnvelope, body: Record) -> None:
        """Take one event in (Projection.apply)."""
        match body:
            case TurnRecord():
                finished = int(envelope.event_type == "turn.finished")
                row = (body.id, body.conversation_id, rank(envelope), finished, msgspec.json.encode(body))
                connection.execute(_UPSERT, row)
            case TurnFailed():
                failure = (body.turn_id, body.conversation_id, rank(envelope), msgspec.json.encode(body))
                connection.execute(_UPSERT_FAILURE, failure)
            case _:
                pass  # not about turns, or erased: nothing of it may stay


class TurnRepository:
    """Reads turns from the views. Only the recorder of a turn writes its facts."""

    def __init__(self, engine: ProjectionEngine) -> None:
        self._engine = engine

    async def get(self, turn_id: str) -> TurnRecord:
        """Return a turn; `stop_reason` is None while it has not ended. Raises NotFoundError."""
        found = await self._select("WHERE id = ?", turn_id)
        if not found:
            raise NotFoundError(f"no turn {turn_id}")
        return found[0]

    async def open_turns(self, conversation_id: str | None = None) -> list[TurnRecord]:
        """Return the turns that began and did not end, oldest first; of one conversation when it is named.

        Whether one of them still runs is known by who holds the conversation's lease.
        """
        if conversation_id is None:
            return await self._select("WHERE finished = 0 ORDER BY id")
        return await self._select("WHERE conversation_id = ? AND finished = 0 ORDER BY started_rank", conversation_id)

    async def turns(self, conversation_id: str) -> list[TurnRecord]:
        """Return a conversation's turns, oldest first; of a fork also those of the part that it shares."""

        def select(connection: apsw.Connection) -> list[TurnRecord]:
            rest = "WHERE conversation_id = ? AND started_rank <= ? ORDER BY started_rank"
            branches = lineage(connection, conversation_id)
            return [turn for branch in branches for turn in _read(connection, rest, branch)]

        return await self._engine.query(select)

    async def failures(self, conversation_id: str) -> dict[str, TurnFailed]:
        """Return what made turns of a conversation fail, by turn id; most turns have nothing there."""
        wanted = "SELECT record FROM turn_failures WHERE conversation_id = ?"

        def select(connection: apsw.Connection) -> dict[str, TurnFailed]:
            branches = lineage(connection, conversation_id)
            rows = (row for branch in branches for row in connection.execute(wanted, branch[:1]))
            found = [read_record(row[0], TurnFailed) for row in rows]
            return {failure.turn_id: failure for failure in found}

        return await self._engine.query(select)

    async def _select(self, rest: str, *values: str) -> list[TurnRecord]:
        return await self._engine.query(lambda connection: _read(connection, rest, values))


def _read(connection: apsw.Connection, rest: str, values: tuple[str, ...]) -> list[TurnRecord]:
    rows = connection.execute(f"SELECT record FROM turns {rest}", values)  # noqa: S608 text from here
    return [read_record(row[0], TurnRecord) for row in rows]
