"""/new and /done: the person's moves about conversation and task."""

from collections.abc import Sequence

from rune.errors import UsageError
from rune.surface.commands.command import CommandCall, wrong_usage
from rune.surface.commands.completion import Completion
from rune.surface.results import CommandResult
from rune.surface.tool_text import asked_line
from rune.surface.views import Views
from rune.turn.operator import RuneOperator


class NewCommand:
    """Starts fresh."""

    name = "new"
    usage = "/new"
    summary = "start a new conversation; the open task here is superseded"

    def __init__(self, operator: RuneOperator, views: Views) -> None:
        self._operator = operator
        self._views = views

    async def run(self, call: CommandCall) -> CommandResult:
        """Supersede the open task and start an empty conversation."""
        if call.argument:
            raise wrong_usage(self, "it takes no argument")
        waiting = await _waiting(self._views, call.conversation_id)
        record = await self._operator.new(
            folder=call.folder, channel=call.channel, conversation_id=call.conversation_id
        )
        refused = await _refused(self._views, waiting)
        return CommandResult(
            text=_text(f"started {record.id}", refused),
            data={"conversation_id": record.id, "refused": refused},
            opens=record.id,
        )

    async def complete(self, call: CommandCall) -> Sequence[Completion]:
        """Return nothing: it takes no argument."""
        del call
        return ()


class DoneCommand:
    """Ends the task: only the person says that something is done."""

    name = "done"
    usage = "/done"
    summary = "the open task of this conversation is done"

    def __init__(self, operator: RuneOperator, views: Views) -> None:
        self._operator = operator
        self._views = views

    async def run(self, call: CommandCall) -> CommandResult:
        """Complete the open task."""
        if call.argument:
            raise wrong_usage(self, "it takes no argument")
        if call.conversation_id is None:
            raise UsageError("there is no conversation here yet", hint="A task begins with your first message.")
        waiting = await _waiting(self._views, call.conversation_id)
        task = await self._operator.done(call.conversation_id)
        refused = await _refused(self._views, waiting)
        return CommandResult(
            text=_text(f"done: {task.title}", refused),
            data={"task_id": task.id, "status": task.status.value, "refused": refused},
        )

    async def complete(self, call: CommandCall) -> Sequence[Completion]:
        """Return nothing: it takes no argument."""
        del call
        return ()


async def _waiting(views: Views, conversation_id: str | None) -> Sequence[str]:
    """Return the ids of the questions that wait in a conversation."""
    return () if conversation_id is None else [row.id for row in await views.pending_approvals(conversation_id)]


async def _refused(views: Views, waiting: Sequence[str]) -> list[str]:
    """Return, a line a call, what waited for the person's answer and was refused since."""
    rows = [await views.approval(each) for each in waiting]
    return [asked_line(call) for row in rows if row.decision == "deny" for call in row.calls]


def _text(said: str, refused: Sequence[str]) -> str:
    return "\n".join([said, *(f"refused, since it waited for your answer: {each}" for each in refused)])
