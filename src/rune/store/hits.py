"""What a search gives. A module of its own: a screen draws it and loads nothing of the search."""

import msgspec

from rune.records.messages import Channel, Role


class MessageHit(msgspec.Struct, frozen=True, kw_only=True):
    """A message in which everything that was looked for stands, and what is known of its conversation.

    `snippet` is one line of at most 160 characters around the first match, as it was said: foreign text; `marks` are
    the spans of characters in it that match, in order. `title` is today's. `forked_from` and `hidden` speak of the
    conversation; `more` stands at the last one of it where only some of each were wanted: how many others were ranked.
    """

    conversation_id: str
    message_id: str
    ts: str
    role: Role
    title: str
    folder: str
    channel: Channel
    snippet: str
    marks: tuple[tuple[int, int], ...]
    forked_from: str | None = None
    hidden: bool = False
    more: int = 0
