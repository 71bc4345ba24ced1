"""The replacement as the file would have it: what the model did not change keeps the file's form, and what it did
change gets the file's indentation.

A search that was found in spite of differences says how the model writes what the file says. Lines that stand in the
search and in the replacement are therefore taken from the file, and for others the differences are translated.
"""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from typing import Final

from rune.tools.editing.book import PLAIN, Book, indent_of, key
from rune.tools.editing.indents import indenter

_TOKEN: Final = re.compile(r"\w+|\s+|.", re.DOTALL)
_MOST_COMPARED: Final = 250_000  # lines of the search times lines of the replacement
_MOST_TOKENS: Final = 400

_WIDE: Final = re.compile(r"(?<=[^ \t\n])[ \t]{2,}(?=[^ \t\n])")  # inside a line
_BLANKS: Final = re.compile(r" {2,}")


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a replacement cannot be put in with certainty."""

    why: str


@dataclass(frozen=True, slots=True)
class Block:
    """Lines that are not blank, with the blank lines round them: `gaps[i]` stand before line i, `tail` at the end.
    `gaps[0]` are those at the beginning; `ended` says that the last line has its end.
    """

    solid: list[str]
    gaps: list[int]
    tail: int
    ended: bool


def block(text: str) -> Block:
    """Return text as a block."""
    lines = text.split("\n")
    ended = len(lines) > 1 and not lines[-1].strip(" \t")
    if ended:
        lines.pop()
    solid: list[str] = []
    gaps: list[int] = []
    blank = 0
    for line in lines:
        if line.strip():
            solid.append(line)
            gaps.append(blank)
            blank = 0
        else:
            blank += 1
    return Block(solid, gaps, blank if solid else 0, ended)


@dataclass(frozen=True, slots=True)
class Merged:
    """The lines for the file; `reindented` when their indentation was changed."""

    lines: list[str]
    reindented: bool


def merge(book: Book, first: int, search: Block, replace: Block) -> Merged | Doubt:
    """Return what stands in place of the solid lines from `first` on, which are those of `search`."""
    if len(search.solid) * len(replace.solid) > _MOST_COMPARED:
        return Doubt("it is too long to be matched in spite of differences")
    if not replace.solid:
        return Merged([], reindented=False)
    return _Merge(book, first, search, replace).merged()


class _Merge:
    def __init__(self, book: Book, first: int, search: Block, replace: Block) -> None:
        self._book = book
        self._search = search
        self._replace = replace
        self._numbers = book.solid[first : first + len(search.solid)]
        self._theirs = [book.lines[number] for number in self._numbers]
        self._pair, self._equal = _paired(search.solid, replace.solid)
        self._styled = styled("\n".join(search.solid), "\n".join(self._theirs))
        pairs = [(indent_of(mine), indent_of(theirs)) for mine, theirs in zip(search.solid, self._theirs, strict=True)]
        self._indent = indenter(pairs, [indent_of(line) for line in replace.solid], book)
        self._ends_in_blanks = any(theirs != theirs.rstrip() for theirs in self._theirs)
        self._blanks_lost = any(
            mine != mine.rstrip() and mine[len(mine.rstrip()) :] != theirs[len(theirs.rstrip()) :]
            for mine, theirs in zip(search.solid, self._theirs, strict=True)
        )

    @cached_property
    def _blanks_differ(self) -> bool:
        """Whether the file has wide blanks inside its lines, and others than the search."""
        pairs = [(line.strip(), theirs.strip()) for line, theirs in zip(self._search.solid, self._theirs, strict=True)]
        return any(_WIDE.search(theirs) for _, theirs in pairs) and any(
            _WIDE.findall(mine) != _WIDE.findall(theirs) for mine, theirs in pairs
        )

    def merged(self) -> Merged | Doubt:
        lines: list[str] = []
        kept_gaps: set[int] = set()
        reindented = False
        for place, line in enumerate(self._replace.solid):
            if place:
                gap, of = self._gap(place)
                lines += gap
                kept_gaps.add(of)
            found = self._line(place)
            if isinstance(found, Doubt):
                return found
            reindented = reindented or indent_of(found) != indent_of(line)
            lines.append(found)
        return self._unsaid_gap(kept_gaps) or Merged(lines, reindented)

    def _line(self, place: int) -> str | Doubt:
        line = self._replace.solid[place]
        pair = self._pair.get(place)
        written = indent_of(line)
        if pair is not None and written == indent_of(self._search.solid[pair]):
            indent: str | None = indent_of(self._theirs[pair])
        else:
            indent = self._indent(written)
        if indent is None:
            return Doubt(f"how far to indent {line.strip()[:60]!r} cannot be told")
        if pair is not None and place in self._equal:
            return indent + self._theirs[pair][len(indent_of(self._theirs[pair])) :]
        body = line[len(written) :].rstrip()
        end = "" if self._blanks_lost else line[len(written) + len(body) :]
        if pair is not None:
            theirs, mine = self._theirs[pair], self._search.solid[pair]
            if self._blanks_lost or not (end or mine != mine.rstrip()):
                end = theirs[len(theirs.rstrip()) :]
            return indent + in_their_words(theirs.strip(), mine.strip(), body, self._styled) + end
        if self._blanks_lost and self._ends_in_blanks:
            return Doubt(f"whether {body[:60]!r} shall end in blanks as other lines there cannot be told")
        if self._blanks_differ and _WIDE.search(body):
            return Doubt(f"how wide the blanks in {body[:60]!r} shall be cannot be told")
        return indent + self._styled(body) + end

    def _gap(self, place: int) -> tuple[list[str], int]:
        """Return the blank lines before a line of the replacement, and which gap of the search they are."""
        before, after = self._pair.get(place - 1), self._pair.get(place)
        mine = self._replace.gaps[place]
        if before is None or after is None or after != before + 1:
            return [""] * mine, 0
        if mine != self._search.gaps[after]:
            return [""] * mine, after
        return self._book.lines[self._numbers[before] + 1 : self._numbers[after]], after

    def _unsaid_gap(self, kept: set[int]) -> Doubt | None:
        """Blank lines that the search has otherwise than the file, where the replacement changes what is round them."""
        for after in range(1, len(self._numbers)):
            theirs = self._numbers[after] - self._numbers[after - 1] - 1
            if theirs != self._search.gaps[after] and after not in kept:
                return Doubt("the search has other blank lines than the file just where the replacement changes it")
        return None


def _paired(search: list[str], replace: list[str]) -> tuple[dict[int, int], set[int]]:
    """Return which line of the search each line of the replacement was made of, and which of them are the same."""
    pair: dict[int, int] = {}
    equal: set[int] = set()
    keys = [key(line) for line in search], [key(line) for line in replace]
    matcher = SequenceMatcher(None, *keys, autojunk=False)
    for tag, i, i_end, j, j_end in matcher.get_opcodes():
        if tag == "equal" or (tag == "replace" and i_end - i == j_end - j):
            pair.update(zip(range(j, j_end), range(i, i_end), strict=True))
        if tag == "equal":
            equal.update(range(j, j_end))
    return pair, equal


def in_their_words(theirs: str, mine: str, new: str, style: Callable[[str], str]) -> str:
    """Return a changed line in which what was not changed is as in the file. `mine` and `theirs` have one key."""
    if theirs == mine:
        return style(new)
    file_tokens, my_tokens, new_tokens = (_TOKEN.findall(text) for text in (theirs, mine, new))
    if len(file_tokens) != len(my_tokens) or max(len(my_tokens), len(new_tokens)) > _MOST_TOKENS:
        return style(new)
    words: list[str] = []
    matcher = SequenceMatcher(None, my_tokens, new_tokens, autojunk=False)
    for tag, i, i_end, j, j_end in matcher.get_opcodes():
        words += file_tokens[i:i_end] if tag == "equal" else [style(token) for token in new_tokens[j:j_end]]
    return "".join(words)


def _narrowed(text: str) -> str:
    return _BLANKS.sub(" ", text)


def styled(mine: str, theirs: str) -> Callable[[str], str]:
    """Return what writes the model's text as the file is written: plain quotes for curly ones that the file has not,
    and accents composed or not as they are there.
    """
    narrow = _WIDE.search(mine.strip()) is not None and not _WIDE.search(theirs.strip())
    if mine.isascii() and theirs.isascii():
        return _narrowed if narrow else str
    plain = {ord(one): PLAIN[ord(one)] for one in set(mine) if ord(one) in PLAIN and one not in theirs}
    forms = unicodedata.is_normalized("NFC", theirs), unicodedata.is_normalized("NFD", theirs)
    form = {(False, True): "NFD", (True, False): "NFC"}.get(forms)

    def style(text: str) -> str:
        text = text.translate(plain)
        if narrow:
            text = _narrowed(text)
        if form == "NFD":
            return unicodedata.normalize("NFD", text)
        return unicodedata.normalize("NFC", text) if form == "NFC" else text

    return style
