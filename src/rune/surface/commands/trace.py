"""/trace: what the model saw."""

from rune.surface.commands.command import CommandCall
from rune.surface.results import CommandResult
from rune.surface.trace_text import trace_list, trace_text
from rune.surface.views import Views


class TraceCommand:
    """Shows the newest trace of this conversation, one by its id, or the list."""

    name = "trace"
    usage = "/trace [ID|list]"
    summary = "what the model saw: blocks, sizes, what was left out"

    def __init__(self, views: Views) -> None:
        self._views = views

    async def run(self, call: CommandCall) -> CommandResult:
        """Show one trace, or the newest ones."""
        if call.argument == "list":
            rows = await self._views.traces(conversation_id=call.conversation_id, limit=20)
            return CommandResult(text=trace_list(rows), data={"traces": [row.id for row in rows]})
        trace = await self._views.trace(call.argument or None, conversation_id=call.conversation_id)
        return CommandResult(text=trace_text(trace), data={"trace": self._views.as_data(trace)})
