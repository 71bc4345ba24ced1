"""What there is to choose from: models, conversations, messages. Knows the surface and no widget."""

from collections.abc import Sequence
from typing import Final

from rune.surface.found_text import OF_EACH
from rune.surface.model_text import removed_text
from rune.surface.rows import ConversationRow, MessageHit, ModelRow
from rune.surface.surface import Surface

# What one scrolls through; who wants more gives more words.
_MOST_LISTED: Final = 1_000
_MOST_FOUND: Final = 50


class Listing:
    """Lists what the person can choose from while they work in `folder`. Everything raises StorageError."""

    def __init__(self, surface: Surface, folder: str) -> None:
        self._views = surface.views
        self._models = surface.models
        self._folder = folder

    async def models(self) -> tuple[Sequence[ModelRow], Sequence[str]]:
        """Return the models that there are, and what kept others from being seen."""
        rows, failures = await self._models.rows()
        return rows, [failure.message for failure in failures]

    async def remove_model(self, name: str) -> str:
        """Remove a model from its server's disk, and return what came of it. Raises UsageError, ModelError."""
        return removed_text(await self._models.remove(name))

    async def conversations(self) -> Sequence[ConversationRow]:
        """Return the conversations of this folder, both channels, the newest first."""
        return await self._views.rows(folder=self._folder)

    async def conversations_anywhere(self) -> Sequence[ConversationRow]:
        """Return the conversations of all folders, both channels, the newest first."""
        return await self._views.rows(limit=_MOST_LISTED)

    async def search(self, text: str) -> Sequence[MessageHit]:
        """Return the messages in all conversations in which the words of a text occur, the best match first,
        and of each conversation no more than a few.
        """
        return await self._views.search(text, limit=_MOST_FOUND, of_each=OF_EACH)
