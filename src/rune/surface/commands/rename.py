"""/rename: another title for this conversation."""

from collections.abc import Sequence

from rune.errors import UsageError
from rune.surface.commands.command import CommandCall, wrong_usage
from rune.surface.commands.completion import Completion
from rune.surface.results import CommandResult
from rune.surface.views import Views
from rune.turn.operator import RuneOperator


class RenameCommand:
    """Gives the conversation another title."""

    name = "rename"
    usage = "/rename TITLE"
    summary = "give this conversation another title"

    def __init__(self, operator: RuneOperator, views: Views) -> None:
        self._operator = operator
        self._views = views

    async def run(self, call: CommandCall) -> CommandResult:
        """Rename it. Raises UsageError without a title, LeaseHeldError when another Rune has it open."""
        if call.conversation_id is None:
            raise UsageError("there is no conversation here yet", hint="It begins with your first message.")
        if not call.argument:
            raise wrong_usage(self, "it needs a title")
        title = await self._operator.rename(call.conversation_id, call.argument)
        return CommandResult(
            text=f"its title is now: {title}", data={"conversation_id": call.conversation_id, "title": title}
        )

    async def complete(self, call: CommandCall) -> Sequence[Completion]:
        """Return the title that it has, to be changed; nothing once another one is being typed."""
        if call.conversation_id is None or call.argument:
            return ()
        title = (await self._views.conversation(call.conversation_id)).title
        return (Completion(text=title, note="as it is now"),) if title else ()
