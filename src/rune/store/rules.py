"""Permission rules that the person made by answering "always", each for one folder (tools.md, Policy)."""

from functools import partial
from typing import Any

import apsw
import msgspec

from rune.errors import NotFoundError
from rune.records.envelope import EventEnvelope
from rune.records.permissions import RuleAdded, RuleRevoked
from rune.records.record import Record
from rune.store.event_store import Offset
from rune.store.ledger import Draft, Ledger, once
from rune.store.projection import rank
from rune.store.projections import ProjectionEngine
from rune.store.rows import as_written, find_by_part, read_record

# That it was revoked may be read before that it was made: it then stays revoked.
_DDL = """
CREATE TABLE rules (
    id TEXT PRIMARY KEY,
    folder TEXT NOT NULL DEFAULT '',
    record BLOB,
    rank TEXT NOT NULL DEFAULT '',
    made_at TEXT NOT NULL DEFAULT '',
    revoked INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX rules_of_folder ON rules (folder) WHERE record IS NOT NULL AND revoked = 0;
"""
_ADDED = """
INSERT INTO rules (id, folder, record, rank, made_at) VALUES (?,?,?,?,?)
ON CONFLICT DO UPDATE SET folder = excluded.folder, record = excluded.record, rank = excluded.rank,
    made_at = excluded.made_at
WHERE record IS NULL OR excluded.rank < rank
"""
_REVOKED = "INSERT INTO rules (id, revoked) VALUES (?, 1) ON CONFLICT DO UPDATE SET revoked = 1"
_HOLDS = "record IS NOT NULL AND revoked = 0"
_FOUND = (
    "SELECT record, made_at, "
    "(SELECT max(at) FROM intents WHERE allowed_by = 'rule:' || rules.id AND allowed_by IS NOT NULL) FROM rules"
)
_ROW = tuple[bytes, str, str | None]


class StoredRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that holds in `folder` (`host.paths.storable_path`); fields as in RuleAdded. `made_at` is RFC 3339, and so
    is `last_used`, when a call that it allowed ended last; "" when none has.
    """

    id: str
    folder: str
    rule: str
    approval_id: str
    made_at: str
    last_used: str = ""


class RuleViews:
    """The projection `rules`: one row a rule, and whether it was taken back."""

    name = "rules"
    ddl = _DDL
    tables = ("rules",)

    def apply(self, connection: apsw.Connection, offset: Offset, envelope: EventEnvelope, body: Record) -> None:
        """Take one event in (Projection.apply)."""
        match body:
            case RuleAdded():
                row = (body.id, body.folder, msgspec.json.encode(body), rank(envelope), envelope.timestamp)
                connection.execute(_ADDED, row)
            case RuleRevoked():
                connection.execute(_REVOKED, (body.id,))
            case _:
                pass  # not about rules, or erased: what nobody can read allows nothing


class RuleRepository:
    """Reads rules from the views, after all that is durable: one that another Rune revoked allows nothing any more."""

    def __init__(self, ledger: Ledger, engine: ProjectionEngine) -> None:
        self._ledger = ledger
        self._engine = engine

    def draft_add(self, rule: RuleAdded) -> Draft:
        """Return that the person made a rule; once for its id."""
        return _by_owner("rule.added", rule, once(rule.id))

    def draft_revoke(self, rule_id: str) -> Draft:
        """Return that the person took it back; once for its id."""
        return _by_owner("rule.revoked", RuleRevoked(id=rule_id), once(f"{rule_id}.revoked"))

    async def revoke(self, rule_id: str) -> None:
        """Take a rule back. Raises as Ledger.emit_many."""
        await self._ledger.emit(self.draft_revoke(rule_id))

    async def rules(self, folder: str) -> list[StoredRule]:
        """Return the rules that hold in a folder (a storable path), oldest first."""
        return await self._select(f"WHERE folder = ? AND {_HOLDS} ORDER BY rank, id", folder)

    async def all(self) -> list[StoredRule]:
        """Return the rules that hold anywhere, by folder, oldest first."""
        return await self._select(f"WHERE {_HOLDS} ORDER BY folder, rank, id")

    async def get(self, rule_id: str) -> StoredRule:
        """Return a rule that holds. Raises NotFoundError, also for one that was revoked."""
        found = await self._select(f"WHERE id = ? AND {_HOLDS}", rule_id)
        if not found:
            raise NotFoundError(f"no rule {rule_id} holds", hint="`/permissions` shows the rules.")
        return found[0]

    async def resolve(self, part: str) -> str:
        """Return the id of the one rule that holds whose id is, begins or ends with `part`. Raises NotFoundError."""
        await self._engine.caught_up()
        return await self._engine.query(partial(find_by_part, text=part, kind="rul", table="rules", listed=_HOLDS))

    async def _select(self, rest: str, *values: str) -> list[StoredRule]:
        def select(connection: apsw.Connection) -> list[StoredRule]:
            return [_stored(row) for row in connection.execute(f"{_FOUND} {rest}", values)]

        await self._engine.caught_up()
        return await self._engine.query(select)


def _by_owner(event_type: str, body: Record, event_id: str) -> Draft:
    return Draft(
        event_type=event_type,
        body=body,
        partition="system",
        actor_id="owner",
        authorization="owner",
        event_id=event_id,
    )


def _stored(row: tuple[Any, ...]) -> StoredRule:
    with as_written():
        record, made_at, last_used = msgspec.convert(row, _ROW)
    rule = read_record(record, RuleAdded)
    return StoredRule(
        id=rule.id,
        folder=rule.folder,
        rule=rule.rule,
        approval_id=rule.approval_id,
        made_at=made_at,
        last_used=last_used or "",
    )
