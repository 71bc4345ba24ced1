"""`!cmd`: a shell command that the person runs themselves (terminal.md, Input).

It runs as they would run it in a terminal beside this one: in their own shell, with their own environment, outside of
any sandbox, without being asked. No model is involved; only what it wrote is foreign text as any other.
"""

import asyncio
import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final

import msgspec

from rune.errors import CommandNotStartedError, UsageError
from rune.host.ids import IdSource
from rune.records.tools import CommandRun, Outcome
from rune.store.evidence_store import Evidence
from rune.store.ledger import Draft, Ledger
from rune.text.masking import Masker
from rune.text.safe_text import SafeText
from rune.text.storable import storable
from rune.tools.executor import Watch
from rune.tools.watched_run import Ran, watched_run
from rune.turn.flight import uninterrupted

OUTSIDE: Final = "ran as you, outside any sandbox"
"""What a surface says beside each of them."""

_PLAIN_SHELL: Final = "/bin/sh"
_NO_SHELLS: Final = frozenset({"false", "nologin"})


class OwnCommandResult(msgspec.Struct, frozen=True, kw_only=True):
    """How it ended: `summary` in a few words ("exit code 1 (0.8 s)"), `notes` a sentence each, and `text`, what it
    wrote, masked and cut in the middle where it is long. `output` is the evidence id of all of it, None when it said
    nothing or there is no conversation. `command` is masked as it is journaled.
    """

    command: str
    outcome: Outcome
    exit_code: int | None
    milliseconds: int
    summary: str
    text: SafeText
    notes: tuple[str, ...] = ()
    output: str | None = None


class OwnCommands:
    """Runs them and writes each down. `environ` is the person's; variables named in `withheld` hold keys that are for
    Rune alone. Who calls `run` with a conversation holds its lease.
    """

    def __init__(
        self,
        *,
        ledger: Ledger,
        evidence: Evidence,
        ids: IdSource,
        masker: Masker,
        environ: Mapping[str, str],
        withheld: Collection[str] = (),
    ) -> None:
        self._ledger = ledger
        self._evidence = evidence
        self._ids = ids
        self._masker = masker
        self._environment = {name: value for name, value in environ.items() if name not in withheld}
        self._shell = _shell_of(environ)

    async def run(
        self,
        command: str,
        *,
        folder: Path,
        conversation_id: str | None,
        on_output: Callable[[SafeText], None],
        stop: asyncio.Event,
    ) -> OwnCommandResult:
        """Run a line in `folder` until it ends or `stop` is set. `on_output` is given the last lines as they stand.

        With a conversation it is durable as `command.run` on return, also where the caller is cancelled (which sets
        `stop`). Raises UsageError for no command, StorageUnavailableError.
        """
        if not command.strip() or "\0" in command:
            raise UsageError("there is no command behind the !", hint="Type one: !ls")
        work = asyncio.ensure_future(
            self._run(command, folder, conversation_id, Watch(stop=stop, show=on_output)),
        )
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            stop.set()
            await uninterrupted(work)
            raise

    async def _run(self, command: str, folder: Path, conversation_id: str | None, watch: Watch) -> OwnCommandResult:
        # No shell takes what follows a blank for an option.
        line = f" {command}" if command.startswith(("-", "+")) else command
        shown = self._masker.mask(storable(command))
        try:
            ran = await watched_run(
                (self._shell, "-c", line),
                folder=folder,
                environment=self._environment,
                seconds=None,
                masker=self._masker,
                keep=self._keep if conversation_id is not None else None,
                watch=watch,
                always=True,
            )
        except CommandNotStartedError as error:
            result = OwnCommandResult(
                command=shown,
                outcome="failed",
                exit_code=None,
                milliseconds=0,
                summary=error.message,
                text=SafeText(""),
            )
        else:
            result = _result(shown, ran)
        if conversation_id is not None:
            await self._journal(result, conversation_id)
        return result

    async def _keep(self, data: bytes, source: str) -> str:
        return (await asyncio.to_thread(self._evidence.put, data, source=source)).hash

    async def _journal(self, result: OwnCommandResult, conversation_id: str) -> None:
        body = CommandRun(
            id=self._ids.new_id("cal"),
            conversation_id=conversation_id,
            command=result.command,
            exit_code=result.exit_code,
            milliseconds=result.milliseconds,
            output=result.output,
            summary=result.summary,
        )
        draft = Draft(
            event_type="command.run",
            body=body,
            partition=conversation_id,
            actor_id="owner",
            authorization="owner",
        )
        await self._ledger.emit(draft)


def _result(command: str, ran: Ran) -> OwnCommandResult:
    return OwnCommandResult(
        command=command,
        outcome=ran.outcome,
        exit_code=ran.ended.exit_code,
        milliseconds=ran.ended.milliseconds,
        summary=ran.verdict,
        text=ran.kept.text,
        notes=ran.notes,
        output=ran.output,
    )


def _shell_of(environ: Mapping[str, str]) -> str:
    """Return the person's shell; a plain one where none is known."""
    shell = Path(environ.get("SHELL", ""))
    usable = shell.is_absolute() and shell.name not in _NO_SHELLS and os.access(shell, os.X_OK)
    return str(shell) if usable else _PLAIN_SHELL
