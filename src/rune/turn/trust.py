"""Which folders may instruct Rune, as decisions of the person that are journaled."""

import asyncio
from collections.abc import Callable

from rune.config.trust import TrustBook, TrustStatus
from rune.context.blocks import ProjectFile
from rune.errors import RuneError
from rune.host.paths import real_path, storable_path
from rune.records.events import TrustGranted, TrustRevoked
from rune.store.ledger import Draft, Ledger
from rune.turn.failures import TurnFailures


class FolderTrust:
    """Asks the book, changes it, and writes down that it was changed and what was trusted. A `folder` is
    the storable text of a path, as a turn carries it.
    """

    def __init__(self, book: TrustBook, ledger: Ledger) -> None:
        self._book = book
        self._ledger = ledger

    def status(self, folder: str) -> TrustStatus:
        """Return whether the folder's instructing files are trusted as they are now. Raises ConfigError."""
        return self._book.status(real_path(folder))

    def project_files(self, folder: str) -> tuple[ProjectFile, ...]:
        """Return the files that may stand in a prompt: none unless the folder is trusted as it is now."""
        status = self.status(folder)
        if status.state != "trusted":
            return ()
        return tuple(ProjectFile(path=file.path, text=file.text) for file in status.files)

    def unread(self, folder: str, *, first: bool) -> str:
        """Say in one sentence that files of the folder would instruct and are not read; "" when there are none.

        That nobody trusted them yet is said at a conversation's beginning only, that they changed each time.
        """
        match self.status(folder).state:
            case "changed":
                return "AGENTS.md changed since you trusted it and is not read; `/trust` shows how"
            case "untrusted" if first:
                return "AGENTS.md of this project is not read until you allow it: `/trust` shows it"
            case _:
                return ""

    async def grant(self, shown: TrustStatus) -> None:
        """Trust exactly what was shown; journaled before it holds. Raises UsageError, ConfigError."""
        files = tuple(file.path for file in shown.instructions.everything)
        if files:
            await self._emit("trust.granted", TrustGranted(folder=_name(shown), digest=shown.digest, files=files))
        await asyncio.to_thread(self._book.grant, shown)

    async def revoke(self, folder: str) -> None:
        """Trust the folder's project no longer."""
        shown = await asyncio.to_thread(self.status, folder)
        await self._emit("trust.revoked", TrustRevoked(folder=_name(shown)))
        await asyncio.to_thread(self._book.revoke, real_path(folder))

    async def _emit(self, event_type: str, body: TrustGranted | TrustRevoked) -> None:
        draft = Draft(event_type=event_type, body=body, partition="system", actor_id="owner", authorization="owner")
        await self._ledger.emit(draft)


def _name(shown: TrustStatus) -> str:
    return storable_path(shown.instructions.root)


class ProjectInstructions:
    """What a turn takes from a project. A trust book that cannot be read costs the turn these files, not the
    turn itself (T1). `mask` takes secrets out of them: they are sent, and kept with the prompt.
    """

    def __init__(self, trust: FolderTrust, failures: TurnFailures, mask: Callable[[str], str]) -> None:
        self._trust = trust
        self._failures = failures
        self._mask = mask

    def files(self, folder: str) -> tuple[ProjectFile, ...]:
        """Return the files that may stand in a prompt; none when that cannot be known."""
        try:
            files = self._trust.project_files(folder)
            return tuple(ProjectFile(path=file.path, text=self._mask(file.text)) for file in files)
        except RuneError as error:
            self._failures.degraded("project", error)
            return ()

    def unread(self, folder: str, first: bool) -> str:
        """Return what the person should know about files that are not read; "" when there is nothing."""
        try:
            return self._trust.unread(folder, first=first)
        except RuneError as error:
            self._failures.degraded("project", error)
            return ""
