"""What a search found, laid out for a person."""

from collections.abc import Sequence
from typing import Final

from rune.surface.ages import age
from rune.surface.results import WIDTH
from rune.surface.rows import MessageHit
from rune.text.fitting import foreign

# What often occurs often occurs in one conversation: so many of each leave room for the others.
OF_EACH: Final = 3
_INDENT: Final = "    "


def found_text(found: Sequence[MessageHit], now_ms: int) -> str:
    """Return two lines a message: where and when it was said, and the words around the match; a third where more of
    the conversation was found than is given. Each has at most WIDTH cells, if that can be. "" for none.
    """
    return "\n".join(line for each in found for line in _lines(each, now_ms))


def speaker(found: MessageHit) -> str:
    """Return who said it, in a word."""
    return "you" if found.role == "user" else "rune" if found.role == "assistant" else found.role


def more_words(found: MessageHit) -> str:
    """Return how much more of its conversation was found; "" where that is nothing."""
    return f"and {found.more:,} more in this conversation" if found.more else ""


def _lines(found: MessageHit, now_ms: int) -> list[str]:
    head = f"{found.conversation_id}  {age(found.ts, now_ms)}  {speaker(found)}  "
    tail = " (fork)" * (found.forked_from is not None) + " (hidden)" * found.hidden
    title = foreign(found.title or "(empty)", max(WIDTH - len(head) - len(tail), 1))
    lines = [f"{head}{title}{tail}", _INDENT + foreign(found.snippet, WIDTH - len(_INDENT))]
    return [*lines, _INDENT + more_words(found)] if found.more else lines
