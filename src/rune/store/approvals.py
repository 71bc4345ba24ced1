"""Questions that wait for the person, and how each was answered (tools.md, Prepare, approve, run once).

The first answer holds: all answers to one question share one event id, and the journal takes an id once.
"""

from functools import partial
from typing import Any, Literal

import apsw
import msgspec

from rune.errors import NotFoundError
from rune.records.approvals import PendingApprovalRecord
from rune.records.envelope import EventEnvelope
from rune.records.record import Record
from rune.store.event_store import Offset
from rune.store.ledger import Draft, Ledger, once
from rune.store.projection import rank
from rune.store.projections import ProjectionEngine
from rune.store.rows import as_written, find_by_part, read_record

# Whichever of its events is read first makes the row, and each stands beside its rank: they may lie in several slots.
_DDL = """
CREATE TABLE approvals (
    id TEXT PRIMARY KEY,
    conversation_id TEXT NOT NULL,
    requested BLOB, requested_rank TEXT NOT NULL DEFAULT '', requested_at TEXT NOT NULL DEFAULT '',
    decided BLOB, decided_rank TEXT NOT NULL DEFAULT '', decided_at TEXT NOT NULL DEFAULT '',
    expired BLOB, expired_rank TEXT NOT NULL DEFAULT '', expired_at TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE INDEX approvals_open ON approvals (conversation_id) WHERE decided IS NULL AND expired IS NULL;
"""
_FACTS = {"approval.requested": "requested", "approval.decided": "decided", "approval.expired": "expired"}
_OPEN = "requested IS NOT NULL AND decided IS NULL AND expired IS NULL"
_COLUMNS = "requested, requested_at, decided, decided_at, expired, expired_at"
_ROW = tuple[bytes | None, str, bytes | None, str, bytes | None, str]

Standing = Literal["open", "decided", "expired"]


class StoredApproval(msgspec.Struct, frozen=True, kw_only=True):
    """A question as it stands: `record` with its answer when it has one. `asked_at` and `closed_at` are RFC 3339, ""
    where the event that would tell is not there (an open one is not closed).
    """

    record: PendingApprovalRecord
    standing: Standing
    asked_at: str
    closed_at: str


class ApprovalViews:
    """The projection `approvals`: one row a question, with what was asked, answered, and whether it expired."""

    name = "approvals"
    ddl = _DDL
    tables = ("approvals",)

    def apply(self, connection: apsw.Connection, offset: Offset, envelope: EventEnvelope, body: Record) -> None:
        """Take one event in (Projection.apply)."""
        fact = _FACTS.get(envelope.event_type)
        if fact is None or not isinstance(body, PendingApprovalRecord):
            return  # not about approvals, or erased: nothing of it may stay
        connection.execute(
            f"INSERT INTO approvals (id, conversation_id, {fact}, {fact}_rank, {fact}_at) VALUES (?,?,?,?,?) "  # noqa: S608 a column's name from above
            f"ON CONFLICT DO UPDATE SET {fact} = excluded.{fact}, {fact}_rank = excluded.{fact}_rank, "
            f"{fact}_at = excluded.{fact}_at WHERE {fact} IS NULL OR excluded.{fact}_rank < {fact}_rank",
            (body.id, envelope.partition_key, msgspec.json.encode(body), rank(envelope), envelope.timestamp),
        )


class ApprovalRepository:
    """Reads approvals from the views, after all that is durable, and gives their facts to be emitted with others."""

    def __init__(self, ledger: Ledger, engine: ProjectionEngine) -> None:
        self._ledger = ledger
        self._engine = engine

    def draft_request(self, record: PendingApprovalRecord) -> Draft:
        """Return that the person is asked; once for its id."""
        return Draft(
            event_type="approval.requested", body=record, partition=record.conversation_id, event_id=once(record.id)
        )

    def draft_decide(self, decided: PendingApprovalRecord) -> Draft:
        """Return the person's answer. Emitting it raises IdentityCollisionError where another one, or that it
        expired, is stored already. Raises ValueError for one that has no answer.
        """
        if decided.decision is None or decided.decided_by is None:
            raise ValueError(f"{decided.id} has no answer")
        return Draft(
            event_type="approval.decided",
            body=decided,
            partition=decided.conversation_id,
            actor_id="owner",
            authorization="owner",
            event_id=_closing(decided.id),
        )

    def draft_expire(self, record: PendingApprovalRecord) -> Draft:
        """Return that nobody answered in time. Emitting it raises IdentityCollisionError where somebody did."""
        return Draft(
            event_type="approval.expired", body=record, partition=record.conversation_id, event_id=_closing(record.id)
        )

    async def emit(self, *drafts: Draft) -> None:
        """Store them, all or none. Raises as Ledger.emit_many: the conversation has to be adopted."""
        await self._ledger.emit_many(drafts)

    async def adopt(self, conversation_id: str) -> None:
        """Begin to give places in a conversation whose lease the caller holds (Ledger.adopt)."""
        await self._ledger.adopt(conversation_id)

    async def release(self, conversation_id: str) -> None:
        """Stop it (Ledger.release)."""
        await self._ledger.release(conversation_id)

    async def get(self, approval_id: str) -> PendingApprovalRecord:
        """Return a question, with its answer when it has one. Raises NotFoundError."""
        return (await self.stored(approval_id)).record

    async def stored(self, approval_id: str) -> StoredApproval:
        """Return a question as it stands, also by what another Rune wrote just now. Raises NotFoundError."""
        await self._engine.caught_up()
        wanted = f"SELECT {_COLUMNS} FROM approvals WHERE id = ?"  # noqa: S608 columns from above
        row = await self._engine.query(lambda connection: connection.execute(wanted, (approval_id,)).fetchone())
        if row is None:
            raise NotFoundError(f"no approval {approval_id}", hint="`rune approve` shows what waits for an answer.")
        return _stored(row)

    async def resolve(self, part: str) -> str:
        """Return the id of the one approval whose id is, begins or ends with `part`. Raises NotFoundError."""
        await self._engine.caught_up()
        return await self._engine.query(partial(find_by_part, text=part, kind="apr", table="approvals"))

    async def pending(self, conversation_id: str | None = None) -> list[PendingApprovalRecord]:
        """Return what was asked and is neither answered nor expired by an event, oldest first; of one conversation
        when it is named.
        """
        await self._engine.caught_up()
        where, values = _OPEN, ()
        if conversation_id is not None:
            where, values = f"{_OPEN} AND conversation_id = ?", (conversation_id,)

        def select(connection: apsw.Connection) -> list[PendingApprovalRecord]:
            # Ids sort as they were made, over all conversations.
            rows = connection.execute(f"SELECT requested FROM approvals WHERE {where} ORDER BY id", values)  # noqa: S608 text from here
            return [read_record(row[0], PendingApprovalRecord) for row in rows]

        return await self._engine.query(select)


def _closing(approval_id: str) -> str:
    return once(f"{approval_id}.decided")


def _stored(row: tuple[Any, ...]) -> StoredApproval:
    with as_written():
        requested, asked_at, decided, decided_at, expired, expired_at = msgspec.convert(row, _ROW)
    # An answer was perhaps acted upon: it holds, whatever else says that it came too late.
    facts: tuple[tuple[Standing, bytes | None, str], ...] = (
        ("decided", decided, decided_at),
        ("expired", expired, expired_at),
        ("open", requested, ""),
    )
    standing, record, closed_at = next(fact for fact in facts if fact[1] is not None)
    return StoredApproval(
        record=read_record(record or b"", PendingApprovalRecord),
        standing=standing,
        asked_at=asked_at,
        closed_at=closed_at,
    )
