"""/new and /done: the person's moves about conversation and task."""

from collections.abc import Sequence

from rune.errors import UsageError
from rune.surface.commands.command import CommandCall, wrong_usage
from rune.surface.commands.completion import Completion
from rune.surface.results import CommandResult
from rune.turn.operator import RuneOperator


class NewCommand:
    """Starts fresh."""

    name = "new"
    usage = "/new"
    summary = "start a new conversation; the open task here is superseded"

    def __init__(self, operator: RuneOperator) -> None:
        self._operator = operator

    async def run(self, call: CommandCall) -> CommandResult:
        """Supersede the open task and start an empty conversation."""
        if call.argument:
            raise wrong_usage(self, "it takes no argument")
        record = await self._operator.new(
            folder=call.folder, channel=call.channel, conversation_id=call.conversation_id
        )
        return CommandResult(text=f"started {record.id}", data={"conversation_id": record.id}, opens=record.id)

    async def complete(self, call: CommandCall) -> Sequence[Completion]:
        """Return nothing: it takes no argument."""
        del call
        return ()


class DoneCommand:
    """Ends the task: only the person says that something is done."""

    name = "done"
    usage = "/done"
    summary = "the open task of this conversation is done"

    def __init__(self, operator: RuneOperator) -> None:
        self._operator = operator

    async def run(self, call: CommandCall) -> CommandResult:
        """Complete the open task."""
        if call.argument:
            raise wrong_usage(self, "it takes no argument")
        if call.conversation_id is None:
            raise UsageError("there is no conversation here yet", hint="A task begins with your first message.")
        task = await self._operator.done(call.conversation_id)
        return CommandResult(text=f"done: {task.title}", data={"task_id": task.id, "status": task.status.value})

    async def complete(self, call: CommandCall) -> Sequence[Completion]:
        """Return nothing: it takes no argument."""
        del call
        return ()
