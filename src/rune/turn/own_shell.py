"""`!cmd`: the person's own commands, written down in the conversation that they have in front of them."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from rune.errors import UsageError
from rune.text.safe_text import SafeText
from rune.turn.own_commands import OwnCommandResult, OwnCommands
from rune.turn.session import Sessions


class OwnShell:
    """Runs what a person types behind a `!`, as themselves."""

    def __init__(self, sessions: Sessions, commands: OwnCommands) -> None:
        self._sessions = sessions
        self._commands = commands

    async def run(
        self,
        command: str,
        *,
        folder: Path,
        conversation_id: str | None,
        on_output: Callable[[SafeText], None],
        stop: asyncio.Event,
    ) -> OwnCommandResult:
        """Run a line in `folder` until it ends or `stop` is set; `on_output` is given the last lines
        as they stand. With a conversation it is journaled there, and no turn of it runs meanwhile.

        Raises UsageError for no command and while a turn runs, LeaseHeldError, NotFoundError, StorageError.
        """
        if not command.strip():
            raise UsageError("there is no command behind the !", hint="Type one: !ls")
        if conversation_id is None:
            return await self._commands.run(
                command, folder=folder, conversation_id=None, on_output=on_output, stop=stop
            )
        session = await self._sessions.enter(conversation_id)
        try:
            return await self._commands.run(
                command, folder=folder, conversation_id=conversation_id, on_output=on_output, stop=stop
            )
        finally:
            session.exit()
