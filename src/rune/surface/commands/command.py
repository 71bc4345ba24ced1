"""What a slash command is: data that every surface can list, complete and run."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from rune.errors import UsageError
from rune.records.messages import Channel
from rune.records.models import Thinking
from rune.records.permissions import PermissionMode
from rune.surface.commands.completion import Completion
from rune.surface.results import CommandResult


class CommandCall(msgspec.Struct, frozen=True, kw_only=True):
    """One use of a command: what stands behind its name, and where the person is. `model`, `thinking` and
    `permission` were chosen for a conversation that has not begun: they go with its first message.
    """

    argument: str
    folder: str
    channel: Channel
    conversation_id: str | None
    model: str | None = None
    thinking: Thinking | None = None
    permission: PermissionMode | None = None


class Command(Protocol):
    """A slash command; its constructor takes what it needs."""

    name: str
    usage: str
    summary: str

    async def run(self, call: CommandCall) -> CommandResult:
        """Do it. Raises UsageError for wrong arguments, else any RuneError."""
        ...

    async def complete(self, call: CommandCall) -> Sequence[Completion]:
        """Return what its argument could be, whatever of it was typed; empty when there is nothing to choose.

        Raises StorageError; never because a model server does not answer.
        """
        ...


def wrong_usage(command: Command, problem: str) -> UsageError:
    """Return the error that shows how the command is used."""
    return UsageError(f"/{command.name}: {problem}", hint=f"Usage: {command.usage}")
