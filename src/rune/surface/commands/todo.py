"""/todo: the model's own checklist, as it stands in this conversation."""

from collections.abc import Sequence
from typing import Final

from rune.records.messages import ConversationMessageRecord
from rune.records.tools import ToolCall
from rune.surface.commands.command import CommandCall, wrong_usage
from rune.surface.commands.completion import Completion
from rune.surface.results import CommandResult
from rune.surface.views import Views
from rune.tools.executors.todo import items_of

_MARKS: Final = {"done": "[x]", "doing": "[>]", "open": "[ ]"}


class TodoCommand:
    """Shows it; only the model writes it."""

    name = "todo"
    usage = "/todo"
    summary = "the model's own checklist in this conversation, as it stands"

    def __init__(self, views: Views) -> None:
        self._views = views

    async def run(self, call: CommandCall) -> CommandResult:
        """Show it. Raises UsageError for an argument, StorageError."""
        if call.argument:
            raise wrong_usage(self, "it takes no argument")
        items: Sequence[tuple[str, str]] = ()
        if call.conversation_id is not None:
            items = _newest(await self._views.transcript(call.conversation_id))
        lines = [f"{_MARKS[state]} {text}" for text, state in items]
        data = {"items": [{"text": text, "state": state} for text, state in items]}
        return CommandResult(text="\n".join(lines) or "the model keeps no checklist here", data=data)

    async def complete(self, call: CommandCall) -> Sequence[Completion]:
        """Return nothing: it takes no argument."""
        del call
        return ()


def _newest(messages: Sequence[ConversationMessageRecord]) -> Sequence[tuple[str, str]]:
    """Return the last list that a call gave and that was taken."""
    waiting: dict[str, ToolCall] = {}
    newest: Sequence[tuple[str, str]] = ()
    for message in messages:
        if message.role == "assistant":
            waiting = {call.id: call for call in message.tool_calls if call.name == "todo"}
        elif message.role == "tool" and message.tool_call_id in waiting:
            newest = items_of(waiting.pop(message.tool_call_id).arguments) or newest
    return newest
