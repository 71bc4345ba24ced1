"""Finds, completes and runs slash commands."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Self

import msgspec

from rune.errors import UsageError
from rune.surface.commands.command import Command, CommandCall
from rune.surface.commands.completion import Candidates, Completion
from rune.surface.commands.help import HelpCommand
from rune.surface.results import CommandResult


class Commands:
    """All slash commands of a surface, by name; `/help` comes with them."""

    def __init__(self, commands: Sequence[Command]) -> None:
        self._given = tuple(commands)
        everything: tuple[Command, ...] = (*commands, HelpCommand(lambda: everything))
        self.by_name = {command.name: command for command in everything}
        if len(self.by_name) != len(everything):
            raise ValueError(f"two commands have one name: {sorted(command.name for command in everything)}")

    def extended(self, more: Sequence[Command]) -> Self:
        """Return these commands and a surface's own. Raises ValueError when a name is taken."""
        return type(self)((*self._given, *more))

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
            near = get_close_matches(name.lower(), self.by_name, n=1)
            hint = f"Did you mean /{near[0]}?" if near else "/help lists the commands."
            raise UsageError(f"there is no command /{name}", hint=hint)
        return await command.run(msgspec.structs.replace(call, argument=argument.strip()))

    async def candidates(self, line: str, call: CommandCall) -> Candidates:
        """Return how a line that is being typed could go on: the command's name first, then its argument.

        Empty when the line is no command. Raises as `Command.complete`.
        """
        if not line.startswith("/"):
            return Candidates()
        name = line.split(maxsplit=1)[0]
        if name == line:  # no blank yet: the name itself is being typed
            commands = sorted(self.by_name.values(), key=lambda command: command.name)
            names = (Completion(text=f"/{command.name}", note=command.summary) for command in commands)
            return Candidates(options=tuple(names))
        command = self.by_name.get(name[1:])
        if command is None:
            return Candidates()
        argument = line[len(name) :].lstrip()
        options = await command.complete(msgspec.structs.replace(call, argument=argument))
        return Candidates(start=len(line) - len(argument), options=tuple(options))
