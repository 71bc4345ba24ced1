"""Runs slash commands in a talk, which shows what they say."""

from typing import Final

from rune.errors import LeaseHeldError, RuneError
from rune.records.models import Thinking
from rune.records.permissions import PermissionMode
from rune.surface.commands.command import CommandCall
from rune.surface.commands.registry import Commands
from rune.surface.results import CommandResult
from rune.tui.hints import as_typed, in_the_app
from rune.tui.talk import Talk, refuse_while_busy
from rune.turn.operator import RuneOperator

MODES: Final[tuple[PermissionMode, ...]] = ("ask", "edits", "read")


async def run_command(commands: Commands, talk: Talk, line: str, *, quiet: bool = False) -> CommandResult | None:
    """Run a slash command and show what it says, unless `quiet`; None when it could not be run, which is shown."""
    name = line.split(maxsplit=1)[0] if line.strip() else line
    try:
        if name == "/done":
            refuse_while_busy(talk)
        result = await commands.run(line, call_in(talk))
    except RuneError as error:
        show_failure(talk, line, error)
        return None
    if result.opens is None and not quiet:
        talk.output(line, as_typed(result.text), ok=result.ok)
    if name == "/rename":
        await talk.measure()
    if result.thinking is not None:
        _think(talk, result.thinking)
    if result.permission is not None:
        permit(talk, result.permission)
    if result.model is not None:
        talk.requested_model = result.model
        await talk.look_for_model()
    return result


def show_failure(talk: Talk, line: str, error: RuneError) -> None:
    """Show that a command could not be run, and why."""
    hint = in_the_app(error.hint)
    if isinstance(error, LeaseHeldError) and error.conversation_id:
        hint = "Close it there, or go on in a fork: f6 while it is open here."
    talk.output(line, f"{error.message}\n{hint}" if hint else error.message, ok=False)


def _think(talk: Talk, thinking: Thinking) -> None:
    """Have it go with the first message, where there is no conversation yet that keeps it."""
    if talk.conversation_id is None:
        talk.requested_thinking = thinking
    else:
        talk.kept_thinking, talk.requested_thinking = thinking, None
    talk.changed()


def permit(talk: Talk, mode: PermissionMode) -> None:
    """Show that this holds for tools now; it goes with the first message where no conversation keeps it yet."""
    if talk.conversation_id is None:
        talk.requested_permission = mode
    else:
        talk.kept_permission, talk.requested_permission = mode, None
    talk.changed()


async def cycle_permission(operator: RuneOperator, talk: Talk) -> None:
    """Go to the next permission mode; what goes wrong is told."""
    mode = MODES[(MODES.index(talk.permission) + 1) % len(MODES)]
    try:
        await operator.choose_permission(talk.conversation_id, mode)
    except RuneError as error:
        talk.tell(f"the permission mode stays {talk.permission}: {error.message}", in_the_app(error.hint), tier=1)
    else:
        permit(talk, mode)


def call_in(talk: Talk) -> CommandCall:
    """Return what a command gets to know of where it was given."""
    return CommandCall(
        argument="",
        folder=talk.folder,
        channel=talk.channel,
        conversation_id=talk.conversation_id,
        model=talk.requested_model,
        thinking=talk.requested_thinking,
        permission=talk.requested_permission,
    )
