"""Store, views and ledger put together as bootstrap does, for tests."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from rune.errors import StorageUnavailableError
from rune.host.ids import IdSource
from rune.records.envelope import EventEnvelope
from rune.records.events import Event, SessionEnded
from rune.records.record import Record
from rune.records.turns import StopReason
from rune.store.approvals import ApprovalRepository, ApprovalViews
from rune.store.codec import decode_body
from rune.store.conversation_views import ConversationViews
from rune.store.conversations import ConversationStateRepository
from rune.store.durable_store import DurableEventStore
from rune.store.event_store import Cursor, EventStore, Offset
from rune.store.evidence_store import Evidence, EvidenceStore, MemoryEvidenceStore
from rune.store.intents import IntentRepository, IntentViews
from rune.store.ledger import Ledger
from rune.store.memory_store import MemoryEventStore
from rune.store.model_scores import ModelScoreRepository, ModelScoreViews
from rune.store.projections import ProjectionEngine
from rune.store.rules import RuleRepository, RuleViews
from rune.store.search import SearchViews
from rune.store.tasks import TaskStateRepository, TaskViews
from rune.store.traces import TraceRepository, TraceViews
from rune.store.turns import TurnRepository, TurnViews
from tests.fakes.clock import CountedClock
from tests.fakes.ids import CountedIds
from tests.store.builders import (
    CONVERSATION,
    TIME,
    a_conversation,
    a_failure,
    a_message,
    a_prepared_call,
    a_result,
    a_task,
    a_trace,
    a_turn,
    an_approval,
    an_id,
    archived,
    renamed,
)

DEVICE = an_id("dev", 1)

# One conversation, with something for every view.
STORY: tuple[tuple[str, Record], ...] = (
    ("conversation.created", a_conversation()),
    ("task.created", a_task(1)),
    ("turn.started", a_turn(1)),
    ("user.message", a_message(1)),
    ("response.generated", a_message(2, role="assistant")),
    ("turn.finished", a_turn(1, stop_reason=StopReason.ANSWERED)),
    ("inference.traced", a_trace(1)),
    ("history.archived", archived(an_id("msg", 1))),
    ("conversation.renamed", renamed("Rivers")),
    ("turn.failed", a_failure(1)),
    ("tool.intent", a_prepared_call(1)),
    ("tool.result", a_result(1)),
    ("approval.requested", an_approval(1)),
    ("approval.decided", an_approval(1, decision="deny")),
)


class Reports:
    """Collects what is reported."""

    def __init__(self) -> None:
        self.views: list[Exception] = []
        self.ledger: list[tuple[str, Exception]] = []

    def of_ledger(self, subsystem: str, error: Exception) -> None:
        self.ledger.append((subsystem, error))


class AnotherStore:
    """An EventStore that passes everything on; a test's own overrides what it must be able to do."""

    def __init__(self, whole: MemoryEventStore) -> None:
        self.whole = whole
        self.evidence = whole.evidence

    async def append(self, event: Event) -> Offset:
        return (await self.append_many((event,)))[0]

    async def append_many(self, events: Sequence[Event]) -> tuple[Offset, ...]:
        return await self.whole.append_many(events)

    def read(self, after: Cursor, *, seen: Cursor | None = None) -> Iterator[tuple[Offset, EventEnvelope]]:
        return self.whole.read(after, seen=seen)

    def replay(
        self, partition: str | None = None, types: Collection[str] | None = None
    ) -> Iterator[tuple[Offset, EventEnvelope]]:
        return self.whole.replay(partition, types)

    def head(self) -> Cursor:
        return self.whole.head()

    async def close(self) -> None:
        await self.whole.close()


class Faulty(AnotherStore):
    """Fails, waits or says nothing as a test wants."""

    def __init__(self, whole: MemoryEventStore) -> None:
        super().__init__(whole)
        self.failures: list[Exception] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.entered = asyncio.Event()

    async def append_many(self, events: Sequence[Event]) -> tuple[Offset, ...]:
        self.entered.set()
        await self.gate.wait()
        if self.failures:
            raise self.failures.pop(0)
        return await super().append_many(events)


class Unreadable(AnotherStore):
    """Takes what is written, and gives nothing while it is `unreadable`."""

    unreadable = False

    def read(self, after: Cursor, *, seen: Cursor | None = None) -> Iterator[tuple[Offset, EventEnvelope]]:
        if self.unreadable:
            raise StorageUnavailableError("the disk reports an error")
        return super().read(after, seen=seen)


class Unhurried(AnotherStore):
    """Lets others run before and after it stores, as one with a disk does."""

    async def append_many(self, events: Sequence[Event]) -> tuple[Offset, ...]:
        await asyncio.sleep(0)
        offsets = await super().append_many(events)
        await asyncio.sleep(0)
        return offsets


