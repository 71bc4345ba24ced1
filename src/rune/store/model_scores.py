"""What is known of models: the newest `model.score` of each exact set of weights."""

import apsw
import msgspec

from rune.records.envelope import EventEnvelope
from rune.records.models import ModelScoreRecord
from rune.records.record import Record
from rune.store.event_store import Offset
from rune.store.projection import rank
from rune.store.projections import ProjectionEngine
from rune.store.rows import read_record

_DDL = """
CREATE TABLE model_scores (
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    digest TEXT NOT NULL,
    rank TEXT NOT NULL,
    record BLOB NOT NULL,
    PRIMARY KEY (provider, model, digest)
) WITHOUT ROWID;
"""
_UPSERT = """
INSERT INTO model_scores VALUES (?1,?2,?3,?4,?5) ON CONFLICT (provider, model, digest) DO UPDATE SET
    record = excluded.record, rank = excluded.rank WHERE excluded.rank > rank
"""


class ModelScoreViews:
    """The projection `model_scores`. A model that was fetched again has another digest, and begins anew."""

    name = "model_scores"
    ddl = _DDL
    tables = ("model_scores",)

    def apply(self, connection: apsw.Connection, offset: Offset, envelope: EventEnvelope, body: Record) -> None:
        """Take one event in (Projection.apply)."""
        if isinstance(body, ModelScoreRecord):
            row = (body.provider, body.model, body.digest, rank(envelope), msgspec.json.encode(body))
            connection.execute(_UPSERT, row)


class ModelScoreRepository:
    """Reads what is known of models."""

    def __init__(self, engine: ProjectionEngine) -> None:
        self._engine = engine

    async def newest(self, provider: str, model: str, digest: str) -> ModelScoreRecord | None:
        """Return what is known of exactly these weights; None when nothing is. Raises StorageError."""

        def select(connection: apsw.Connection) -> ModelScoreRecord | None:
            found = connection.execute(
                "SELECT record FROM model_scores WHERE provider = ? AND model = ? AND digest = ?",
                (provider, model, digest),
            ).get
            return None if found is None else read_record(found, ModelScoreRecord)

        return await self._engine.query(select)
