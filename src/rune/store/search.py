"""Full-text search over everything that was said. The index holds no text: a hit's comes from its message.

What a person types is never syntax: each word, and each part in quotes, is handed over as one quoted phrase.
"""

import re
from collections.abc import Sequence
from itertools import islice
from typing import Final

import apsw

from rune.errors import DamagedViewsError
from rune.records.envelope import EventEnvelope
from rune.records.messages import ConversationMessageRecord, ConversationRecord, Role
from rune.records.record import Record
from rune.store.event_store import Offset
from rune.store.hits import MessageHit
from rune.store.lineage import EVERYTHING, lineage
from rune.store.rows import at_most, read_record
from rune.text.folding import apart
from rune.text.snippets import Phrase, pattern_of, snippet

# `place` grows as messages are taken in, about as time does. The prefixes of one and two letters cost a third of
# the index: without them, words that begin with a common letter would take 200 ms to collect.
_DDL = """
CREATE TABLE searchable (
    place INTEGER PRIMARY KEY,
    message_id TEXT NOT NULL UNIQUE,
    conversation_id TEXT NOT NULL
);
CREATE VIRTUAL TABLE search USING fts5 (
    words, content = '', prefix = '1 2', tokenize = 'unicode61 remove_diacritics 0'
);
CREATE VIRTUAL TABLE search_terms USING fts5vocab (search, 'row');
CREATE VIEW searched AS SELECT message_id, conversation_id FROM searchable;
"""
_SPEAKERS: Final[frozenset[Role]] = frozenset({"user", "assistant", "tool"})
# Ranking looks at every word of a hit, and a common word has a hit in every other message: the newest are ranked.
RANKED: Final = 1000
# What is typed beyond this is not looked at: FTS5 takes seconds for an expression of a thousand words.
MOST_CHARACTERS: Final = 2000
MOST_PHRASES: Final = 64
_QUOTES: Final = '"\u201c\u201d\u201e\u201f'
_PART: Final = re.compile(f"[{_QUOTES}]([^{_QUOTES}]*)([{_QUOTES}]?)|([^\\s{_QUOTES}]+)")
# Of each conversation only so many; `many` counts all of it that were ranked.
_FIND: Final = """
SELECT place, nth, many FROM (
    SELECT place, score, count(*) OVER (PARTITION BY conversation) AS many,
        row_number() OVER (PARTITION BY conversation ORDER BY score, place DESC) AS nth
    FROM (
    SELECT searchable.place AS place, searchable.conversation_id AS conversation, bm25(search) AS score
    FROM search
    CROSS JOIN searchable ON searchable.place = search.rowid
    {parts}
    CROSS JOIN conversations ON conversations.id = searchable.conversation_id
    WHERE search MATCH ? AND conversations.record IS NOT NULL{conditions}
    ORDER BY search.rowid DESC LIMIT ?)
) WHERE nth <= ? ORDER BY score, place DESC LIMIT ?
"""
# What makes up a conversation: of each part everything, or up to a rank.
_PARTS: Final = """CROSS JOIN (VALUES {values}) AS part ON part.column1 = searchable.conversation_id AND (
        part.column2 = ? OR part.column2 >= (SELECT rank FROM messages WHERE id = searchable.message_id))"""
# Asked of every hit until there are enough: in a set of ids, not of each one's conversation.
_OF_FOLDER: Final = (
    " AND searchable.conversation_id IN (SELECT id FROM conversations WHERE folder = ? AND record IS NOT NULL)"
)
_HIT: Final = """
SELECT messages.record, conversations.record, conversations.title, conversations.hidden FROM searchable
JOIN messages ON messages.id = searchable.message_id
JOIN conversations ON conversations.id = searchable.conversation_id
WHERE searchable.place = ?
"""


