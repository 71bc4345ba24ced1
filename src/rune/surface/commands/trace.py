"""/trace: what the model saw."""

from collections.abc import Sequence

from rune.errors import NotFoundError
from rune.records.record import to_builtins
from rune.surface.commands.command import CommandCall
from rune.surface.commands.completion import Completion
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
        return CommandResult(text=trace_text(trace), data={"trace": to_builtins(trace)})

    async def complete(self, call: CommandCall) -> Sequence[Completion]:
        """Return `list` and the ids of the newest traces."""
        every = Completion(text="list", note="the newest traces, a line each")
        try:
            traces = await self._views.traces(conversation_id=call.conversation_id, limit=20)
        except NotFoundError:  # one of them was erased or lost: /trace ID says so
            return (every,)
        return (every, *(Completion(text=row.id, note=f"{row.model}, {row.stop_reason}") for row in traces))
