"""The slash commands of Rune, each with what it needs."""

from collections.abc import Mapping
from functools import partial

from rune.bootstrap.core import Core
from rune.bootstrap.examination import examine
from rune.bootstrap.turns import Turns
from rune.errors import StorageError
from rune.host.paths import why_unwritable
from rune.store.view_cursor import read_cursor
from rune.surface.commands.artifact import ArtifactCommand
from rune.surface.commands.command import Command
from rune.surface.commands.context import ContextCommand
from rune.surface.commands.conversation import DoneCommand, NewCommand
from rune.surface.commands.diff import DiffCommand
from rune.surface.commands.doctor import DoctorCommand
from rune.surface.commands.erase import EraseCommand
from rune.surface.commands.export import ExportCommand
from rune.surface.commands.fork import ForkCommand
from rune.surface.commands.health import HealthCommand
from rune.surface.commands.hide import HideCommand
from rune.surface.commands.model import ModelCommand
from rune.surface.commands.permissions import PermissionsCommand
from rune.surface.commands.rename import RenameCommand
from rune.surface.commands.resume import ResumeCommand
from rune.surface.commands.search import SearchCommand
from rune.surface.commands.sessions import SessionsCommand
from rune.surface.commands.thinking import ThinkingCommand
from rune.surface.commands.todo import TodoCommand
from rune.surface.commands.trace import TraceCommand
from rune.surface.commands.trust import TrustCommand
from rune.surface.commands.undo import UndoCommand
from rune.surface.health_parts import HealthParts
from rune.surface.models import Models
from rune.surface.views import Views
from rune.turn.operator import RuneOperator
from rune.turn.trust import FolderTrust


def slash_commands(
    core: Core,
    turns: Turns,
    operator: RuneOperator,
    views: Views,
    models: Models,
    trust: FolderTrust,
    environ: Mapping[str, str],
) -> list[Command]:
    """Return all of them, in no order: they are listed by name."""
    return [
        ArtifactCommand(views),
        DiffCommand(turns.changes.diff, views),
        UndoCommand(operator.undo),
        ContextCommand(views),
        DoneCommand(operator, views),
        EraseCommand(),
        ExportCommand(views),
        ForkCommand(operator, views),
        DoctorCommand(partial(examine, environ)),
        HideCommand(operator),
        HealthCommand(views, _parts(core, views), core.clock),
        ModelCommand(operator, views, models, configured=core.settings.model.name, clock=core.clock),
        NewCommand(operator, views),
        PermissionsCommand(
            operator,
            turns.permissions,
            views,
            configured=core.settings.permissions.mode,
            clock=core.clock,
        ),
        RenameCommand(operator, views),
        ResumeCommand(views, core.clock),
        SearchCommand(views, core.clock),
        SessionsCommand(views, core.clock),
        ThinkingCommand(operator),
        TodoCommand(views),
        TraceCommand(views),
        TrustCommand(trust),
    ]


def _parts(core: Core, views: Views) -> HealthParts:
    async def events() -> int:
        return await core.engine.query(lambda connection: sum(at.seq for at in read_cursor(connection).values()))

    def refusal() -> StorageError | None:
        # Also what nobody has tried to write since: a home that was removed, a disk that is full by now.
        tried = core.store.writer is not None
        return core.store.refusal or (why_unwritable(core.home.journal) if tried else None)

    return HealthParts(views, slot=lambda: core.store.writer, refusal=refusal, events=events)
