"""Conversations and their messages: what was said, in order, with every field. It builds no prompts."""

from collections.abc import Collection
from functools import partial
from typing import Any

import apsw
import msgspec

from rune.errors import NotFoundError
from rune.records.events import (
    ConversationHidden,
    ConversationRenamed,
    HistoryArchived,
    ModelSelected,
    PrefixChanged,
    ThinkingSelected,
)
from rune.records.messages import Channel, ConversationMessageRecord, ConversationRecord, Role
from rune.records.models import Thinking
from rune.records.permissions import PermissionChanged, PermissionMode
from rune.records.times import rfc3339
from rune.store.ledger import Draft, Ledger, once
from rune.store.lineage import inherited, lineage
from rune.store.projections import ProjectionEngine
from rune.store.rows import as_written, at_most, find_by_part, read_record
from rune.store.search import MessageHit, find_messages

Change = (
    ConversationRenamed
    | ConversationHidden
    | ModelSelected
    | ThinkingSelected
    | PermissionChanged
    | PrefixChanged
    | HistoryArchived
)

_MESSAGE_EVENT: dict[Role, str] = {"user": "user.message", "assistant": "response.generated", "tool": "tool.message"}
_CHANGE_EVENT: dict[type[Change], str] = {
    ConversationRenamed: "conversation.renamed",
    ConversationHidden: "conversation.hidden",
    ModelSelected: "model.selected",
    ThinkingSelected: "thinking.selected",
    PermissionChanged: "permission.changed",
    PrefixChanged: "context.prefix_changed",
    HistoryArchived: "history.archived",
}
_COLUMNS = (
    "record, title, title_rank <> created_rank, model, thinking, permission, prefix, hidden, messages, last_active, "
    "said_at"
)
# Of a fork, what it shares was said in another one.
_SOMETHING_SAID = "(messages > 0 OR json_extract(CAST(record AS TEXT), '$.fork_msg_id') IS NOT NULL)"
# What stands in for the time of a message that was brought in without one.
_UNKNOWN = 1
_ROW = tuple[bytes, str, int, str, Thinking, PermissionMode, str | None, int, int, int, str]


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation as it stands: `record` with the title, model and prefix of today.

    `last_active` (RFC 3339) is when its last message was said, or it began ("": not known); `messages` how many it
    has, in a fork with those that it shares; `thinking` how much its models think; `permission` what its tools may do
    without asking.
    """

    record: ConversationRecord
    last_active: str
    messages: int
    hidden: bool
    renamed: bool
    thinking: Thinking = "auto"
    permission: PermissionMode = "ask"


class ConversationStateRepository:
    """Reads conversations from the views and writes them through the ledger.

    `draft_*` give facts that are to be emitted together with others. Everything that blocks runs in a
    thread. The views hold all that this process emitted; what others emitted, up to the last pass.
    """

    def __init__(self, ledger: Ledger, engine: ProjectionEngine) -> None:
        self._ledger = ledger
        self._engine = engine

    def draft_create(self, record: ConversationRecord) -> Draft:
        """Return the beginning of a conversation, or of a branch of one; once for its id."""
        event_type = "conversation.created" if record.forked_from is None else "conversation.forked"
        return Draft(event_type=event_type, body=record, partition=record.id, event_id=once(record.id))

    def draft_append(self, message: ConversationMessageRecord) -> Draft:
        """Return what was said; once for the message's id. Raises ValueError for a role that does not speak."""
        if message.role not in _MESSAGE_EVENT:
            raise ValueError(f"a message of role {message.role!r} is not part of a conversation")
        actor = {"user": "owner", "assistant": f"model:{message.model}", "tool": f"tool:{message.tool_name}"}
        return Draft(
            event_type=_MESSAGE_EVENT[message.role],
            body=message,
            partition=message.conversation_id,
            actor_id=actor[message.role],
            event_id=once(message.id),
        )

    def draft_change(self, change: Change, *, actor_id: str = "rune") -> Draft:
        """Return a change of title, listing, model, thinking, permission, prefix or of what is still sent."""
        return Draft(
            event_type=_CHANGE_EVENT[type(change)], body=change, partition=change.conversation_id, actor_id=actor_id
        )

    async def create(self, record: ConversationRecord, *changes: Change) -> None:
        """Begin a conversation, with what differs from its record. Raises as Ledger.emit_many."""
        changed = [self.draft_change(change, actor_id="owner") for change in changes]
        await self._ledger.emit_many([self.draft_create(record), *changed])

    async def append(self, message: ConversationMessageRecord) -> None:
        """Store a message; the same one twice is stored once. Raises IdentityCollisionError for another of its id."""
        await self._ledger.emit(self.draft_append(message))

    async def change(self, change: Change, *, actor_id: str = "rune") -> None:
        """Store a change. Raises as Ledger.emit_many."""
        await self._ledger.emit(self.draft_change(change, actor_id=actor_id))

    async def get(self, conversation_id: str) -> Conversation:
        """Return a conversation. Raises NotFoundError."""
        found = await self._select("WHERE id = ? AND record IS NOT NULL", (conversation_id,))
        if not found:
            raise NotFoundError(f"no conversation {conversation_id}", hint="`rune sessions list --all` shows them.")
        return found[0]

    async def conversations(
        self,
        folder: str | None = None,
        channel: Channel | None = None,
        *,
        limit: int = 50,
        exclude: Collection[str] = (),
        with_hidden: bool = False,
        with_empty: bool = True,
    ) -> list[Conversation]:
        """List conversations, the one that was active last first. `with_empty`: also those in which nothing was said,
        as a kill right at the beginning leaves one.
        """
        wanted: list[tuple[str, tuple[str, ...]]] = [("record IS NOT NULL", ())]
        if folder is not None:
            wanted.append(("folder = ?", (folder,)))
        if channel is not None:
            wanted.append(("channel = ?", (channel,)))
        if exclude:
            wanted.append((f"id NOT IN ({','.join('?' * len(exclude))})", tuple(exclude)))
        if not with_hidden:
            wanted.append(("hidden = 0", ()))
        if not with_empty:
            wanted.append((_SOMETHING_SAID, ()))
        where = " AND ".join(condition for condition, _ in wanted)
        values = [value for _, values in wanted for value in values]
        return await self._select(
            f"WHERE {where} ORDER BY last_active DESC, id DESC LIMIT ?", (*values, at_most(limit))
        )

    async def latest(
        self, folder: str | None = None, channel: Channel | None = None, *, exclude: Collection[str] = ()
    ) -> Conversation | None:
        """Return the conversation that was active last; None when there is none."""
        found = await self.conversations(folder, channel, limit=1, exclude=exclude)
        return found[0] if found else None

    async def resolve(self, text: str) -> str:
        """Return the id of the one conversation whose id is, begins or ends with `text`. Raises NotFoundError."""
        return await self._engine.query(
            partial(find_by_part, text=text, kind="cnv", table="conversations", listed="record IS NOT NULL")
        )

    async def resolve_message(self, text: str) -> str:
        """Return the id of the one message whose id is, begins or ends with `text`. Raises NotFoundError."""
        return await self._engine.query(partial(find_by_part, text=text, kind="msg", table="messages"))

    async def message(self, message_id: str) -> ConversationMessageRecord:
        """Return one message. Raises NotFoundError."""
        found = await self._messages("WHERE id = ?", (message_id,))
        if not found:
            raise NotFoundError(f"no message {message_id}")
        return found[0]

    async def messages(self, conversation_id: str) -> list[ConversationMessageRecord]:
        """Return everything said in a conversation, oldest first; of a fork also the part that it shares."""

        def select(connection: apsw.Connection) -> list[ConversationMessageRecord]:
            return [
                message
                for branch in lineage(connection, conversation_id)
                for message in _read(connection, "WHERE conversation_id = ? AND rank <= ? ORDER BY rank", branch)
            ]

        return await self._engine.query(select)

    async def window(self, conversation_id: str, n: int) -> list[ConversationMessageRecord]:
        """Return the last `n` messages, oldest of them first."""
        rest = "WHERE conversation_id = ? AND rank <= ? ORDER BY rank DESC LIMIT ?"

        def select(connection: apsw.Connection) -> list[ConversationMessageRecord]:
            found: list[ConversationMessageRecord] = []
            for branch in reversed(lineage(connection, conversation_id)):
                if len(found) < at_most(n):
                    found += _read(connection, rest, (*branch, at_most(n) - len(found)))
            return found[::-1]

        return await self._engine.query(select)

    async def search(
        self,
        text: str,
        *,
        folder: str | None = None,
        conversation_id: str | None = None,
        limit: int = 20,
        with_hidden: bool = True,
        of_each: int | None = None,
    ) -> list[MessageHit]:
        """Return the messages in which all words occur; see `find_messages`."""
        wanted = partial(
            find_messages,
            text=text,
            folder=folder,
            conversation_id=conversation_id,
            limit=limit,
            with_hidden=with_hidden,
            of_each=of_each,
        )
        return await self._engine.query(wanted)

    async def messages_for_task(self, task_id: str) -> list[ConversationMessageRecord]:
        """Return everything said for a task, oldest first."""
        return await self._messages("WHERE task_id = ? ORDER BY rank", (task_id,))

    async def archived_ids(self, conversation_id: str) -> frozenset[str]:
        """Return the ids of messages that are no longer sent; in a fork also those that had left before it."""
        wanted = "SELECT message_id FROM archived WHERE conversation_id = ? AND rank <= ?"

        def select(connection: apsw.Connection) -> frozenset[str]:
            branches = lineage(connection, conversation_id)
            return frozenset(str(row[0]) for branch in branches for row in connection.execute(wanted, branch))

        return await self._engine.query(select)

    async def prefix_id(self, conversation_id: str) -> str | None:
        """Return the evidence id of the frozen prefix in force; None when there is none yet."""
        return (await self.get(conversation_id)).record.prefix

    async def model(self, conversation_id: str) -> str:
        """Return the model that was chosen last in this conversation."""
        return (await self.get(conversation_id)).record.model

    async def thinking(self, conversation_id: str) -> Thinking:
        """Return how much the models of this conversation are to think."""
        return (await self.get(conversation_id)).thinking

    async def _select(self, rest: str, values: tuple[str | int, ...]) -> list[Conversation]:
        def select(connection: apsw.Connection) -> list[Conversation]:
            rows = connection.execute(f"SELECT {_COLUMNS} FROM conversations {rest}", values)  # noqa: S608 text from here
            return [_with_shared(connection, _conversation(row)) for row in rows.fetchall()]

        return await self._engine.query(select)

    async def _messages(self, rest: str, values: tuple[str | int, ...]) -> list[ConversationMessageRecord]:
        return await self._engine.query(lambda connection: _read(connection, rest, values))


def _read(connection: apsw.Connection, rest: str, values: tuple[str | int, ...]) -> list[ConversationMessageRecord]:
    rows = connection.execute(f"SELECT record FROM messages {rest}", values)  # noqa: S608 text from here
    return [read_record(row[0], ConversationMessageRecord) for row in rows]


def _with_shared(connection: apsw.Connection, found: Conversation) -> Conversation:
    shared = inherited(connection, found.record)
    return msgspec.structs.replace(found, messages=found.messages + shared) if shared else found


def _conversation(row: tuple[Any, ...]) -> Conversation:
    with as_written():
        record, title, renamed, model, thinking, permission, prefix, hidden, messages, last_active, said_at = (
            msgspec.convert(row, _ROW)
        )
        moment = said_at or (rfc3339(last_active) if last_active > _UNKNOWN else "")
    return Conversation(
        record=msgspec.structs.replace(
            read_record(record, ConversationRecord), title=title, model=model, prefix=prefix
        ),
        last_active=moment,
        messages=messages,
        hidden=bool(hidden),
        renamed=bool(renamed),
        thinking=thinking,
        permission=permission,
    )
