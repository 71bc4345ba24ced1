"""What a fork shares with the conversation it was branched off: everything up to one message (spine.md)."""

from typing import NamedTuple

import apsw
import msgspec

from rune.records.messages import ConversationRecord
from rune.store.ledger import once
from rune.store.rows import as_written, read_record

# Longer than anybody branches; a journal that says otherwise must not hang a reader.
_MOST_BRANCHES = 1000
_PLACE = tuple[str, int, int, str, int]
# Sorts behind every rank: ranks begin with a digit.
EVERYTHING = "~"


class Branch(NamedTuple):
    """A part of a conversation: what of `conversation_id` has a rank up to and including `until`."""

    conversation_id: str
    until: str


def lineage(connection: apsw.Connection, conversation_id: str) -> list[Branch]:
    """Return the parts that make up a conversation as it is read, the oldest first; itself is the last.

    A fork of a fork at a message that both inherited goes straight to the conversation where it was said.
    """
    branches = [Branch(conversation_id, EVERYTHING)]
    seen = {conversation_id}
    while len(branches) < _MOST_BRANCHES:
        record = _record(connection, branches[-1].conversation_id)
        if record is None or record.fork_msg_id is None:
            break
        shared = _up_to(connection, record.fork_msg_id)
        if shared is None or shared.conversation_id in seen:
            break
        seen.add(shared.conversation_id)
        branches.append(shared)
    return branches[::-1]


def inherited(connection: apsw.Connection, record: ConversationRecord) -> int:
    """Return how many messages a fork shares; 0 for a conversation that is none."""
    if record.fork_msg_id is None:
        return 0
    counts = [
        connection.execute("SELECT count(*) FROM messages WHERE conversation_id = ? AND rank <= ?", branch).get
        for branch in lineage(connection, record.id)[:-1]
    ]
    with as_written():
        return sum(msgspec.convert(count, int) for count in counts)


def _record(connection: apsw.Connection, conversation_id: str) -> ConversationRecord | None:
    row = connection.execute(
        "SELECT record FROM conversations WHERE id = ? AND record IS NOT NULL", (conversation_id,)
    ).fetchone()
    return None if row is None else read_record(row[0], ConversationRecord)


def _up_to(connection: apsw.Connection, message_id: str) -> Branch | None:
    """Return the part that ends with a message, also where its words were erased: its place is still known."""
    row = connection.execute("SELECT conversation_id, rank FROM messages WHERE id = ?", (message_id,)).fetchone()
    if row is not None:
        return Branch(str(row[0]), str(row[1]))
    row = connection.execute(
        "SELECT partition_key, pseq, hlc, writer, seq FROM events WHERE event_id = ?", (once(message_id),)
    ).fetchone()
    if row is None:
        return None
    with as_written():
        partition, pseq, hlc, writer, seq = msgspec.convert(row, _PLACE)
    return Branch(partition, f"{pseq:010d}.{hlc:014d}.{writer}.{seq:010d}")
