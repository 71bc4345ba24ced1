"""Token counts without a tokenizer: deterministic, offline, and not too low (context.md, Token estimate).

A count that is too low makes a server cut the prompt in silence, so the weights below are fitted
against the *worst* tokenizer of each profile and an undercount weighs forty times an overcount. How
they were fitted and what they reach on text they have not seen: docs/decisions/token-estimate.md.

One pass of one pattern cuts the text into pieces; each piece costs by its class and length. The sum
never exceeds the bytes of the text plus one, which no byte-level tokenizer can pass: each token is
at least one byte, and some put a mark before the first.
"""

import operator
import re
from collections.abc import Iterator
from typing import Literal

Profile = Literal["large", "small"]
"""`large`: a vocabulary of more than 100,000 tokens. `small`: fewer, or unknown."""

MESSAGE_OVERHEAD = 8
"""Tokens that a chat template adds to each message: marks round it, role and line ends. ChatML, Llama 3,
Gemma and Mistral add 3 to 6; the rest is for a template not known here."""

# In this order, which is also the order of frequency but for `blob`. A run costs by its length, so that appending
# never makes a text cheaper. A space before a word is part of the word's token.
_KINDS = {
    "blob": r"(?=[A-Za-z+/]{0,40}[0-9])[A-Za-z0-9+/]{20,}",
    "word": r" ?[A-Z]?[a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff]+",
    "capitals": r" ?[A-Z]+",
    "mark": r"[!-/:-@\[-`{-~]+",
    "spaces": r"[ \t\f\v]{2,}|\t",
    "lines": r"[\r\n]+",
    "digit": r"[0-9]+",
    "space": r" ",
    "cyrillic": r"[\u0400-\u052f]+",
    "cjk": r"[\u3400-\u4dbf\u4e00-\u9fff]+",
    "kana": r"[\u3040-\u30ff]+",
    "hangul": r"[\uac00-\ud7a3]+",
    "arabic": r"[\u0600-\u07ff\u08a0-\u08ff]+",
    "indic": r"[\u0900-\u0dff]+",
    "thai": r"[\u0e00-\u0e7f]+",
    "greek": r"[\u0370-\u03ff]+",
    "hebrew": r"[\u0590-\u05ff]+",
    "box": r"[\u2500-\u259f]+",
    "wide": r"[\u3000-\u303f\uff00-\uffef]+",
    "typographic": r"[\u00a0-\u00bf\u2010-\u2027]+",
    "symbol": r"[\u2030-\u24ff\u25a0-\u2bff]+",
    "joiner": r"[\u200d\ufe0f]+",
    "emoji": r"[\U0001f000-\U0001faff]+",
    "two_bytes": r"[\u0080-\u07ff]+",
    "three_bytes": r"[\u0800-\uffff]+",
    "four_bytes": r"[\U00010000-\U0010ffff]+",
    "control": r"[\x00-\x1f\x7f]",
}
_PIECES = re.compile("|".join(_KINDS.values()))
_KIND = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _KINDS.items()))

# Hundredths of a token; written by benchmarks/fit_tokens.py. `letter` counts from the sixth of a word on, `foreign`
# each letter outside ASCII in one; `*_again` each repetition of the same character; the last ones each character.
WEIGHTS: dict[Profile, dict[str, int]] = {
    "large": {
        "blob": 120, "word": 100, "letter": 45, "foreign": 160, "capital": 100, "capital_again": 50, "digit": 120,
        "lines": 60, "lines_again": 5, "spaces": 150, "spaces_again": 4, "space": 75, "mark": 65, "mark_next": 50,
        "mark_again": 25, "box": 60, "box_next": 60, "box_again": 60, "cyrillic": 45, "greek": 95, "hebrew": 105,
        "arabic": 50, "thai": 60, "indic": 155, "cjk": 90, "kana": 60, "hangul": 65, "wide": 200, "typographic": 60,
        "symbol": 100, "joiner": 300, "emoji": 310, "two_bytes": 200, "three_bytes": 300, "four_bytes": 400,
        "control": 100,
    },
    "small": {
        "blob": 115, "word": 110, "letter": 60, "foreign": 420, "capital": 110, "capital_again": 60, "digit": 115,
        "lines": 75, "lines_again": 5, "spaces": 120, "spaces_again": 6, "space": 110, "mark": 80, "mark_next": 35,
        "mark_again": 10, "box": 145, "box_next": 145, "box_again": 45, "cyrillic": 85, "greek": 105, "hebrew": 115,
        "arabic": 105, "thai": 195, "indic": 205, "cjk": 190, "kana": 175, "hangul": 260, "wide": 200,
        "typographic": 60, "symbol": 100, "joiner": 100, "emoji": 290, "two_bytes": 200, "three_bytes": 300,
        "four_bytes": 400, "control": 100,
    },
}  # fmt: skip

_WORD_LETTERS = 5


def estimate(text: str, profile: Profile = "small") -> int:
    """Return how many tokens `text` is at most likely to be, 0 for the empty text.

    Measure whole blocks as they are sent: the sum over pieces is a little higher than the whole.
    Appending to a text never lowers it. Lone surrogates count as three bytes. Never raises.
    """
    if not text:
        return 0
    hundredths = sum(map(_COSTS[profile].__getitem__, _PIECES.findall(text)))
    return min(-(-hundredths // 100), len(text.encode("utf-8", "surrogatepass")) + 1)


def features(text: str) -> dict[str, int]:
    """Return how often each class of `WEIGHTS` occurs in `text`: what a fit works with."""
    counts = dict.fromkeys(WEIGHTS["small"], 0)
    for piece in _PIECES.findall(text):
        for name, amount in _features(piece):
            counts[name] += amount
    return counts


def _features(piece: str) -> Iterator[tuple[str, int]]:
    match = _KIND.match(piece)
    kind = str(match.lastgroup) if match else "control"
    length = len(piece)
    again = sum(map(operator.eq, piece, piece[1:]))
    if kind == "word":
        yield "word", 1
        yield "letter", max(0, len(piece.lstrip()) - _WORD_LETTERS)
        yield "foreign", sum(char > "\x7f" for char in piece)
    elif kind == "capitals":
        yield "capital", 1
        yield "capital_again", len(piece.lstrip()) - 1
    elif kind in ("mark", "box"):
        yield kind, 1
        yield f"{kind}_next", length - 1 - again
        yield f"{kind}_again", again
    elif kind in ("lines", "spaces"):
        yield kind, 1
        yield f"{kind}_again", length - 1
    else:
        yield kind, length


class _Costs(dict[str, int]):
    """What a piece costs, in hundredths, worked out once for each short one: texts repeat themselves."""

    _MOST = 20_000
    _LONGEST = 24

    def __init__(self, weights: dict[str, int]) -> None:
        super().__init__()
        self._weights = weights

    def __missing__(self, piece: str) -> int:
        cost = sum(self._weights[name] * amount for name, amount in _features(piece))
        if len(piece) <= self._LONGEST and len(self) < self._MOST:
            self[piece] = cost
        return cost


_COSTS: dict[Profile, _Costs] = {profile: _Costs(weights) for profile, weights in WEIGHTS.items()}
