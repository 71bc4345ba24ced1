"""/context: how full the context is, and with what."""

from collections.abc import Sequence

from rune.records.record import to_builtins
from rune.surface.commands.command import CommandCall, wrong_usage
from rune.surface.commands.completion import Completion
from rune.surface.context_text import context_text, use_of
from rune.surface.results import CommandResult
from rune.surface.views import Views


class ContextCommand:
    """Shows the newest prompt of this conversation: level, blocks, what stayed out, how the prefix held."""

    name = "context"
    usage = "/context"
    summary = "how full the context is, with what, and what was left out"

    def __init__(self, views: Views) -> None:
        self._views = views

    async def run(self, call: CommandCall) -> CommandResult:
        """Show it. Raises NotFoundError when its trace was erased or lost."""
        if call.argument:
            raise wrong_usage(self, "it takes no argument")
        if call.conversation_id is None:
            return _EMPTY
        newest = await self._views.traces(conversation_id=call.conversation_id, limit=1)
        if not newest:
            return _EMPTY
        trace = newest[0]
        data = {
            "trace": trace.id,
            "context": to_builtins(use_of(trace)),
            "blocks": trace.per_block_tokens,
            "dropped": [to_builtins(dropped) for dropped in trace.dropped_blocks],
            "prefix_reuse": trace.prefix_reuse,
            "prefix_break": trace.prefix_break,
        }
        return CommandResult(text=context_text(trace), data=data)

    async def complete(self, call: CommandCall) -> Sequence[Completion]:
        """Return nothing: it takes no argument."""
        del call
        return ()


_EMPTY = CommandResult(text="nothing was sent to a model in this conversation yet", data={"context": None})
