"""Stores what the readers give: once, in batches, each of them whole or not at all."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from itertools import chain

import apsw
import msgspec

from rune.errors import EvidenceTamperedError, NotFoundError
from rune.records.events import EventImported, PinImported
from rune.records.messages import ConversationMessageRecord, ConversationRecord
from rune.records.record import Record
from rune.records.tasks import TaskStateRecord
from rune.store.codec import ErasedBody, digest
from rune.store.evidence_store import Evidence, EvidenceItem
from rune.store.imports.arrivals import Arrival, LeftOut, LeftOutError
from rune.store.imports.foreign_json import parse
from rune.store.imports.report import SHOWN, ImportReport, Listener, Named
from rune.store.leases import LeaseBook
from rune.store.ledger import Draft, Ledger
from rune.store.projection import LostBody
from rune.store.projections import ProjectionEngine

BATCH = 300
_BATCH_BYTES = 8 << 20
# Each of them holds a descriptor while the batch is written.
_BATCH_CONVERSATIONS = 50
_OTHER_CONTENT = "its id is there already, with another content"


class _Stored(msgspec.Struct):
    """What is there of a batch before it is written: event ids, and the conversations of its tasks."""

    events: set[str]
    tasks: dict[str, str]


class Importer:
    """Brings arrivals into one journal. Only one import may run on a home at a time.

    An arrival whose first fact is stored already is there and writes nothing; a conversation or task that it
    belongs to is stored by whichever arrival is the first to need it. What an owner erased stays erased. The
    evidence of a batch is on disk before the events that name it; the events of a batch are one append. So a
    run that was cut off at any point is completed by the next one.
    """

    def __init__(self, *, ledger: Ledger, engine: ProjectionEngine, evidence: Evidence, leases: LeaseBook) -> None:
        self._ledger = ledger
        self._engine = engine
        self._evidence = evidence
        self._leases = leases

    async def take_in(self, arrivals: Iterator[Arrival | LeftOut], source: str, listener: Listener) -> ImportReport:
        """Store all of them; `source` names their origin in the evidence.

        Raises what the reader raises (UsageError), LeaseHeldError (one of the conversations is open elsewhere) and
        StorageError; what was stored before stays, and another run goes on from there.
        """
        report = ImportReport()
        while batch := await asyncio.to_thread(_gather, arrivals):
            await self._store(batch, source, report, listener)
            listener.progress(report.seen)
        return report

    async def _store(
        self, batch: Sequence[Arrival | LeftOut], source: str, report: ImportReport, listener: Listener
    ) -> None:
        coming = [each for each in batch if isinstance(each, Arrival)]
        # What is durable decides, not what is shown.
        await self._engine.caught_up()
        stored = await self._engine.query(partial(_look_up, drafts=[draft for each in coming for draft in _all(each)]))
        drafts: dict[str, Draft] = {}
        items: list[EvidenceItem] = []
        fresh: dict[str, Arrival] = {}
        for each in batch:
            outcome = each if isinstance(each, LeftOut) else await self._judged(each, stored, fresh)
            _count(outcome, each, report, listener)
            if not isinstance(each, Arrival):
                continue
            wanted = each.setting if outcome is not each else _all(each)
            for draft in wanted:
                if draft.event_id is not None and draft.event_id not in stored.events:
                    drafts.setdefault(draft.event_id, draft)
            if outcome is each:
                fresh[_identity(each)] = each
                if each.raw is not None:
                    items.append(EvidenceItem(data=each.raw, source=source))
        if items:
            await asyncio.to_thread(self._evidence.put_many, items)
        await self._emit(list(drafts.values()))
        report.conversations += sum(isinstance(draft.body, ConversationRecord) for draft in drafts.values())

    async def _judged(self, each: Arrival, stored: _Stored, fresh: dict[str, Arrival]) -> Arrival | LeftOut | None:
        """Return it when it is new, None when it is there, or why it is left."""
        first = each.drafts[0]
        if isinstance(first.body, TaskStateRecord):
            elsewhere = stored.tasks.get(first.body.id, first.body.conversation_id)
            if elsewhere != first.body.conversation_id:
                return LeftOut(each.where, f"a task of its id is there already, in {elsewhere}")
        twin = fresh.get(_identity(each))
        if twin is None and _identity(each) not in stored.events:
            return each
        if each.raw is None or (twin is not None and twin.raw == each.raw):
            return None
        if twin is not None and twin.raw is not None:
            return None if _same_value(twin.raw, each.raw) else LeftOut(each.where, _OTHER_CONTENT)
        return await self._engine.run(partial(self._against_stored, each, each.raw))

    def _against_stored(self, each: Arrival, raw: bytes) -> LeftOut | None:
        """Hold what came against what is stored under its id. What was erased, or lost, counts as the same."""
        found = None if self._evidence.has(digest(raw)) else self._engine.find(_identity(each))
        if found is None or isinstance(found[2], ErasedBody | LostBody):
            return None
        named = _evidence_of(found[2]) if type(found[2]) is type(each.drafts[0].body) else ""
        if named:
            try:
                kept = self._evidence.get(named)
            except (NotFoundError, EvidenceTamperedError):
                return None
            if _same_value(kept, raw):
                return None
        # Without evidence it is an event of our own, which nothing that comes in can be.
        return LeftOut(each.where, _OTHER_CONTENT)

    async def _emit(self, drafts: list[Draft]) -> None:
        if drafts:
            conversations = sorted({draft.partition for draft in drafts if draft.partition.startswith("cnv_")})
            async with self._held(conversations):
                await self._ledger.emit_many(drafts)

    @asynccontextmanager
    async def _held(self, conversations: Sequence[str]) -> AsyncGenerator[None, None]:
        async with AsyncExitStack() as stack:
            for conversation in conversations:
                lease = await asyncio.to_thread(self._leases.take, conversation)
                stack.callback(lease.release)
                await self._ledger.adopt(conversation)
                stack.push_async_callback(self._ledger.release, conversation)
            yield


def _gather(arrivals: Iterator[Arrival | LeftOut]) -> list[Arrival | LeftOut]:
    """Take the next batch: none of it is too many things, bytes or conversations."""
    batch: list[Arrival | LeftOut] = []
    size, conversations = 0, set[str]()
    for each in arrivals:
        batch.append(each)
        if isinstance(each, Arrival):
            size += len(each.raw or b"")
            conversations |= {draft.partition for draft in _all(each)}
        if len(batch) >= BATCH or size > _BATCH_BYTES or len(conversations) > _BATCH_CONVERSATIONS:
            break
    return batch


def _look_up(connection: apsw.Connection, drafts: Sequence[Draft]) -> _Stored:
    """Return which of these events are stored, and where the tasks among them are."""
    events = json.dumps([draft.event_id for draft in drafts])
    tasks = json.dumps([draft.body.id for draft in drafts if isinstance(draft.body, TaskStateRecord)])
    found = connection.execute(
        "SELECT event_id FROM events WHERE event_id IN (SELECT value FROM json_each(?))", (events,)
    )
    ids = {str(row[0]) for row in found}
    rows = connection.execute(
        "SELECT id, conversation_id FROM tasks WHERE id IN (SELECT value FROM json_each(?))", (tasks,)
    )
    return _Stored(ids, {str(row[0]): str(row[1]) for row in rows})


def _count(
    outcome: Arrival | LeftOut | None, each: Arrival | LeftOut, report: ImportReport, listener: Listener
) -> None:
    if isinstance(each, Arrival) and each.became is None:
        return  # of its own accord: no line stands for it
    report.seen += 1
    if isinstance(outcome, LeftOut):
        report.left += 1
        if report.left <= SHOWN:
            named = Named(outcome.where, outcome.reason)
            report.left_named.append(named)
            listener.left(named)
    elif outcome is None:
        report.there += 1
    elif outcome.became is not None:
        report.new[outcome.became] += 1
        for note in outcome.notes:
            report.noted += 1
            if report.noted <= SHOWN:
                named = Named(outcome.where, note)
                report.noted_named.append(named)
                listener.noted(named)


def _all(each: Arrival) -> tuple[Draft, ...]:
    return tuple(chain(each.setting, each.drafts))


def _identity(each: Arrival) -> str:
    return each.drafts[0].event_id or ""


def _evidence_of(body: Record) -> str:
    match body:
        case ConversationMessageRecord():
            return body.attachments[0] if body.provenance == "imported" and body.attachments else ""
        case TaskStateRecord():
            return body.outcome_ref
        case EventImported() | PinImported():
            return body.evidence
        case _:
            return ""


def _same_value(kept: bytes, raw: bytes) -> bool:
    """Say whether two originals say the same, however they are written."""
    try:
        return kept == raw or parse(kept) == parse(raw)
    except LeftOutError:
        return False