def a_memory_store(clock: CountedClock | None = None) -> MemoryEventStore:
    return MemoryEventStore(clock or CountedClock(), device_id=DEVICE)


def a_durable_store(
    home: Path, ids: IdSource, clock: CountedClock | None = None, *, read_only: bool = False
) -> tuple[DurableEventStore, EvidenceStore]:
    """Open journal and evidence of a home."""
    ticking = clock or CountedClock()
    evidence = EvidenceStore(home / "evidence", ticking)
    store = DurableEventStore.open(
        home / "journal", clock=ticking, ids=ids, device_id=DEVICE, evidence=evidence, read_only=read_only
    )
    return store, evidence


def open_views(
    path: Path, store: EventStore, evidence: Evidence | None = None, reports: Reports | None = None
) -> ProjectionEngine:
    """Open the product's projections over a store; `path` is the views file."""
    blobs = evidence
    if blobs is None:
        blobs = (
            store.evidence
            if isinstance(store, MemoryEventStore | AnotherStore)
            else MemoryEvidenceStore(CountedClock())
        )
    return ProjectionEngine(
        path,
        store,
        partial(decode_body, evidence=blobs),
        (
            ConversationViews(),
            TaskViews(),
            TurnViews(),
            TraceViews(),
            IntentViews(),
            ApprovalViews(),
            RuleViews(),
            SearchViews(),
            ModelScoreViews(),
        ),
        (reports or Reports()).views.append,
    )


class Spine:
    """A store with its views, a ledger and the repositories."""

    def __init__(
        self,
        store: EventStore,
        engine: ProjectionEngine,
        clock: CountedClock,
        ids: CountedIds,
        reports: Reports,
        capacity: int,
    ) -> None:
        self.clock = clock
        self.ids = ids
        self.store = store
        self.engine = engine
        self.reports = reports
        self.ledger = Ledger(store, engine, self.clock, self.ids, report=reports.of_ledger, capacity=capacity)
        self.conversations = ConversationStateRepository(self.ledger, engine)
        self.tasks = TaskStateRepository(self.ledger, engine, self.clock, self.ids)
        self.turns = TurnRepository(engine)
        self.traces = TraceRepository(engine)
        self.model_scores = ModelScoreRepository(engine)
        self.intents = IntentRepository(engine)
        self.approvals = ApprovalRepository(self.ledger, engine)
        self.rules = RuleRepository(self.ledger, engine)


@asynccontextmanager
async def a_spine(
    path: Path,
    store: EventStore | None = None,
    *,
    evidence: Evidence | None = None,
    ids: CountedIds | None = None,
    capacity: int = 1000,
) -> AsyncGenerator[Spine, None]:
    """Open one, and close it again; a store that is handed in stays open, and needs its `ids` to go on."""
    reports, clock = Reports(), CountedClock()
    given = store or a_memory_store(clock)
    engine = open_views(path, given, evidence, reports)
    spine = Spine(given, engine, clock, ids or CountedIds(), reports, capacity)
    try:
        yield spine
    finally:
        await spine.ledger.close()
        engine.close()
        if store is None:
            await given.close()


def an_event(number: int | str, event_type: str, body: Record, partition: str, pseq: int = 0) -> Event:
    """Return an event as a ledger would make it."""
    return Event(
        event_id=an_id("evt", number),
        event_type=event_type,
        partition_key=partition,
        actor_id="rune",
        timestamp=TIME,
        body=body,
        pseq=pseq,
    )


def hashes(engine: ProjectionEngine) -> dict[str, str]:
    """Return the state of every projection."""
    names = (
        *("identities", "conversations", "tasks", "turns", "traces"),
        *("intents", "approvals", "rules", "search", "model_scores"),
    )
    return {name: engine.state_hash(name) for name in names}


def events(*steps: tuple[str, Record], partition: str, prefix: str = "") -> Sequence[Event]:
    """Return events of one conversation, placed in order; `prefix` keeps their ids apart from others'."""
    return [an_event(f"{prefix}{place}", kind, body, partition, place) for place, (kind, body) in enumerate(steps, 1)]


async def a_store_with_a_story() -> MemoryEventStore:
    """Return a store that holds `STORY`."""
    store = a_memory_store()
    await store.append_many(events(*STORY, partition=CONVERSATION))
    return store


def notes(count: int, start: int = 51) -> list[Event]:
    """Return events of no conversation."""
    return [
        an_event(number, "session.ended", SessionEnded(id=an_id("ses", number)), "system")
        for number in range(start, start + count)
    ]


def count_of(engine: ProjectionEngine) -> int:
    """Return how many events the views know."""
    return engine.read(lambda connection: connection.execute("SELECT count(*) FROM events").get)
