"""Connects the parts of one process."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from rune.bootstrap.core import VIEWS_VERSION, Core, open_core
from rune.bootstrap.examination import examine
from rune.bootstrap.scoring import Scoring, count_calls, open_scoring, protocol_of
from rune.bootstrap.servers import reachable_transports
from rune.bootstrap.services import Services, SurfaceKind
from rune.config.trust import TrustBook
from rune.context.broker import ContextBroker
from rune.context.contributors import standard_contributors
from rune.context.window import WindowBook
from rune.errors import RuneError, StorageError
from rune.host.machine import available_memory
from rune.host.paths import places_elsewhere, why_unwritable
from rune.models.discovery import Discovery
from rune.models.router import Router
from rune.models.transport import ChatTransport
from rune.observability.logs import setup_logging
from rune.observability.retention import MEGABYTE, Retention
from rune.records.tools import ToolSchema
from rune.store.intents import IntentRepository
from rune.store.journal_tail import JournalTail
from rune.store.turns import TurnRepository
from rune.store.view_cursor import read_cursor
from rune.store.view_pass import Progress
from rune.store.views_copy import ViewsCopy
from rune.surface.commands.command import Command
from rune.surface.commands.context import ContextCommand
from rune.surface.commands.conversation import DoneCommand, NewCommand
from rune.surface.commands.doctor import DoctorCommand
from rune.surface.commands.erase import EraseCommand
from rune.surface.commands.export import ExportCommand
from rune.surface.commands.fork import ForkCommand
from rune.surface.commands.health import HealthCommand
from rune.surface.commands.hide import HideCommand
from rune.surface.commands.model import ModelCommand
from rune.surface.commands.registry import Commands
from rune.surface.commands.rename import RenameCommand
from rune.surface.commands.resume import ResumeCommand
from rune.surface.commands.search import SearchCommand
from rune.surface.commands.sessions import SessionsCommand
from rune.surface.commands.thinking import ThinkingCommand
from rune.surface.commands.trace import TraceCommand
from rune.surface.commands.trust import TrustCommand
from rune.surface.drafts import DraftBook
from rune.surface.health_parts import HealthParts
from rune.surface.models import ModelLimits, Models
from rune.surface.preferences import Preferences
from rune.surface.prompt_history import PromptHistory
from rune.surface.surface import Surface
from rune.surface.views import Views
from rune.text.tokens import estimate
from rune.turn.operator import RuneOperator
from rune.turn.recorder import TurnRecorder
from rune.turn.recovery import TurnRecovery
from rune.turn.runtime import LocalToolRuntime
from rune.turn.selection import ModelSelection
from rune.turn.session import Sessions
from rune.turn.trust import FolderTrust, ProjectInstructions


def build(
    environ: Mapping[str, str],
    *,
    surface_kind: SurfaceKind,
    transports: Sequence[ChatTransport] | None = None,
    tools: Sequence[ToolSchema] = (),
    on_rebuild: Progress | None = None,
) -> Services:
    """Construct and connect everything on the home that `environ` names; nothing runs yet.

    `transports` replaces what would be talked to; `tools` are offered to models; `on_rebuild` is told, on a
    thread, how far a long pass over the journal is. Raises ConfigError, StorageError.
    """
    core = open_core(environ, read_only=surface_kind == "command", on_rebuild=on_rebuild)
    talked_to = tuple(reachable_transports(core.home, core.settings, environ) if transports is None else transports)
    router = Router(talked_to, local_only=core.settings.model.local_only, memory=available_memory())
    trust = FolderTrust(TrustBook(core.home.trust_file), core.ledger)
    windows = WindowBook(core.home.state)
    scoring = open_scoring(core)
    operator = _operator(core, router, trust, windows, scoring, tools)
    views = _views(core, router, operator)
    models = _models(core, router, windows, scoring)
    return Services(
        surface=Surface(
            settings=core.settings,
            operator=operator,
            views=views,
            commands=Commands(_commands(core, operator, views, models, trust, environ)),
            models=models,
            trust=trust,
            drafts=DraftBook(core.home.state, report=partial(_note, core, "drafts")),
            history=PromptHistory(core.home.state),
            preferences=Preferences(core.home.state, report=partial(_note, core, "preferences")),
            refusal=lambda: core.store.refusal,
        ),
        surface_kind=surface_kind,
        store=core.store,
        evidence=core.evidence,
        engine=core.engine,
        views_copy=ViewsCopy(core.home.views_file(VIEWS_VERSION), places_elsewhere(environ)),
        why_unwritable=partial(why_unwritable, core.home.data_dir),
        ledger=core.ledger,
        recovery=_recovery(core),
        transports=talked_to,
        side_calls=scoring.side_calls,
        health=core.health,
        retention=Retention(core.home, core.settings.retention, core.clock, partial(_note, core)),
        session_id=core.ids.new_id("ses"),
        close_files=(core.trace_file.close, _open_log(core)),
    )


def _recovery(core: Core) -> TurnRecovery:
    return TurnRecovery(
        leases=core.leases,
        ledger=core.ledger,
        turns=TurnRepository(core.engine),
        tasks=core.tasks,
        intents=IntentRepository(core.engine),
    )


def _open_log(core: Core) -> Callable[[], None]:
    return setup_logging(
        core.home.logs,
        core.store.writer or "reader",
        core.masker.mask,
        health=core.health,
        limit=core.settings.retention.log_megabytes * MEGABYTE,
        pieces=core.settings.retention.log_pieces,
    )


def _views(core: Core, router: Router, operator: RuneOperator) -> Views:
    return Views(
        conversations=core.conversations,
        turns=TurnRepository(core.engine),
        intents=IntentRepository(core.engine),
        traces=core.traces,
        evidence=core.evidence,
        leases=core.leases,
        held_here=operator.holds,
        health=core.health,
        router=router,
        gone=partial(_gone, core.home.journal, was_there=core.home.journal.is_dir()),
        recent_events=lambda types, limit: (event for _, event in core.engine.recent(types or None, limit)),
        tail=lambda: JournalTail(core.store, core.home.journal),
        caught_up=core.engine.caught_up,
    )


def _gone(folder: Path, *, was_there: bool) -> bool:
    return was_there and not folder.is_dir()


def _parts(core: Core, views: Views) -> HealthParts:
    async def events() -> int:
        return await core.engine.query(lambda connection: sum(at.seq for at in read_cursor(connection).values()))

    def refusal() -> StorageError | None:
        # Also what nobody has tried to write since: a home that was removed, a disk that is full by now.
        tried = core.store.writer is not None
        return core.store.refusal or (why_unwritable(core.home.journal) if tried else None)

    return HealthParts(views, slot=lambda: core.store.writer, refusal=refusal, events=events)


def _models(core: Core, router: Router, windows: WindowBook, scoring: Scoring) -> Models:
    return Models(
        router,
        discovery=Discovery(router.survey),
        windows=windows,
        scorecard=scoring.scorecard,
        prober=scoring.prober,
        limits=ModelLimits(
            local_only=core.settings.model.local_only,
            configured=core.settings.model.name,
            max_context=core.settings.context.max_context,
            memory=available_memory,
        ),
        clock=core.clock,
    )


def _commands(
    core: Core, operator: RuneOperator, views: Views, models: Models, trust: FolderTrust, environ: Mapping[str, str]
) -> list[Command]:
    return [
        ContextCommand(views),
        DoneCommand(operator),
        EraseCommand(),
        ExportCommand(views),
        ForkCommand(operator, views),
        DoctorCommand(partial(examine, environ)),
        HideCommand(operator),
        HealthCommand(views, _parts(core, views), core.clock),
        ModelCommand(operator, views, models, configured=core.settings.model.name, clock=core.clock),
        NewCommand(operator),
        RenameCommand(operator, views),
        ResumeCommand(views, core.clock),
        SearchCommand(views, core.clock),
        SessionsCommand(views, core.clock),
        ThinkingCommand(operator),
        TraceCommand(views),
        TrustCommand(trust),
    ]


def _note(core: Core, subsystem: str, error: RuneError) -> None:
    core.health.record_failure(subsystem, error, 2)


def _operator(
    core: Core,
    router: Router,
    trust: FolderTrust,
    windows: WindowBook,
    scoring: Scoring,
    tools: Sequence[ToolSchema],
) -> RuneOperator:
    instructions = ProjectInstructions(trust, core.failures)
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
        project=instructions.files,
        tools=tools,
    )
    selection = ModelSelection(
        router=router,
        windows=windows,
        memory=available_memory,
        protocol=partial(protocol_of, scoring.scorecard, core.failures),
        count=partial(count_calls, scoring.scorecard),
        failures=core.failures,
    )
    return RuneOperator(
        settings=lambda: core.settings,
        sessions=sessions,
        selection=selection,
        recorder=recorder,
        runtime=runtime,
        conversations=core.conversations,
        tasks=core.tasks,
        unread=instructions.unread,
        mask=core.masker.mask,
        clock=core.clock,
        ids=core.ids,
        failures=core.failures,
    )
