"""Traces of model calls: a summary row each; the whole of one is read back from the journal.

A trace names every message it sent, so that copying them into the views would grow with the square
of a conversation's length.
"""

from functools import partial

import apsw
import msgspec

from rune.errors import NotFoundError
from rune.records.envelope import EventEnvelope
from rune.records.record import Record
from rune.records.traces import InferenceTraceRecord
from rune.store.event_store import Offset
from rune.store.projection import LostBody
from rune.store.projections import ProjectionEngine
from rune.store.rows import at_most, find_by_part, read_record

_DDL = """
CREATE TABLE traces (
    id TEXT NOT NULL UNIQUE,
    event_id TEXT NOT NULL,
    conversation_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    turn_id TEXT,
    hlc INTEGER NOT NULL,
    summary BLOB NOT NULL
);
CREATE INDEX traces_newest ON traces (hlc, id);
CREATE INDEX traces_of_conversation ON traces (conversation_id, hlc, id);
CREATE INDEX traces_of_turn ON traces (turn_id);
"""


class TraceSummary(Record, frozen=True, kw_only=True):
    """One line about a trace; the fields mean what they mean in InferenceTraceRecord. `conversation_id` is `model`
    where a side call belongs to none.
    """

    id: str
    timestamp: str
    kind: str
    conversation_id: str
    turn_id: str | None
    provider: str
    model: str
    model_calls: int
    prompt_tokens_estimated: int
    prompt_tokens_served: int | None
    output_tokens: int | None
    latency_ms: int | None
    dropped: int
    prefix_break: str | None
    stop_reason: str
    success: bool


class TraceViews:
    """The projection `traces`."""

    name = "traces"
    ddl = _DDL
    tables = ("traces",)

    def apply(self, connection: apsw.Connection, offset: Offset, envelope: EventEnvelope, body: Record) -> None:
        """Take one event in (Projection.apply)."""
        if isinstance(body, InferenceTraceRecord):
            summary = _summary(envelope, body)
            connection.execute(
                "INSERT INTO traces VALUES (?,?,?,?,?,?,?) ON CONFLICT DO NOTHING",
                (
                    body.id,
                    envelope.event_id,
                    envelope.partition_key,
                    body.kind,
                    body.turn_id,
                    envelope.hlc,
                    msgspec.json.encode(summary),
                ),
            )


class TraceRepository:
    """Reads traces."""

    def __init__(self, engine: ProjectionEngine) -> None:
        self._engine = engine

    async def get(self, trace_id: str) -> InferenceTraceRecord:
        """Return a whole trace. Raises NotFoundError, also for one whose body was erased or is lost."""
        found = await self._event_ids("WHERE id = ?", trace_id)
        if not found:
            raise NotFoundError(f"no trace {trace_id}", hint="`rune trace` shows the last ones.")
        return await self._read(found[0])

    async def latest(self, conversation_id: str | None = None) -> InferenceTraceRecord | None:
        """Return the newest trace, of one conversation when it is named; None when there is none."""
        found = await self.newest(conversation_id, limit=1)
        return found[0] if found else None

    async def latest_turn(self, conversation_id: str) -> InferenceTraceRecord | None:
        """Return the newest trace of a conversation's own prompt, side calls left out; None when there is none."""
        rest = "WHERE conversation_id = ? AND kind = 'conversation' ORDER BY hlc DESC, id DESC LIMIT 1"
        found = await self._event_ids(rest, conversation_id)
        return await self._read(found[0]) if found else None

    async def newest(self, conversation_id: str | None = None, *, limit: int = 20) -> list[InferenceTraceRecord]:
        """Return the newest traces whole, newest first."""
        where, values = _of(conversation_id)
        found = await self._event_ids(f"{where} ORDER BY hlc DESC, id DESC LIMIT ?", *values, at_most(limit))
        return [await self._read(event_id) for event_id in found]

    async def of_turn(self, turn_id: str) -> list[InferenceTraceRecord]:
        """Return the traces of a turn whole, oldest first."""
        found = await self._event_ids("WHERE turn_id = ? ORDER BY hlc, id", turn_id)
        return [await self._read(event_id) for event_id in found]

    async def summaries(self, conversation_id: str | None = None, *, limit: int = 20) -> list[TraceSummary]:
        """Return one line for each of the newest traces, newest first."""
        where, values = _of(conversation_id)

        def select(connection: apsw.Connection) -> list[TraceSummary]:
            rows = connection.execute(
                f"SELECT summary FROM traces {where} ORDER BY hlc DESC, id DESC LIMIT ?",  # noqa: S608 text from here
                (*values, at_most(limit)),
            )
            return [read_record(row[0], TraceSummary) for row in rows]

        return await self._engine.query(select)

    async def resolve(self, text: str) -> str:
        """Return the id of the one trace whose id is, begins or ends with `text`. Raises NotFoundError."""
        return await self._engine.query(partial(find_by_part, text=text, kind="trc", table="traces"))

    async def _event_ids(self, rest: str, *values: str | int) -> list[str]:
        def select(connection: apsw.Connection) -> list[str]:
            rows = connection.execute(f"SELECT event_id FROM traces {rest}", values)  # noqa: S608 text from here
            return [str(row[0]) for row in rows]

        return await self._engine.query(select)

    async def _read(self, event_id: str) -> InferenceTraceRecord:
        step = await self._engine.run(partial(self._engine.find, event_id))
        if step is not None and isinstance(step[2], LostBody):
            raise NotFoundError(f"the body of this trace is lost: {step[2].reason}", hint="Run `rune doctor`.")
        if step is None or not isinstance(step[2], InferenceTraceRecord):
            raise NotFoundError("the body of this trace was erased by its owner")
        return step[2]


def _of(conversation_id: str | None) -> tuple[str, tuple[str, ...]]:
    return ("", ()) if conversation_id is None else ("WHERE conversation_id = ?", (conversation_id,))


def _summary(envelope: EventEnvelope, trace: InferenceTraceRecord) -> TraceSummary:
    return TraceSummary(
        id=trace.id,
        timestamp=envelope.timestamp,
        kind=trace.kind,
        conversation_id=envelope.partition_key,
        turn_id=trace.turn_id,
        provider=trace.provider,
        model=trace.model,
        model_calls=trace.model_calls,
        prompt_tokens_estimated=trace.prompt_tokens_estimated,
        prompt_tokens_served=trace.prompt_tokens_served,
        output_tokens=trace.output_tokens,
        latency_ms=trace.latency_ms,
        dropped=len(trace.dropped_blocks),
        prefix_break=trace.prefix_break,
        stop_reason=trace.stop_reason,
        success=trace.success,
    )
