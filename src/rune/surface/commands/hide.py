"""/hide: takes this conversation out of the lists, and begins another one."""

from collections.abc import Sequence

from rune.errors import UsageError
from rune.surface.commands.command import CommandCall, wrong_usage
from rune.surface.commands.completion import Completion
from rune.surface.results import CommandResult
from rune.turn.operator import RuneOperator


class HideCommand:
    """Lists the conversation no longer; searching still finds it, and nothing of it is lost."""

    name = "hide"
    usage = "/hide"
    summary = "take this conversation out of the lists and start a new one; searching still finds it"

    def __init__(self, operator: RuneOperator) -> None:
        self._operator = operator

    async def run(self, call: CommandCall) -> CommandResult:
        """Hide it and start an empty one. Raises UsageError where there is none, LeaseHeldError."""
        if call.argument:
            raise wrong_usage(self, "it takes no argument")
        if (hidden := call.conversation_id) is None:
            raise UsageError("there is no conversation here yet", hint="It begins with your first message.")
        await self._operator.hide(hidden, hidden=True)
        record = await self._operator.new(folder=call.folder, channel=call.channel, conversation_id=hidden)
        return CommandResult(
            text=f"{hidden} is hidden; `rune sessions unhide {hidden}` lists it again",
            data={"hidden": hidden, "conversation_id": record.id},
            opens=record.id,
        )

    async def complete(self, call: CommandCall) -> Sequence[Completion]:
        """Return nothing: it takes no argument."""
        del call
        return ()
