"""The projection `conversations`: one row a conversation, one a message, and what left the prompt."""

import apsw
import msgspec

from rune.records.envelope import EventEnvelope
from rune.records.events import (
    ConversationHidden,
    ConversationRenamed,
    HistoryArchived,
    ModelSelected,
    PrefixChanged,
    ThinkingSelected,
)
from rune.records.messages import ConversationMessageRecord, ConversationRecord
from rune.records.permissions import PermissionChanged
from rune.records.record import Record
from rune.records.times import milliseconds
from rune.store.event_store import Offset
from rune.store.projection import rank

# A fact may be read before the conversation it belongs to (it can lie in another slot): the row is
# begun by whichever comes first and is listed once `record` is there. Each fact that may change
# stands beside the rank of the event that set it. Lists are ordered by `last_active`, which no clock
# that steps can upset; what they show is `said_at`: an event that was written again after damage is
# as old as it was.
_DDL = """
CREATE TABLE conversations (
    id TEXT PRIMARY KEY,
    record BLOB,
    channel TEXT,
    folder TEXT,
    created_rank TEXT NOT NULL DEFAULT '',
    title TEXT NOT NULL DEFAULT '', title_rank TEXT NOT NULL DEFAULT '',
    model TEXT NOT NULL DEFAULT '', model_rank TEXT NOT NULL DEFAULT '',
    thinking TEXT NOT NULL DEFAULT 'auto', thinking_rank TEXT NOT NULL DEFAULT '',
    permission TEXT NOT NULL DEFAULT 'ask', permission_rank TEXT NOT NULL DEFAULT '',
    prefix TEXT, prefix_rank TEXT NOT NULL DEFAULT '',
    hidden INTEGER NOT NULL DEFAULT 0, hidden_rank TEXT NOT NULL DEFAULT '',
    messages INTEGER NOT NULL DEFAULT 0,
    began INTEGER NOT NULL DEFAULT 0,
    last_said INTEGER NOT NULL DEFAULT 0,
    said_at TEXT NOT NULL DEFAULT '',
    last_active INTEGER AS (iif(last_said > 0, last_said, began))
) WITHOUT ROWID;
CREATE INDEX conversations_newest ON conversations (last_active) WHERE record IS NOT NULL;
CREATE INDEX conversations_of_folder ON conversations (folder, last_active) WHERE record IS NOT NULL;
CREATE TABLE messages (
    id TEXT NOT NULL UNIQUE,
    conversation_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    rank TEXT NOT NULL,
    record BLOB NOT NULL
);
CREATE INDEX messages_of_conversation ON messages (conversation_id, rank);
CREATE INDEX messages_of_task ON messages (task_id, rank);
CREATE TABLE archived (
    conversation_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    rank TEXT NOT NULL,
    PRIMARY KEY (conversation_id, message_id)
) WITHOUT ROWID;
"""
_BEGIN = "INSERT INTO conversations (id) VALUES (?) ON CONFLICT DO NOTHING"


class ConversationViews:
    """Takes in what is said in and about conversations."""

    name = "conversations"
    ddl = _DDL
    tables = ("conversations", "messages", "archived")

    def apply(self, connection: apsw.Connection, offset: Offset, envelope: EventEnvelope, body: Record) -> None:
        """Take one event in (Projection.apply)."""
        order = rank(envelope)
        match body:
            case ConversationMessageRecord():
                _message(connection, envelope, body, order)
            case ConversationRecord():
                _created(connection, envelope, body, order)
            case ConversationRenamed():
                _set(connection, body.conversation_id, "title", body.title, order)
            case ConversationHidden():
                _set(connection, body.conversation_id, "hidden", int(body.hidden), order)
            case ModelSelected():
                _set(connection, body.conversation_id, "model", body.model, order)
            case ThinkingSelected():
                _set(connection, body.conversation_id, "thinking", body.thinking, order)
            case PermissionChanged():
                _set(connection, body.conversation_id, "permission", body.mode, order)
            case PrefixChanged():
                _set(connection, body.conversation_id, "prefix", body.prefix, order)
            case HistoryArchived():
                connection.executemany(
                    "INSERT INTO archived VALUES (?,?,?) ON CONFLICT DO UPDATE SET rank = min(rank, excluded.rank)",
                    [(body.conversation_id, message_id, order) for message_id in body.message_ids],
                )
            case _:
                pass  # not about conversations, or erased: nothing of it may stay


def _created(connection: apsw.Connection, envelope: EventEnvelope, body: ConversationRecord, order: str) -> None:
    connection.execute(_BEGIN, (body.id,))
    connection.execute(
        "UPDATE conversations SET record = ?, channel = ?, folder = ?, created_rank = ?, "
        "began = ? WHERE id = ? AND (created_rank = '' OR created_rank > ?)",
        (msgspec.json.encode(body), body.channel, body.folder, order, envelope.hlc, body.id, order),
    )
    _set(connection, body.id, "title", body.title, order)
    _set(connection, body.id, "model", body.model, order)
    _set(connection, body.id, "prefix", body.prefix, order)


def _set(connection: apsw.Connection, conversation_id: str, fact: str, value: str | int | None, order: str) -> None:
    connection.execute(_BEGIN, (conversation_id,))
    connection.execute(
        f"UPDATE conversations SET {fact} = ?, {fact}_rank = ? WHERE id = ? AND {fact}_rank < ?",  # noqa: S608 a column's name from above
        (value, order, conversation_id, order),
    )


def _message(connection: apsw.Connection, envelope: EventEnvelope, body: ConversationMessageRecord, order: str) -> None:
    connection.execute(
        "INSERT INTO messages VALUES (?,?,?,?,?) ON CONFLICT DO NOTHING",
        (body.id, body.conversation_id, body.task_id, order, msgspec.json.encode(body)),
    )
    if connection.changes():
        connection.execute(_BEGIN, (body.conversation_id,))
        connection.execute(
            "UPDATE conversations SET messages = messages + 1, last_said = max(last_said, ?), "
            "said_at = max(said_at, ?) WHERE id = ?",
            (_said(envelope, body), body.ts, body.conversation_id),
        )


def _said(envelope: EventEnvelope, body: ConversationMessageRecord) -> int:
    """Return where a message stands in lists: one that was brought in is as old as it says."""
    return _moment(body.ts, 1) if body.provenance == "imported" else envelope.hlc


def _moment(text: str, unknown: int) -> int:
    try:
        return milliseconds(text)
    except ValueError:
        return unknown
