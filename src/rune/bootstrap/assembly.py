"""Connects the parts of one process."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from rune.bootstrap.commands import slash_commands
from rune.bootstrap.core import VIEWS_VERSION, Core, open_core
from rune.bootstrap.scoring import Scoring, open_scoring
from rune.bootstrap.servers import reachable_transports
from rune.bootstrap.services import Services, SurfaceKind
from rune.bootstrap.toolboxes import standard_toolbox
from rune.bootstrap.turns import Turns
from rune.config.trust import TrustBook
from rune.context.window import WindowBook
from rune.errors import RuneError
from rune.host.machine import available_memory
from rune.host.paths import places_elsewhere, why_unwritable
from rune.models.discovery import Discovery
from rune.models.router import Router
from rune.models.transport import ChatTransport
from rune.observability.logs import setup_logging
from rune.observability.retention import MEGABYTE, Retention
from rune.store.approvals import ApprovalRepository
from rune.store.intents import IntentRepository
from rune.store.journal_tail import JournalTail
from rune.store.turns import TurnRepository
from rune.store.view_pass import Progress
from rune.store.views_copy import ViewsCopy
from rune.surface.commands.registry import Commands
from rune.surface.drafts import DraftBook
from rune.surface.models import ModelLimits, Models
from rune.surface.preferences import Preferences
from rune.surface.prompt_history import PromptHistory
from rune.surface.surface import Surface
from rune.surface.views import Views
from rune.text.tokens import estimate
from rune.tools.executor import Tool
from rune.tools.registry import Toolbox
from rune.turn.operator import RuneOperator
from rune.turn.recovery import TurnRecovery
from rune.turn.trust import FolderTrust


def build(
    environ: Mapping[str, str],
    *,
    surface_kind: SurfaceKind,
    transports: Sequence[ChatTransport] | None = None,
    tools: Sequence[Tool] | None = None,
    on_rebuild: Progress | None = None,
) -> Services:
    """Construct and connect everything on the home that `environ` names; nothing runs yet.

    `transports` replaces what would be talked to; `tools` are offered to models instead of Rune's own; `on_rebuild` is
    told, on a thread, how far a long pass over the journal is. Raises ConfigError, StorageError.
    """
    core = open_core(environ, read_only=surface_kind == "command", on_rebuild=on_rebuild)
    talked_to = tuple(reachable_transports(core.home, core.settings, environ) if transports is None else transports)
    router = Router(talked_to, local_only=core.settings.model.local_only, memory=available_memory())
    trust = FolderTrust(TrustBook(core.home.trust_file), core.ledger)
    windows = WindowBook(core.home.state)
    scoring = open_scoring(core)
    results = IntentRepository(core.engine)
    toolbox = Toolbox(tools) if tools is not None else standard_toolbox(core.conversations, results)
    turns = Turns(core, environ, toolbox)
    operator = turns.operator(core, router, trust, windows, scoring)
    views = _views(core, router, operator)
    models = _models(core, router, windows, scoring)
    return Services(
        surface=Surface(
            settings=core.settings,
            operator=operator,
            views=views,
            commands=Commands(slash_commands(core, turns, operator, views, models, trust, environ)),
            models=models,
            trust=trust,
            drafts=DraftBook(core.home.state, report=partial(_note, core, "drafts")),
            history=PromptHistory(core.home.state),
            preferences=Preferences(core.home.state, report=partial(_note, core, "preferences")),
            refusal=lambda: core.store.refusal,
            own_commands=turns.own_shell(core, environ),
        ),
        surface_kind=surface_kind,
        store=core.store,
        evidence=core.evidence,
        engine=core.engine,
        views_copy=ViewsCopy(core.home.views_file(VIEWS_VERSION), places_elsewhere(environ)),
        why_unwritable=partial(why_unwritable, core.home.data_dir),
        ledger=core.ledger,
        recovery=_recovery(core),
        expire=partial(turns.approvals.expire_due, core.leases),
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
        conversations=core.conversations,
        clock=core.clock,
        ids=core.ids,
        estimate=estimate,
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
        approvals=ApprovalRepository(core.ledger, core.engine),
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


def _note(core: Core, subsystem: str, error: RuneError) -> None:
    core.health.record_failure(subsystem, error, 2)
