"""Finds and runs slash commands."""

from collections.abc import Sequence
from difflib import get_close_matches

import msgspec

from rune.errors import UsageError
from rune.surface.commands.command import Command, CommandCall, wrong_usage
from rune.surface.results import CommandResult


class HelpCommand:
    """/help: what there is."""

    name = "help"
    usage = "/help [COMMAND]"
    summary = "list the commands, or show how one is used"

    def __init__(self, commands: Sequence[Command]) -> None:
        self._commands = [*commands, self]

    async def run(self, call: CommandCall) -> CommandResult:
        """List all, or explain one."""
        shown = self._commands
        if wanted := call.argument.strip().removeprefix("/"):
            shown = [command for command in self._commands if command.name == wanted]
            if not shown:
                raise wrong_usage(self, f"there is no command /{wanted}")
        rows = sorted((command.usage, command.summary) for command in shown)
        width = max(len(usage) for usage, _ in rows)
        text = "\n".join(f"{usage.ljust(width)}  {summary}" for usage, summary in rows)
        return CommandResult(
            text=text, data={"commands": [{"usage": usage, "summary": about} for usage, about in rows]}
        )


class Commands:
    """All slash commands of this process, by name."""

    def __init__(self, commands: Sequence[Command]) -> None:
        everything: list[Command] = [*commands, HelpCommand(commands)]
        self.by_name = {command.name: command for command in everything}

    @staticmethod
    def is_command(text: str) -> bool:
        """Say whether a typed line is a command: its first word is a slash and letters (`/etc/hosts` is not)."""
        first = text.split(maxsplit=1)[0] if text.strip() else ""
        return text.startswith("/") and first[1:].isalpha()

    async def run(self, line: str, call: CommandCall) -> CommandResult:
        """Run `/name argument`. Raises UsageError for an unknown name, naming a near one."""
        name, argument = [*line.removeprefix("/").split(maxsplit=1), "", ""][:2]
        command = self.by_name.get(name)
        if command is None:
            near = get_close_matches(name, self.by_name, n=1)
            hint = f"Did you mean /{near[0]}?" if near else "/help lists the commands."
            raise UsageError(f"there is no command /{name}", hint=hint)
        return await command.run(msgspec.structs.replace(call, argument=argument.strip()))
