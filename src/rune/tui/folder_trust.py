"""Whether the folder's files may instruct Rune, as the app asks and answers it. Knows no widget."""

import asyncio
from collections.abc import Callable

from rune.config.trust import TrustStatus
from rune.errors import RuneError
from rune.surface.surface import Surface
from rune.tui.talk import Talk


class FolderTrust:
    """Trust in one folder; what goes wrong is told in the talk that `front` gives, the one in front."""

    def __init__(self, surface: Surface, folder: str, front: Callable[[], Talk]) -> None:
        self._surface = surface
        self._folder = folder
        self._front = front

    async def status(self) -> TrustStatus | None:
        """Return whether the folder's files may instruct; None when it cannot be known, which is told."""
        try:
            return await asyncio.to_thread(self._surface.trust.status, self._folder)
        except RuneError as error:
            self._front().tell(f"whether this folder is trusted cannot be known: {error.message}", error.hint, tier=1)
            return None

    def is_asked(self, shown: TrustStatus) -> bool:
        """Say whether the person is to be asked: not again for files to which they said no."""
        if shown.state not in ("untrusted", "changed"):
            return False
        return self._surface.preferences.declined(shown.folder) != shown.digest

    async def decline(self, shown: TrustStatus) -> None:
        """Keep that the person said no to just these files."""
        try:
            await asyncio.to_thread(self._surface.preferences.decline, shown.folder, shown.digest)
        except RuneError as error:
            self._front().tell(f"you will be asked again: {error.message}", error.hint, tier=1)

    async def grant(self, shown: TrustStatus) -> None:
        """Trust exactly what was shown."""
        try:
            await self._surface.trust.grant(shown)
        except RuneError as error:
            self._front().tell(f"nothing was trusted: {error.message}", error.hint, tier=1)
            return
        files = ", ".join(file.path for file in shown.instructions.everything)
        verb = "instructs" if len(shown.instructions.everything) == 1 else "instruct"
        self._front().tell(f"trusted: {files} {verb} Rune from now on")
