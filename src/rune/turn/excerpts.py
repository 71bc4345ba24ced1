"""How much of a tool's text a model is given: what its window has room for, head and tail, and how to get the rest."""

from collections.abc import Callable
from typing import Final

_LEAST: Final = 400
_MOST: Final = 10_000
_HEAD: Final = 0.6
_SHORT_ID: Final = 12
# No text has so many characters a token that more need to be looked at.
_CHARACTERS_A_TOKEN: Final = 8
_SMALLER: Final = 0.8

Estimate = Callable[[str], int]


def room_for(window: int) -> int:
    """Return how many tokens of one result a model with such a window is given: a quarter of it, within bounds."""
    return min(max(window // 4, _LEAST), _MOST)


def fits(text: str, room: int, estimate: Estimate) -> bool:
    """Say whether a text has at most so many tokens."""
    return len(text) <= room * _CHARACTERS_A_TOKEN and estimate(text) <= room


def short_id(evidence: str) -> str:
    """Return how a model is told an artifact: the first 12 digits of its hash."""
    return evidence.removeprefix("sha256:")[:_SHORT_ID]


def excerpt(text: str, room: int, estimate: Estimate, evidence: str) -> str:
    """Return the beginning and the end of a text in at most about `room` tokens, cut at line ends where there are some,
    and between a line that says what is left out and how it is read. `evidence` is the id under which all is kept.
    """
    characters = min(room * _CHARACTERS_A_TOKEN, len(text))
    while characters > _LEAST and estimate(_parts(text, characters, evidence)) > room:
        characters = round(characters * _SMALLER)
    return _parts(text, characters, evidence)


def _parts(text: str, characters: int, evidence: str) -> str:
    front = round(characters * _HEAD)
    head, tail = _to_line_end(text[:front]), _from_line_start(text[len(text) - (characters - front) :])
    left = text[len(head) : len(text) - len(tail)]
    size = f"{left.count(chr(10)) + 1:,} lines, {len(left):,} characters"
    note = f"[... left out: {size}; read_artifact {short_id(evidence)} shows them ...]"
    return f"{head.rstrip()}\n{note}\n{tail.lstrip()}" if head.strip() else f"{note}\n{tail}"


def _to_line_end(text: str) -> str:
    end = text.rfind("\n")
    return text[: end + 1] if end > len(text) // 2 else text


def _from_line_start(text: str) -> str:
    start = text.find("\n")
    return text[start + 1 :] if 0 <= start < len(text) // 2 else text
