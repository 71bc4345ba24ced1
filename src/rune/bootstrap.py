"""The one place that names concrete classes: builds everything, opens it, and lets it go in order."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from rune.config.load import config_values, load_settings
from rune.config.settings import Settings
from rune.config.trust import TrustBook
from rune.context.blocks import ProjectFile
from rune.context.broker import ContextBroker
from rune.context.contributors import standard_contributors
from rune.context.window import WindowBook
from rune.errors import RuneError
from rune.host.clock import Clock, SystemClock
from rune.host.ids import IdSource, UlidSource
from rune.host.machine import available_memory
from rune.host.paths import Home, device_id, prepare, resolve_home
from rune.host.secrets import collect_secrets
from rune.models.embedded import EmbeddedTransport, embedded_installed
from rune.models.endpoint import ollama_base_url
from rune.models.model_file import embedded_model_path
from rune.models.ollama import OllamaTransport
from rune.models.router import Router
from rune.models.scripted import ScriptedTransport
from rune.models.transport import ChatTransport
from rune.observability.health import SubsystemHealthRegistry
from rune.observability.inference_trace import TraceFile
from rune.observability.logs import setup_logging
from rune.records.events import SessionEnded, SessionStarted
from rune.records.record import Record
from rune.store.codec import decode_body, verify_body
from rune.store.conversation_views import ConversationViews
from rune.store.conversations import ConversationStateRepository
from rune.store.durable_store import DurableEventStore
from rune.store.evidence_store import EvidenceStore
from rune.store.leases import LeaseBook
from rune.store.ledger import Ledger
from rune.store.projections import ProjectionEngine
from rune.store.tasks import TaskStateRepository, TaskViews
from rune.store.traces import TraceRepository, TraceViews
from rune.store.turns import TurnRepository, TurnViews
from rune.surface import checks
from rune.surface.commands.command import Command
from rune.surface.commands.conversation import DoneCommand, NewCommand
from rune.surface.commands.health import HealthCommand
from rune.surface.commands.registry import Commands
from rune.surface.commands.trace import TraceCommand
from rune.surface.commands.trust import TrustCommand
from rune.surface.doctor import Check, Finding
from rune.surface.surface import Surface
from rune.surface.views import Views
from rune.text.masking import Masker
from rune.text.tokens import estimate
from rune.turn.failures import TurnFailures
from rune.turn.operator import RuneOperator
from rune.turn.recorder import TurnRecorder
from rune.turn.recovery import TurnRecovery
from rune.turn.runtime import LocalToolRuntime
from rune.turn.selection import ModelSelection
from rune.turn.session import Sessions
from rune.turn.trust import FolderTrust
from rune.version import __version__

VIEWS_VERSION = 1
SurfaceKind = Literal["app", "headless", "command"]


class Services:
    """Everything that runs in one process. `start` before use, `close` in the end, whatever happened."""

    def __init__(
        self,
        *,
        surface: Surface,
        surface_kind: SurfaceKind,
        store: DurableEventStore,
        evidence: EvidenceStore,
        engine: ProjectionEngine,
        ledger: Ledger,
        recovery: TurnRecovery,
        transports: Sequence[ChatTransport],
        health: SubsystemHealthRegistry,
        session_id: str,
        close_files: Sequence[Callable[[], None]],
    ) -> None:
        self.surface = surface
        self.health = health
        self._kind: SurfaceKind = surface_kind
        self._store = store
        self._evidence = evidence
        self._engine = engine
        self._ledger = ledger
        self._recovery = recovery
        self._transports = transports
        self._session_id = session_id
        self._close_files = close_files
        self._announced = False

    async def start(self) -> None:
        """Bring the views up to date and end what a killed process left open.

        A command that only reads writes nothing about itself. Raises StorageError.
        """
        await self._ledger.start()
        await self._engine.caught_up()
        kind = self._kind
        if kind == "command":
            return
        await asyncio.to_thread(self._evidence.sweep)
        await self._recovery.recover()
        started = SessionStarted(id=self._session_id, version=__version__, surface=kind, pid=os.getpid())
        self._ledger.offer("session.started", started, partition="system")
        self._announced = True

    async def close(self) -> None:
        """Stop turns, finish writes, end children, let go of the slot; may be called twice."""
        await self.surface.operator.close()
        if self._announced:
            self._announced = False
            self._ledger.offer("session.ended", SessionEnded(id=self._session_id), partition="system")
        await self._ledger.close()
        for transport in self._transports:
            await transport.close()
        await self._store.close()
        await asyncio.to_thread(self._engine.close)
        for close_file in self._close_files:
            close_file()


class _LateSink:
    """The ledger as the health registry's sink: the ledger is built after it, and reports to it."""

    def __init__(self) -> None:
        self.ledger: Ledger | None = None

    def offer(self, event_type: str, body: Record, *, partition: str) -> None:
        """Pass a note on; before there is a ledger it is only counted and logged."""
        if self.ledger is not None:
            self.ledger.offer(event_type, body, partition=partition)


