"""What everything else rests on: the home, what was set, the journal, what is read from it, what can answer."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, NamedTuple

import msgspec

from rune.bootstrap.reading_mode import open_store, refuse_damaged
from rune.bootstrap.upkeep import keep_before_change, report_repair, report_views
from rune.config.load import config_values, load_settings
from rune.config.settings import Settings
from rune.errors import ConfigError, StorageError, StorageUnavailableError
from rune.host.clock import Clock, SystemClock
from rune.host.ids import IdSource, UlidSource
from rune.host.paths import Home, prepare_to_read, resolve_home
from rune.host.secrets import collect_secrets
from rune.models.openai_compatible.address import KEY_VARIABLE
from rune.observability.health import SubsystemHealthRegistry
from rune.observability.inference_trace import TraceFile
from rune.observability.retention import MEGABYTE
from rune.records.record import Record
from rune.store.approvals import ApprovalViews
from rune.store.codec import decode_body
from rune.store.conversation_views import ConversationViews
from rune.store.conversations import ConversationStateRepository
from rune.store.durable_store import DurableEventStore
from rune.store.event_store import EventStore
from rune.store.evidence_store import EvidenceStore
from rune.store.intents import IntentViews
from rune.store.leases import LeaseBook
from rune.store.ledger import Ledger
from rune.store.mending.backups import BackupBook
from rune.store.model_scores import ModelScoreViews
from rune.store.projections import ProjectionEngine
from rune.store.rules import RuleViews
from rune.store.search import SearchViews
from rune.store.tasks import TaskStateRepository, TaskViews
from rune.store.traces import TraceRepository, TraceViews
from rune.store.turns import TurnViews
from rune.store.view_pass import Progress
from rune.text.masking import Masker
from rune.turn.failures import TurnFailures

VIEWS_VERSION = 5


class Core(msgspec.Struct, frozen=True, kw_only=True):
    """What everything else rests on: the home, what was set, the journal and what is read from it."""

    home: Home
    settings: Settings
    clock: Clock
    ids: IdSource
    masker: Masker
    health: SubsystemHealthRegistry
    failures: TurnFailures
    evidence: EvidenceStore
    leases: LeaseBook
    store: DurableEventStore
    engine: ProjectionEngine
    ledger: Ledger
    conversations: ConversationStateRepository
    tasks: TaskStateRepository
    traces: TraceRepository
    trace_file: TraceFile


# Subsystems that take part in writing an event.
_WRITE_IT: Final = frozenset({"journal", "views", "ledger", "evidence", "event_sink"})


class _LateSink:
    """The ledger as the health registry's sink: the ledger is built after it, and reports to it."""

    def __init__(self) -> None:
        self.ledger: Ledger | None = None

    def offer(self, event_type: str, body: Record, *, partition: str) -> None:
        """Pass a note on; before there is a ledger it is only counted and logged.

        So are failures of what would write the note: each try to write that they fail would be the next failure.
        """
        if self.ledger is not None and getattr(body, "subsystem", "") not in _WRITE_IT:
            self.ledger.offer(event_type, body, partition=partition)


class _Opening(NamedTuple):
    """What the journal, its views and the ledger are opened with."""

    home: Home
    clock: Clock
    ids: IdSource
    evidence: EvidenceStore
    health: SubsystemHealthRegistry

    def spine(
        self, *, read_only: bool, refusal: StorageUnavailableError | None, on_rebuild: Progress | None
    ) -> tuple[DurableEventStore, ProjectionEngine, Ledger]:
        """Open all three. Raises StorageError where not even reading is possible."""
        engine: ProjectionEngine | None = None
        store = open_store(
            self.home,
            clock=self.clock,
            ids=self.ids,
            evidence=self.evidence,
            # The views know which ids are stored; they are opened after the journal that they follow.
            lookup=lambda event_id: engine.lookup(event_id) if engine else None,
            read_only=read_only,
            refusal=refusal,
        )
        report_repair(self.health, store.repair)
        engine = open_engine(
            self.home,
            store,
            self.evidence,
            partial(report_views, self.health),
            on_rebuild,
            on_damage=partial(refuse_damaged, store, self.health),
        )
        ledger = Ledger(
            store,
            engine,
            self.clock,
            self.ids,
            report=lambda subsystem, error: _note(self.health, subsystem, error),
            works=self.health.record_success,
        )
        return store, engine, ledger


def open_core(environ: Mapping[str, str], *, read_only: bool, on_rebuild: Progress | None) -> Core:
    """Open the home for writing; for reading only where that is what is wanted (`read_only`) or all that is possible,
    as the `refusal` of its store then says. Raises ConfigError, StorageError.
    """
    clock = SystemClock()
    ids = UlidSource(clock)
    home = resolve_home(environ)
    refusal = prepare_to_read(home)
    settings, unusable = read_settings(home, lenient=read_only)
    key_variables = (KEY_VARIABLE, *(server.key_env for server in settings.model.servers if server.key_env))
    masker = Masker(collect_secrets(environ, config_values(settings), named=key_variables))
    sink = _LateSink()
    health = SubsystemHealthRegistry(clock, sink, masker=masker.mask)
    if unusable is not None:
        health.record_failure("config", unusable, 1)
    if refusal is None and not read_only:
        refusal = keep_before_change(BackupBook(home, clock), VIEWS_VERSION, health)
    evidence = EvidenceStore(home.evidence, clock)
    opening = _Opening(home, clock, ids, evidence, health)
    store, engine, ledger = opening.spine(read_only=read_only, refusal=refusal, on_rebuild=on_rebuild)
    if store.refusal is None:
        sink.ledger = ledger
    return Core(
        home=home,
        settings=settings,
        clock=clock,
        ids=ids,
        masker=masker,
        health=health,
        failures=TurnFailures(health.record_failure, health.record_success),
        evidence=evidence,
        leases=LeaseBook(home.leases, clock, refusal=lambda: store.refusal),
        store=store,
        engine=engine,
        ledger=ledger,
        conversations=ConversationStateRepository(ledger, engine),
        tasks=TaskStateRepository(ledger, engine, clock, ids),
        traces=TraceRepository(engine),
        trace_file=TraceFile(
            home.state,
            store.writer or "reader",
            limit=settings.retention.log_megabytes * MEGABYTE,
            pieces=settings.retention.log_pieces,
        ),
    )


def read_settings(home: Home, *, lenient: bool) -> tuple[Settings, ConfigError | None]:
    """Return the settings; whoever only reads what is stored gets the defaults when they cannot be used."""
    try:
        return load_settings(home.config_file), None
    except ConfigError as error:
        if not lenient:
            raise
        return Settings(), error


def open_engine(
    home: Home,
    store: EventStore,
    evidence: EvidenceStore,
    report: Callable[[Exception], None],
    on_progress: Progress | None,
    *,
    on_damage: Callable[[StorageError], object] = lambda _: None,
) -> ProjectionEngine:
    """Return the views of a journal; they follow it when they are first asked."""
    projections = (
        ConversationViews(),
        TaskViews(),
        TurnViews(),
        TraceViews(),
        IntentViews(),
        ApprovalViews(),
        RuleViews(),
        SearchViews(),
        ModelScoreViews(),
    )
    decode = partial(decode_body, evidence=evidence)
    return ProjectionEngine(
        home.views_file(VIEWS_VERSION),
        store,
        decode,
        projections,
        report,
        on_progress=on_progress,
        on_damage=on_damage,
    )


def _note(health: SubsystemHealthRegistry, subsystem: str, error: Exception) -> None:
    health.record_failure(subsystem, error, 2)
