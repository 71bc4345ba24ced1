"""/erase: says how a conversation is erased for good; erases nothing itself."""

from collections.abc import Sequence

from rune.surface.commands.command import CommandCall
from rune.surface.commands.completion import Completion
from rune.surface.results import CommandResult


class EraseCommand:
    """Says how to erase: what cannot be undone is done in a shell, with a question before it."""

    name = "erase"
    usage = "/erase"
    summary = "how to erase a conversation for good; /hide only takes it out of the lists"

    async def run(self, call: CommandCall) -> CommandResult:
        """Say it, and which conversation this is."""
        here = call.conversation_id
        which = f"this conversation is {here}" if here is not None else "`rune sessions list` has the ids"
        close = "; go to another one before (/new)" if here is not None else ""
        return CommandResult(
            text=f"nothing was erased: `rune erase ID` in a shell erases for good{close}\n{which}",
            data={"conversation_id": here, "erased": False},
        )

    async def complete(self, call: CommandCall) -> Sequence[Completion]:
        """Return nothing: there is nothing to choose."""
        del call
        return ()
