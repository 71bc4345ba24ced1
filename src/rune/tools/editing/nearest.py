"""The lines of a text that are most like a search that was not found, at a cost that is bounded."""

import re
from collections import Counter
from difflib import SequenceMatcher
from typing import Final

from rune.tools.editing.book import Book, key

_WORD: Final = re.compile(r"\w+")
_MOST_WORDS: Final = 60  # of the search that are looked up
_MOST_COMPARED: Final = 40  # lines that are compared character by character
_MOST_CHARACTERS: Final = 300
_ALIKE: Final = 0.55


def nearest(book: Book, search: str, most: int = 3) -> list[tuple[int, str]]:
    """Return number (from 0) and text of up to `most` lines of the text, the most alike first.

    Each line of the search that says something is compared with the lines that share words with it.
    """
    wanted = sorted({key(line)[:_MOST_CHARACTERS] for line in search.split("\n") if line.strip()}, key=len)[-8:]
    scored: dict[int, float] = {}
    for line in wanted:
        for number in _sharing(book, line):
            text = key(book.lines[number])[:_MOST_CHARACTERS]
            score = SequenceMatcher(None, line, text, autojunk=False).ratio()
            if score >= _ALIKE:
                scored[number] = max(score, scored.get(number, 0.0))
    best = sorted(scored, key=lambda number: (-scored[number], number))[:most]
    return [(number, book.lines[number]) for number in best]


def _sharing(book: Book, line: str) -> list[int]:
    """Return the lines that share the most words with this one, rare words counting more."""
    shared: Counter[int] = Counter()
    for word in sorted(set(_WORD.findall(line.lower())), key=len, reverse=True)[:_MOST_WORDS]:
        lines = book.words.get(word, ())
        if len(lines) <= max(200, len(book.lines) // 50):
            for number in lines:
                shared[number] += 1 + len(word) // 4
    return [number for number, _ in shared.most_common(_MOST_COMPARED)]