class _Core(msgspec.Struct, frozen=True, kw_only=True):
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


def build(
    environ: Mapping[str, str], *, surface_kind: SurfaceKind, transports: Sequence[ChatTransport] | None = None
) -> Services:
    """Construct and connect everything on the home that `environ` names; nothing runs yet.

    `transports` replaces what would be talked to. Raises ConfigError, StorageError.
    """
    core = _core(environ, read_only=surface_kind == "command")
    talked_to = tuple(_transports(core.home, core.settings, environ) if transports is None else transports)
    router = Router(talked_to, local_only=core.settings.model.local_only, memory=available_memory())
    trust = FolderTrust(TrustBook(core.home.trust_file), core.ledger)
    operator = _operator(core, router, trust)
    views = Views(
        conversations=core.conversations,
        traces=core.traces,
        evidence=core.evidence,
        leases=core.leases,
        health=core.health,
        router=router,
        recent_events=lambda types, limit: (event for _, event in core.engine.recent(types or None, limit)),
    )
    commands: list[Command] = [
        HealthCommand(views),
        TraceCommand(views),
        NewCommand(operator),
        DoneCommand(operator),
        TrustCommand(trust),
    ]
    return Services(
        surface=Surface(settings=core.settings, operator=operator, views=views, commands=Commands(commands)),
        surface_kind=surface_kind,
        store=core.store,
        evidence=core.evidence,
        engine=core.engine,
        ledger=core.ledger,
        recovery=TurnRecovery(
            leases=core.leases, ledger=core.ledger, turns=TurnRepository(core.engine), tasks=core.tasks
        ),
        transports=talked_to,
        health=core.health,
        session_id=core.ids.new_id("ses"),
        close_files=(
            core.trace_file.close,
            setup_logging(core.home.logs, core.store.writer or "reader", core.masker.mask, health=core.health),
        ),
    )


def _core(environ: Mapping[str, str], *, read_only: bool) -> _Core:
    clock = SystemClock()
    ids = UlidSource(clock)
    home = resolve_home(environ)
    prepare(home)
    settings = load_settings(home.config_file)
    masker = Masker(collect_secrets(environ, config_values(settings)))
    sink = _LateSink()
    health = SubsystemHealthRegistry(clock, sink, masker=masker.mask)
    evidence = EvidenceStore(home.evidence, clock)
    engine: ProjectionEngine | None = None
    store = DurableEventStore.open(
        home.journal,
        clock=clock,
        ids=ids,
        device_id=device_id(home, ids),
        evidence=evidence,
        # The views know which ids are stored; they are opened after the journal that they follow.
        lookup=lambda event_id: engine.lookup(event_id) if engine else None,
        read_only=read_only,
    )
    engine = _engine(home, store, evidence, report=lambda error: _note(health, "views", error))
    ledger = Ledger(store, engine, clock, ids, report=lambda subsystem, error: _note(health, subsystem, error))
    sink.ledger = ledger
    return _Core(
        home=home,
        settings=settings,
        clock=clock,
        ids=ids,
        masker=masker,
        health=health,
        failures=TurnFailures(health.record_failure),
        evidence=evidence,
        leases=LeaseBook(home.leases, clock),
        store=store,
        engine=engine,
        ledger=ledger,
        conversations=ConversationStateRepository(ledger, engine),
        tasks=TaskStateRepository(ledger, engine, clock, ids),
        traces=TraceRepository(engine),
        trace_file=TraceFile(home.state, store.writer or "reader"),
    )


