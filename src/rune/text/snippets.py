"""The part of a text in which what was looked for stands, on one line, and where in it."""

import itertools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from rune.text.folding import SPREAD, alike, places

SNIPPET_CHARACTERS: Final = 160
_BEFORE: Final = 40
# Where a word would be cut, the snippet begins at the next one, when that is not far.
_WORD: Final = 20
_WINDOW: Final = 4096
# A match runs over the end of a window by less than this.
_OVERLAP: Final = 512
# Further in, a match is not looked for: the text is shown from its beginning.
_SEARCHED: Final = 256 * 1024
_MARK: Final = "\u2026"
_TOKEN: Final = re.compile(f"[{SPREAD}]|(?:(?![{SPREAD}])[^\\W_])+")
_STARTS: Final = f"(?:(?<![^\\W_])|(?<=[{SPREAD}]))"
_ENDS: Final = f"(?:(?![^\\W_])|(?=[{SPREAD}]))"


class Phrase(NamedTuple):
    """Words that follow each other; with `begun`, the last of them is the beginning of one."""

    text: str
    begun: bool


class Snippet(NamedTuple):
    """One line of at most SNIPPET_CHARACTERS, and the spans of characters in it that match."""

    text: str
    marks: tuple[tuple[int, int], ...]


def pattern_of(phrases: Sequence[Phrase]) -> re.Pattern[str] | None:
    """Return what finds any of the phrases in text made `alike`; None when they hold no word."""
    found = [each for phrase in phrases if (each := _pattern(phrase))]
    return re.compile("|".join(found)) if found else None


def snippet(text: str, pattern: re.Pattern[str] | None) -> Snippet:
    """Return the surroundings of the first match, or the beginning of the text when there is none."""
    whole = unicodedata.normalize("NFC", text[: _SEARCHED + _WINDOW])
    first = 0 if pattern is None else _first(whole, pattern)
    shown = _line(whole, first)
    if pattern is None:
        return Snippet(shown, ())
    origin = places(shown)
    return Snippet(shown, tuple((origin[start], origin[end]) for start, end in _spans(alike(shown), pattern)))


def _pattern(phrase: Phrase) -> str:
    tokens = [found[0] for found in _TOKEN.finditer(alike(unicodedata.normalize("NFKC", phrase.text)))]
    if not tokens:
        return ""
    pieces = [_STARTS, re.escape(tokens[0])]
    for before, token in itertools.pairwise(tokens):
        # Two words have something between them; characters that are taken apart need not.
        between = "*" if _is_spread(before) or _is_spread(token) else "+"
        pieces.append(f"[\\W_]{between}{re.escape(token)}")
    return "".join(pieces) + ("" if phrase.begun else _ENDS)


def _is_spread(token: str) -> bool:
    return len(token) == 1 and re.match(f"[{SPREAD}]", token) is not None


def _first(text: str, pattern: re.Pattern[str]) -> int:
    for start in range(0, min(len(text), _SEARCHED), _WINDOW - _OVERLAP):
        window = text[start : start + _WINDOW]
        if found := pattern.search(alike(window)):
            return start + places(window)[found.start()]
    return 0


def _spans(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    return (found.span() for found in pattern.finditer(text))


def _line(text: str, first: int) -> str:
    """Return the line around a place: blanks are one blank each, and what was left out shows as an ellipsis."""
    start = max(0, first - _BEFORE)
    if start:
        blank = re.search(r"\s", text[start : min(start + _WORD, first)])
        start += blank.end() if blank else 0
    # Blanks may be many: four times as much is looked at, and what is still there is cut.
    piece = text[start : start + 4 * SNIPPET_CHARACTERS]
    rest = start + len(piece) < len(text)
    words = " ".join(piece.split())
    shown = (_MARK if start else "") + words
    if len(shown) > SNIPPET_CHARACTERS or rest:
        shown = shown[: SNIPPET_CHARACTERS - 1].rstrip() + _MARK
    return shown