class SearchViews:
    """The projection `search`: the words of every message."""

    name = "search"
    ddl = _DDL
    tables = ("searched", "search_terms")

    def apply(self, connection: apsw.Connection, offset: Offset, envelope: EventEnvelope, body: Record) -> None:
        """Take one event in (Projection.apply)."""
        if not isinstance(body, ConversationMessageRecord) or body.role not in _SPEAKERS:
            return  # nothing was said, or it was erased: nothing of it may stay
        connection.execute(
            "INSERT INTO searchable (message_id, conversation_id) VALUES (?,?) ON CONFLICT DO NOTHING",
            (body.id, body.conversation_id),
        )
        if connection.changes():
            place = connection.last_insert_rowid()
            connection.execute("INSERT INTO search (rowid, words) VALUES (?,?)", (place, apart(body.content)))


def phrases_of(text: str) -> list[Phrase]:
    """Return what has to occur: words, and words in quotes together. The last counts as begun, unless its quotes
    are closed.
    """
    found: dict[Phrase, None] = {}
    parts = list(islice(_PART.finditer(text[:MOST_CHARACTERS].replace("\0", " ")), MOST_PHRASES))
    for part in parts:
        quoted, closing, word = part.groups()
        begun = part is parts[-1] and not closing
        found[Phrase(word or quoted or "", begun)] = None
    return [phrase for phrase in found if phrase.text.strip()]


def expression_of(phrases: Sequence[Phrase]) -> str:
    """Return the phrases as FTS5 reads them; empty when there is nothing to look for."""
    # What UTF-8 cannot hold (half of a pair) stands in no message either.
    texts = [apart(phrase.text.encode("utf-8", "replace").decode()) for phrase in phrases]
    # A wide quotation mark is a plain one by now.
    return " ".join(
        f'"{text.replace(_QUOTES[0], " ")}"{"*" if phrase.begun else ""}'
        for text, phrase in zip(texts, phrases, strict=True)
    )


def find_messages(
    connection: apsw.Connection,
    text: str,
    *,
    folder: str | None = None,
    conversation_id: str | None = None,
    limit: int = 20,
    with_hidden: bool = True,
    of_each: int | None = None,
) -> list[MessageHit]:
    """Return the messages in which all of `text` occurs, best match first, newer first among equals.

    With `conversation_id` those of one conversation: of a fork also what it shares, as said in the other one. Of more
    than RANKED matches only the newest are ranked. `of_each`: so many of
    a conversation at most. None for text without a word in it.
    """
    phrases = phrases_of(text)
    expression = expression_of(phrases)
    if not expression:
        return []
    parts, conditions, values = "", "", list[str]()
    if conversation_id is not None:
        branches = lineage(connection, conversation_id)
        parts = _PARTS.format(values=",".join(["(?,?)"] * len(branches)))
        values += [*(value for branch in branches for value in branch), EVERYTHING]
    values.append(expression)
    if folder is not None:
        conditions += _OF_FOLDER
        values.append(folder)
    if not with_hidden:
        conditions += " AND conversations.hidden = 0"
    most = at_most(limit)
    statement = _FIND.format(parts=parts, conditions=conditions)
    ranked = max(RANKED, most)
    each = ranked if of_each is None else at_most(of_each)
    places = connection.execute(statement, (*values, ranked, each, most)).fetchall()
    pattern = pattern_of(phrases)
    return [_hit(connection, place, pattern, more=many - nth if nth == each else 0) for place, nth, many in places]


def _hit(connection: apsw.Connection, place: int, pattern: re.Pattern[str] | None, *, more: int) -> MessageHit:
    row = connection.execute(_HIT, (place,)).fetchone()
    if row is None:
        raise DamagedViewsError("a message that can be found is not among the messages")
    message = read_record(row[0], ConversationMessageRecord)
    conversation = read_record(row[1], ConversationRecord)
    shown = snippet(message.content, pattern)
    return MessageHit(
        conversation_id=conversation.id,
        message_id=message.id,
        ts=message.ts,
        role=message.role,
        title=str(row[2]),
        folder=conversation.folder,
        channel=conversation.channel,
        snippet=shown.text,
        marks=shown.marks,
        forked_from=conversation.forked_from,
        hidden=bool(row[3]),
        more=more,
    )
