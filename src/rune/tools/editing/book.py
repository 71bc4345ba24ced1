"""A text as lines in the forms in which they are looked for; each form is made once, when it is first asked for."""

import re
import unicodedata
from bisect import bisect_right
from collections import Counter, defaultdict
from functools import cached_property
from itertools import pairwise
from typing import Final

PLAIN: Final[dict[int, str]] = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"),
        **dict.fromkeys("\u00a0\u2002\u2003\u2007\u2009\u202f\u3000", " "),
        **dict.fromkeys("\u200b\u2060\ufeff", ""),
        "\u2026": "...",
    }
)
"""Characters that are written for plainer ones when a text is copied."""

UNITS: Final = (2, 3, 4, 8)
_WORD: Final = re.compile(r"\w+")
_READ_OF_LINE: Final = 300
_INDENT: Final = re.compile(r"[ \t]*")


def key(line: str) -> str:
    """Return what a line says without how it is set: indentation, runs of blanks, quotes, form of its accents."""
    if not line.isascii():
        line = unicodedata.normalize("NFC", line).translate(PLAIN)
    return " ".join(line.split())


def indent_of(line: str) -> str:
    """Return the blanks and tabs at the beginning of a line."""
    found = _INDENT.match(line)
    return found.group() if found else ""


class Book:
    """The lines of a text (LF ends). "Solid" lines are those that are not blank, counted on their own."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def lines(self) -> list[str]:
        """Each line without its end; the last is empty when the text ends with a line end."""
        return self.text.split("\n")

    @cached_property
    def starts(self) -> list[int]:
        """Where each line starts, and behind the last where one more would."""
        starts = [0]
        for line in self.lines:
            starts.append(starts[-1] + len(line) + 1)
        return starts

    def line_of(self, place: int) -> int:
        """Return the number of the line (from 0) in which a place lies."""
        return min(bisect_right(self.starts, place) - 1, len(self.lines) - 1)

    @cached_property
    def solid(self) -> list[int]:
        """The lines that are not blank."""
        return [number for number, line in enumerate(self.lines) if line and not line.isspace()]

    @cached_property
    def keys(self) -> list[str]:
        """The key of each solid line."""
        lines = self.lines
        return [key(lines[number]) for number in self.solid]

    @cached_property
    def where(self) -> dict[str, list[int]]:
        """At which solid lines a key stands."""
        where: defaultdict[str, list[int]] = defaultdict(list)
        for place, found in enumerate(self.keys):
            where[found].append(place)
        return dict(where)

    @cached_property
    def depths(self) -> list[int]:
        """How far each solid line is indented, a tab up to the next multiple of 8."""
        lines = self.lines
        return [len(indent_of(lines[number]).expandtabs()) for number in self.solid]

    @cached_property
    def indents_with_tabs(self) -> bool:
        """Whether more lines begin with a tab than with two blanks."""
        tabs = sum(line.startswith("\t") for line in self.lines)
        return tabs > sum(line.startswith("  ") for line in self.lines)

    @cached_property
    def unit(self) -> int | None:
        """By how many blanks a line is usually indented further than the one before; None when none is."""
        steps = Counter(after - before for before, after in pairwise(self.depths) if after - before in UNITS)
        return steps.most_common(1)[0][0] if steps else None

    @cached_property
    def words(self) -> dict[str, list[int]]:
        """On which lines a word stands, in small letters; of a very long line only its beginning is read."""
        words: defaultdict[str, list[int]] = defaultdict(list)
        for number, line in enumerate(self.lines):
            for word in set(_WORD.findall(line[:_READ_OF_LINE].lower())):
                words[word].append(number)
        return dict(words)

    def runs(self, keys: list[str], most: int) -> list[int]:
        """Return the first solid line of each run with these keys, `most` at most. Looks where the rarest stands."""
        if not keys:
            return []
        offset = min(range(len(keys)), key=lambda place: len(self.where.get(keys[place], ())))
        found: list[int] = []
        for place in self.where.get(keys[offset], ()):
            first = place - offset
            if first >= 0 and self.keys[first : first + len(keys)] == keys:
                found.append(first)
                if len(found) == most:
                    break
        return found
