"""What a person chooses for a conversation: its model, how much that thinks, and what asks before it happens."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from rune.models.transport import ModelInfo
from rune.records.events import ModelSelected, ThinkingSelected
from rune.records.models import Thinking
from rune.records.permissions import PermissionChanged, PermissionMode
from rune.store.conversations import ConversationStateRepository
from rune.turn.flight import uninterrupted
from rune.turn.selection import ModelSelection
from rune.turn.session import Session, Sessions
from rune.turn.thinking import check_thinking


class ConversationChoices:
    """Keeps choices as facts of the conversation. `configured` gives the model's name in the settings, "" for none."""

    def __init__(
        self,
        *,
        sessions: Sessions,
        selection: ModelSelection,
        conversations: ConversationStateRepository,
        configured: Callable[[], str],
    ) -> None:
        self._sessions = sessions
        self._selection = selection
        self._conversations = conversations
        self._configured = configured

    async def choose_model(self, conversation_id: str | None, name: str) -> ModelInfo:
        """Make `name` the conversation's model and return it; None: only look whether it could answer."""
        info = await self._selection.find(name)
        if conversation_id is not None:
            async with self._choosing(conversation_id) as session:
                await uninterrupted(self._select(session, info))
        return info

    async def choose_thinking(
        self, conversation_id: str | None, thinking: Thinking, *, requested: str | None = None
    ) -> None:
        """Have the conversation's models think so much; None: only look whether the one that would answer can."""
        if thinking not in ("auto", "off"):
            check_thinking(thinking, await self.next_model(conversation_id, requested))
        if conversation_id is not None:
            async with self._choosing(conversation_id) as session:
                await uninterrupted(self._think(session, thinking))

    async def next_model(self, conversation_id: str | None, requested: str | None) -> ModelInfo:
        """Return the model that would answer now; nothing is changed."""
        held = self._sessions.find(conversation_id) if conversation_id is not None else None
        known = held.model if held is not None else ""
        if conversation_id is not None and held is None:
            known = await self._conversations.model(conversation_id)
        return await self._selection.expect(
            requested=requested, conversation_model=known, configured=self._configured()
        )

    async def thinking(self, conversation_id: str) -> Thinking:
        """Return how much the conversation's models are to think."""
        held = self._sessions.find(conversation_id)
        return held.thinking if held is not None else await self._conversations.thinking(conversation_id)

    async def choose_permission(self, conversation_id: str | None, mode: PermissionMode) -> None:
        """Have the conversation's tools ask before they act as `mode` says, from the next call on, also of a turn that
        runs; None: there is nothing to change yet.
        """
        if conversation_id is not None:
            async with self._choosing(conversation_id) as session:
                await uninterrupted(self._permit(session, mode))

    async def permission(self, conversation_id: str) -> PermissionMode:
        """Return what the conversation's tools may do without asking."""
        held = self._sessions.find(conversation_id)
        return held.permission if held is not None else (await self._conversations.get(conversation_id)).permission

    @asynccontextmanager
    async def _choosing(self, conversation_id: str) -> AsyncGenerator[Session]:
        """Hold still what the next turn takes over: one that runs keeps what it has, and so does one that is just
        choosing.
        """
        while True:
            session = await uninterrupted(self._sessions.take(conversation_id, new=False))
            async with session.choosing:
                if self._sessions.holds(session):
                    yield session
                    return

    async def _select(self, session: Session, info: ModelInfo) -> None:
        if session.model != info.name:
            selected = ModelSelected(
                conversation_id=session.conversation_id,
                model=info.name,
                provider=info.provider,
                previous=session.model,
            )
            await self._conversations.change(selected, actor_id="owner")
            session.model = info.name

    async def _think(self, session: Session, thinking: Thinking) -> None:
        if session.thinking != thinking:
            selected = ThinkingSelected(
                conversation_id=session.conversation_id, thinking=thinking, previous=session.thinking
            )
            await self._conversations.change(selected, actor_id="owner")
            session.thinking, session.unthinking = thinking, ""

    async def _permit(self, session: Session, mode: PermissionMode) -> None:
        if session.permission != mode:
            changed = PermissionChanged(conversation_id=session.conversation_id, mode=mode, previous=session.permission)
            await self._conversations.change(changed, actor_id="owner")
            session.permission = mode
