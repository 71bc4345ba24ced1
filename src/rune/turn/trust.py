"""Which folders may instruct Rune, as decisions of the person that are journaled."""

import asyncio
from pathlib import Path

from rune.config.trust import TrustBook, TrustStatus
from rune.context.blocks import ProjectFile
from rune.records.events import TrustGranted, TrustRevoked
from rune.store.ledger import Draft, Ledger


class FolderTrust:
    """Asks the book, changes it, and writes down that it was changed and what was trusted."""

    def __init__(self, book: TrustBook, ledger: Ledger) -> None:
        self._book = book
        self._ledger = ledger

    def status(self, folder: str) -> TrustStatus:
        """Return whether the folder's instructing files are trusted as they are now. Raises ConfigError."""
        return self._book.status(Path(folder))

    def project_files(self, folder: str) -> tuple[ProjectFile, ...]:
        """Return the files that may stand in a prompt: none unless the folder is trusted as it is now."""
        status = self.status(folder)
        if status.state != "trusted":
            return ()
        return tuple(ProjectFile(path=file.path, text=file.text) for file in status.files)

    async def grant(self, shown: TrustStatus) -> None:
        """Trust exactly what was shown; journaled before it holds. Raises UsageError, ConfigError."""
        files = tuple(file.path for file in shown.instructions.everything)
        if files:
            await self._emit("trust.granted", TrustGranted(folder=shown.folder, digest=shown.digest, files=files))
        await asyncio.to_thread(self._book.grant, shown)

    async def revoke(self, folder: str) -> None:
        """Trust the folder's project no longer."""
        shown = await asyncio.to_thread(self.status, folder)
        await self._emit("trust.revoked", TrustRevoked(folder=shown.folder))
        await asyncio.to_thread(self._book.revoke, Path(folder))

    async def _emit(self, event_type: str, body: TrustGranted | TrustRevoked) -> None:
        draft = Draft(event_type=event_type, body=body, partition="system", actor_id="owner", authorization="owner")
        await self._ledger.emit(draft)
