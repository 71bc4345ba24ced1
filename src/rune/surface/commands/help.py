"""/help: what there is."""

import textwrap
from collections.abc import Callable, Sequence
from typing import Final

from rune.surface.commands.command import Command, CommandCall, wrong_usage
from rune.surface.commands.completion import Completion
from rune.surface.results import WIDTH, CommandResult

# Wider usages get a line of their own, so that the summaries stay readable.
_USAGE: Final = 24


class HelpCommand:
    """Lists the commands that `all_of_them` gives when it is asked, itself among them, or explains one."""

    name = "help"
    usage = "/help [COMMAND]"
    summary = "list the commands, or show how one is used"

    def __init__(self, all_of_them: Callable[[], Sequence[Command]]) -> None:
        self._commands = all_of_them

    async def run(self, call: CommandCall) -> CommandResult:
        """List all, or explain one."""
        shown = self._commands()
        if wanted := call.argument.strip().removeprefix("/"):
            shown = [command for command in shown if command.name == wanted]
            if not shown:
                raise wrong_usage(self, f"there is no command /{wanted}")
        rows = sorted((command.usage, command.summary) for command in shown)
        width = max((len(usage) for usage, _ in rows if len(usage) <= _USAGE), default=0)
        text = "\n".join(line for usage, summary in rows for line in _lines(usage, summary, width))
        return CommandResult(
            text=text, data={"commands": [{"usage": usage, "summary": about} for usage, about in rows]}
        )

    async def complete(self, call: CommandCall) -> Sequence[Completion]:
        """Return the commands' names."""
        del call
        commands = sorted(self._commands(), key=lambda command: command.name)
        return tuple(Completion(text=command.name, note=command.summary) for command in commands)


def _lines(usage: str, summary: str, width: int) -> list[str]:
    column = " " * (width + 2)
    if len(usage) > width:
        return [usage, *textwrap.wrap(summary, WIDTH, initial_indent=column, subsequent_indent=column)]
    return textwrap.wrap(summary, WIDTH, initial_indent=f"{usage.ljust(width)}  ", subsequent_indent=column)