def _operator(core: _Core, router: Router, trust: FolderTrust) -> RuneOperator:
    recorder = TurnRecorder(
        ledger=core.ledger,
        evidence=core.evidence,
        conversations=core.conversations,
        tasks=core.tasks,
        clock=core.clock,
        ids=core.ids,
        estimate=estimate,
        failures=core.failures,
        publish=core.trace_file.append,
    )
    sessions = Sessions(
        leases=core.leases,
        ledger=core.ledger,
        conversations=core.conversations,
        tasks=core.tasks,
        turns=TurnRepository(core.engine),
        traces=core.traces,
        evidence=core.evidence,
        failures=core.failures,
    )
    runtime = LocalToolRuntime(
        broker=ContextBroker(standard_contributors(), estimate, core.failures.degraded),
        recorder=recorder,
        clock=core.clock,
        ids=core.ids,
        project=_project_files(trust, core.failures),
    )
    selection = ModelSelection(
        router=router, windows=WindowBook(core.home.state), memory=available_memory, failures=core.failures
    )
    return RuneOperator(
        settings=lambda: core.settings,
        sessions=sessions,
        selection=selection,
        recorder=recorder,
        runtime=runtime,
        conversations=core.conversations,
        tasks=core.tasks,
        mask=core.masker.mask,
        clock=core.clock,
        ids=core.ids,
        failures=core.failures,
    )


def _transports(home: Home, settings: Settings, environ: Mapping[str, str]) -> list[ChatTransport]:
    """Return what can answer, in the order of preference: a scripted model alone where one is named."""
    if script := environ.get("RUNE_SCRIPTED_MODEL", ""):
        return [ScriptedTransport.from_file(Path(script))]
    first_byte, between = settings.model.first_byte_timeout, settings.model.token_timeout
    named = environ.get("OLLAMA_HOST", "")
    host = ollama_base_url(named) if named else ollama_base_url(settings.model.host, source="model.host")
    found: list[ChatTransport] = [OllamaTransport(host, first_byte_timeout=first_byte, token_timeout=between)]
    path = embedded_model_path(home.models, environ, settings.model.embedded_model)
    if path is not None and embedded_installed():
        log = home.logs / "embedded-worker.log"
        found.append(
            EmbeddedTransport(path, log_path=log, environ=environ, first_byte_timeout=first_byte, token_timeout=between)
        )
    return found


def _engine(
    home: Home, store: DurableEventStore, evidence: EvidenceStore, *, report: Callable[[Exception], None]
) -> ProjectionEngine:
    return ProjectionEngine(
        home.views_file(VIEWS_VERSION),
        store,
        lambda envelope: decode_body(envelope, evidence),
        (ConversationViews(), TaskViews(), TurnViews(), TraceViews()),
        report=report,
    )


def _note(health: SubsystemHealthRegistry, subsystem: str, error: Exception) -> None:
    health.record_failure(subsystem, error, 2)


def _project_files(trust: FolderTrust, failures: TurnFailures) -> Callable[[str], tuple[ProjectFile, ...]]:
    def project_files(folder: str) -> tuple[ProjectFile, ...]:
        try:
            return trust.project_files(folder)
        except RuneError as error:
            failures.degraded("project", error)
            return ()

    return project_files


def examine(environ: Mapping[str, str]) -> list[Check]:
    """Return the checks of `rune doctor`: each opens only what it looks at, so that they work when `build` does not."""
    home = resolve_home(environ)
    clock = SystemClock()
    evidence = EvidenceStore(home.evidence, clock)

    def store() -> DurableEventStore:
        return DurableEventStore.open(
            home.journal, clock=clock, ids=UlidSource(clock), device_id="", evidence=evidence, read_only=True
        )

    def caught_up() -> int:
        engine = _engine(home, store(), evidence, report=lambda _: None)
        try:
            return engine.catch_up().applied
        finally:
            engine.close()

    def journal() -> Finding:
        return checks.journal((event for _, event in store().read({})), lambda event: verify_body(event, evidence))

    try:
        settings = load_settings(home.config_file)
    except RuneError:
        settings = Settings()  # the check `config` says what is wrong with it

    def stand_in() -> Finding:
        named = embedded_model_path(home.models, environ, settings.model.embedded_model)
        return checks.stand_in(named, installed=embedded_installed())

    try:
        models = checks.models(_transports(home, settings, environ))
    except RuneError as error:
        models = [checks.failing("models", error)]
    return [
        checks.blocking("environment", checks.environment),
        checks.blocking("config", lambda: checks.config(home.config_file)),
        checks.blocking("home", lambda: checks.places(home)),
        checks.blocking("journal", journal),
        checks.blocking("views", lambda: checks.views(caught_up)),
        checks.blocking("trust", lambda: checks.trust(TrustBook(home.trust_file), Path.cwd())),
        *models,
        checks.blocking("stand-in", stand_in),
    ]
