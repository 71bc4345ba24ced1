"""What a person does with a whole conversation: branch off, give another title, hide."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec

from rune.errors import NotFoundError, UsageError
from rune.host.clock import Clock
from rune.host.ids import IdSource
from rune.records.events import ConversationHidden, ConversationRenamed, ThinkingSelected
from rune.records.messages import ConversationRecord
from rune.records.permissions import PermissionChanged
from rune.records.times import rfc3339
from rune.store.conversations import ConversationStateRepository
from rune.text.storable import storable
from rune.turn.flight import uninterrupted
from rune.turn.recorder import title_of
from rune.turn.session import Session, Sessions


class ConversationActions:
    """Writes facts about conversations outside of turns. `leave` gives one back that was only taken for this."""

    def __init__(
        self,
        *,
        sessions: Sessions,
        conversations: ConversationStateRepository,
        mask: Callable[[str], str],
        leave: Callable[[str], Awaitable[object]],
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._sessions = sessions
        self._conversations = conversations
        self._mask = mask
        self._leave = leave
        self._clock = clock
        self._ids = ids

    async def fork(self, conversation_id: str, at_message_id: str | None) -> ConversationRecord:
        """Branch off behind a message (None: the newest). Raises NotFoundError, UsageError, StorageError."""
        stored = await self._conversations.get(conversation_id)
        parent = stored.record
        said = await self._conversations.messages(conversation_id)
        if not said:
            raise UsageError("nothing was said in this conversation yet", hint="Begin another one instead.")
        last = at_message_id or said[-1].id
        if all(message.id != last for message in said):
            raise NotFoundError(
                f"{last} is no message of {conversation_id}", hint="`rune sessions show ID` shows its messages."
            )
        record = ConversationRecord(
            id=self._ids.new_id("cnv"),
            channel=parent.channel,
            folder=parent.folder,
            title=parent.title,
            model=parent.model,
            private=parent.private,
            forked_from=parent.id,
            fork_msg_id=last,
            # The same frozen prefix: what a server has cached of the first is good for the second.
            prefix=parent.prefix,
            created_at=rfc3339(self._clock.now_ms()),
        )
        chosen: list[ThinkingSelected | PermissionChanged] = []
        if stored.thinking != "auto":
            chosen.append(ThinkingSelected(conversation_id=record.id, thinking=stored.thinking, previous="auto"))
        if stored.permission != "ask":
            chosen.append(PermissionChanged(conversation_id=record.id, mode=stored.permission, previous="ask"))
        await self._sessions.take(record.id, new=True)
        try:
            await uninterrupted(self._conversations.create(record, *chosen))
        finally:
            # Whoever goes on with it reads what both share first.
            await uninterrupted(self._sessions.release(record.id))
        return record

    async def rename(self, conversation_id: str, title: str) -> str:
        """Give another title and return it as it is kept: one line, masked. Raises UsageError, LeaseHeldError."""
        kept = title_of(self._mask(storable(title)))
        if not kept:
            raise UsageError("the title is empty", hint="Type what it shall be called.")
        async with self._held(conversation_id) as session:
            renamed = ConversationRenamed(conversation_id=conversation_id, title=kept)
            await uninterrupted(self._conversations.change(renamed, actor_id="owner"))
            if session.conversation is not None:
                session.conversation = msgspec.structs.replace(session.conversation, title=kept)
        return kept

    async def hide(self, conversation_id: str, *, hidden: bool) -> None:
        """List it no longer, or again. Raises LeaseHeldError, NotFoundError, StorageError."""
        async with self._held(conversation_id):
            change = ConversationHidden(conversation_id=conversation_id, hidden=hidden)
            await uninterrupted(self._conversations.change(change, actor_id="owner"))

    @asynccontextmanager
    async def _held(self, conversation_id: str) -> AsyncGenerator[Session]:
        """Hold the conversation while a fact about it is written; a turn of it may run meanwhile."""
        await self._conversations.get(conversation_id)
        was_ours = self._sessions.find(conversation_id) is not None
        try:
            while True:
                session = await uninterrupted(self._sessions.take(conversation_id, new=False))
                async with session.choosing:
                    if self._sessions.holds(session):
                        yield session
                        break
        finally:
            if not was_ours:
                await self._leave(conversation_id)
