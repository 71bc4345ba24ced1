"""Calls that were about to act, and whether anybody knows what came of them (spine.md, Durable when)."""

import apsw
import msgspec

from rune.records.envelope import EventEnvelope
from rune.records.record import Record
from rune.records.tools import PreparedCall, ToolResult
from rune.store.event_store import Offset
from rune.store.projection import rank
from rune.store.projections import ProjectionEngine
from rune.store.rows import read_record

# Whichever is read first makes the row: a result may lie in another slot than its intent.
_DDL = """
CREATE TABLE intents (
    turn_id TEXT NOT NULL,
    call_id TEXT NOT NULL,
    conversation_id TEXT NOT NULL,
    rank TEXT NOT NULL DEFAULT '',
    record BLOB,
    outcome TEXT,
    PRIMARY KEY (turn_id, call_id)
) WITHOUT ROWID;
CREATE INDEX intents_unanswered ON intents (turn_id) WHERE outcome IS NULL;
CREATE INDEX intents_of_conversation ON intents (conversation_id);
"""
_INTENT = """
INSERT INTO intents VALUES (?,?,?,?,?,NULL) ON CONFLICT DO UPDATE SET rank = excluded.rank, record = excluded.record
WHERE record IS NULL
"""
_RESULT = """
INSERT INTO intents VALUES (?,?,?,'',NULL,?) ON CONFLICT DO UPDATE SET outcome = excluded.outcome WHERE outcome IS NULL
"""


class IntentViews:
    """The projection `intents`: one row a call, with what it was to do and how it ended."""

    name = "intents"
    ddl = _DDL
    tables = ("intents",)

    def apply(self, connection: apsw.Connection, offset: Offset, envelope: EventEnvelope, body: Record) -> None:
        """Take one event in (Projection.apply)."""
        match body:
            case PreparedCall():
                row = (body.turn_id, body.id, envelope.partition_key, rank(envelope), msgspec.json.encode(body))
                connection.execute(_INTENT, row)
            case ToolResult():
                connection.execute(_RESULT, (body.turn_id, body.id, envelope.partition_key, body.outcome))
            case _:
                pass  # not about calls, or erased: nothing of it may stay


class IntentRepository:
    """Reads intents from the views. Only the recorder of a turn, and recovery, write them."""

    def __init__(self, engine: ProjectionEngine) -> None:
        self._engine = engine

    async def unanswered(self, turn_id: str) -> list[PreparedCall]:
        """Return the calls of a turn that were about to act and have no result, in the order of their intents."""
        return await self._select("turn_id = ? AND outcome IS NULL", turn_id)

    async def of_unknown_outcome(self, conversation_id: str) -> list[PreparedCall]:
        """Return the calls of a conversation that may have run: killed between intent and result."""
        return await self._select("conversation_id = ? AND outcome = 'unknown'", conversation_id)

    async def _select(self, where: str, value: str) -> list[PreparedCall]:
        def select(connection: apsw.Connection) -> list[PreparedCall]:
            rows = connection.execute(
                f"SELECT record FROM intents WHERE {where} AND record IS NOT NULL ORDER BY rank",  # noqa: S608 text from here
                (value,),
            )
            return [read_record(row[0], PreparedCall) for row in rows]

        return await self._engine.query(select)
