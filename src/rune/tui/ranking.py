"""Which rows of a list a few typed letters mean, the likeliest first.

Takes time in proportion to the texts, whatever stands in them: a search that weighs every way in which the
letters could lie takes hours over a name made for that.
"""

from collections.abc import Sequence

# The better the kind of match, the smaller; within a kind the earlier and the closer together.
_Score = tuple[int, int]
_START, _WORD, _INSIDE, _APART = range(4)
_LONGEST = 500


def ranked(query: str, texts: Sequence[str]) -> list[int]:
    """Return the positions of the texts that every word of `query` is found in, best first; all for an empty one.

    Case does not count. The letters of a word may lie apart, in order. Equal matches stay in their order.
    """
    words = query.casefold().split()
    if not words:
        return list(range(len(texts)))
    found: list[tuple[_Score, int]] = []
    for position, text in enumerate(texts):
        scores = [_score(word, text[:_LONGEST].casefold()) for word in words]
        known = [score for score in scores if score is not None]
        if len(known) == len(words):
            found.append((max(known), position))
    return [position for _, position in sorted(found)]


def _score(word: str, text: str) -> _Score | None:
    at = text.find(word)
    if at == 0:
        return _START, len(text)
    while at > 0:
        if not text[at - 1].isalnum():
            return _WORD, at
        at = text.find(word, at + 1)
    if (inside := text.find(word)) > 0:
        return _INSIDE, inside
    return _scattered(word, text)


def _scattered(word: str, text: str) -> _Score | None:
    """Find the letters in order: up to where the last one lies first, then back from there to be close together."""
    at = -1
    for letter in word:
        at = text.find(letter, at + 1)
        if at < 0:
            return None
    end = at
    at += 1
    for letter in reversed(word):
        at = text.rfind(letter, 0, at)
    return _APART, end - at
