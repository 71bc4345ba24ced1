"""What a search found, laid out for a person."""

from collections.abc import Sequence

from rune.surface.ages import age
from rune.surface.results import WIDTH
from rune.surface.rows import FoundMessage


def found_text(found: Sequence[FoundMessage], now_ms: int) -> str:
    """Return two lines a message: where and when it was said, and the words around the match. "" for none."""
    return "\n".join(line for each in found for line in (_where(each, now_ms), f"    {_cut(each.snippet, WIDTH - 4)}"))


def _where(found: FoundMessage, now_ms: int) -> str:
    who = "you" if found.role == "user" else "rune" if found.role == "assistant" else found.role
    head = f"{found.conversation_id}  {age(found.ts, now_ms)}  {who}  "
    return head + _cut(found.title or "(empty)", WIDTH - len(head))


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: max(room - 1, 0)].rstrip()}…"
