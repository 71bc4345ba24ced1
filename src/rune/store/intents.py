"""Calls that were about to act, and what came of them: also whether anybody knows (spine.md, Durable when)."""

from typing import Any

import apsw
import msgspec

from rune.errors import NotFoundError
from rune.records.envelope import EventEnvelope
from rune.records.record import Record
from rune.records.tools import PreparedCall, ToolResult
from rune.store.event_store import Offset
from rune.store.lineage import lineage
from rune.store.projection import rank
from rune.store.projections import ProjectionEngine
from rune.store.rows import as_written, read_record

# Whichever is read first makes the row: a result may lie in another slot than its intent. A call that asked for
# nothing has a result alone. Of two results, which only damage or two processes can leave, the first holds.
_DDL = """
CREATE TABLE intents (
    turn_id TEXT NOT NULL,
    call_id TEXT NOT NULL,
    conversation_id TEXT NOT NULL,
    rank TEXT NOT NULL DEFAULT '',
    record BLOB,
    result_rank TEXT NOT NULL DEFAULT '',
    result BLOB,
    outcome TEXT,
    allowed_by TEXT,
    at TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (turn_id, call_id)
) WITHOUT ROWID;
CREATE INDEX intents_unanswered ON intents (turn_id) WHERE outcome IS NULL;
CREATE INDEX intents_of_conversation ON intents (conversation_id, result_rank);
CREATE INDEX intents_of_call ON intents (call_id);
CREATE INDEX intents_by_rule ON intents (allowed_by, at) WHERE allowed_by IS NOT NULL;
"""
_INTENT = """
INSERT INTO intents (turn_id, call_id, conversation_id, rank, record) VALUES (?,?,?,?,?)
ON CONFLICT DO UPDATE SET rank = excluded.rank, record = excluded.record
WHERE record IS NULL OR excluded.rank < rank
"""
_RESULT = """
INSERT INTO intents (turn_id, call_id, conversation_id, result_rank, result, outcome, allowed_by, at)
VALUES (?,?,?,?,?,?,?,?)
ON CONFLICT DO UPDATE SET result_rank = excluded.result_rank, result = excluded.result, outcome = excluded.outcome,
    allowed_by = excluded.allowed_by, at = excluded.at
WHERE result IS NULL OR excluded.result_rank < result_rank
"""
_FOUND = "SELECT record, result, allowed_by, at FROM intents"
_ROW = tuple[bytes | None, bytes, str | None, str]


class StoredResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a call came to. `prepared` is None for one that was about to do nothing (reading leaves no intent), and
    `authorization` for one that needed none: else `owner`, `approval:<id>` or `rule:<id>`. `at` is RFC 3339.
    """

    prepared: PreparedCall | None
    result: ToolResult
    authorization: str | None
    at: str


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
                row = (body.turn_id, body.id, envelope.partition_key, rank(envelope), msgspec.json.encode(body))
                connection.execute(_RESULT, (*row, body.outcome, envelope.authorization, envelope.timestamp))
            case _:
                pass  # not about calls, or erased: nothing of it may stay


class IntentRepository:
    """Reads intents and results from the views. Only the recorder of a turn, and recovery, write them."""

    def __init__(self, engine: ProjectionEngine) -> None:
        self._engine = engine

    async def unanswered(self, turn_id: str) -> list[PreparedCall]:
        """Return the calls of a turn that were about to act and have no result, in the order of their intents."""
        return await self._select("turn_id = ? AND outcome IS NULL", turn_id)

    async def of_unknown_outcome(self, conversation_id: str) -> list[PreparedCall]:
        """Return the calls of a conversation that may have run: killed between intent and result."""
        return await self._select("conversation_id = ? AND outcome = 'unknown'", conversation_id)

    async def results(self, conversation_id: str) -> list[StoredResult]:
        """Return what the calls of a conversation came to, in the order in which they ended; of a fork also those of
        the part that it shares.
        """
        wanted = (
            f"{_FOUND} WHERE conversation_id = ? AND result_rank <= ? AND result IS NOT NULL "
            "ORDER BY result_rank, turn_id, call_id"
        )

        def select(connection: apsw.Connection) -> list[StoredResult]:
            branches = lineage(connection, conversation_id)
            return [_stored(row) for branch in branches for row in connection.execute(wanted, branch)]

        return await self._engine.query(select)

    async def result(self, call_id: str) -> StoredResult:
        """Return what one call came to, the newest where it ended more than once. Raises NotFoundError."""
        wanted = f"{_FOUND} WHERE call_id = ? AND result IS NOT NULL ORDER BY result_rank DESC LIMIT 1"
        found = await self._engine.query(lambda connection: connection.execute(wanted, (call_id,)).fetchone())
        if found is None:
            raise NotFoundError(f"no call {call_id} that has ended")
        return _stored(found)

    async def _select(self, where: str, value: str) -> list[PreparedCall]:
        def select(connection: apsw.Connection) -> list[PreparedCall]:
            rows = connection.execute(
                f"SELECT record FROM intents WHERE {where} AND record IS NOT NULL ORDER BY rank",  # noqa: S608 text from here
                (value,),
            )
            return [read_record(row[0], PreparedCall) for row in rows]

        return await self._engine.query(select)


def _stored(row: tuple[Any, ...]) -> StoredResult:
    with as_written():
        record, result, allowed_by, at = msgspec.convert(row, _ROW)
    return StoredResult(
        prepared=None if record is None else read_record(record, PreparedCall),
        result=read_record(result, ToolResult),
        authorization=allowed_by,
        at=at,
    )
