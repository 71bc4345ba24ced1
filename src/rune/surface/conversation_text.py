"""A conversation in a list, laid out for a person."""

from typing import Final

from rune.surface.ages import age
from rune.surface.results import WIDTH
from rune.surface.rows import ConversationRow
from rune.surface.tool_text import WAITS
from rune.text.fitting import foreign

_AGE: Final = 11
_ID_CHARACTERS: Final = 6  # of the end of an id: its beginning is the time


def conversation_line(row: ConversationRow, now_ms: int, *, here: bool) -> str:
    """Return the end of the id, age, title and what else is to be known in one line of at most WIDTH cells, if that
    can be. Six letters are enough to name a conversation, and leave the room to its title.
    """
    head = f"{'*' if here else ' '} …{row.id[-_ID_CHARACTERS:]}  {age(row.last_active, now_ms):<{_AGE}}  "
    title, more = row.title or "(empty)", marks(row) + held(row)
    room = max(WIDTH - len(head) - len(more), 1)
    return f"{head}{foreign(title, room)}{more}"


def messages(row: ConversationRow) -> str:
    """Return how many messages it has."""
    return "1 message" if row.messages == 1 else f"{row.messages:,} messages"


def held(row: ConversationRow) -> str:
    """Return who else has it open, "" when nobody has."""
    if row.held_by is None:
        return ""
    return f" (open in process {row.held_by})" if row.held_by else " (open elsewhere)"


def waits(row: ConversationRow) -> str:
    """Return that a question in it waits for the person, "" where none does."""
    return f" ({WAITS})" if row.waits else ""


def marks(row: ConversationRow) -> str:
    """Return that a question in it waits, what it was branched off, and that it is hidden; "" for most."""
    fork = f" (fork of …{row.forked_from[-_ID_CHARACTERS:]})" if row.forked_from is not None else ""
    return waits(row) + fork + (" (hidden)" if row.hidden else "")
