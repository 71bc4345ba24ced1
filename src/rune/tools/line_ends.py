"""Line ends, kept line by line: a text is edited with LF alone, and each end that was not edited stays as it was."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from rune.tools.same_lines import Run, same_lines

LineEnds = Literal["none", "lf", "crlf", "cr", "mixed"]

_END: Final = re.compile(r"\r\n?|\n")
_NAMES: Final[dict[str, LineEnds]] = {"\n": "lf", "\r\n": "crlf", "\r": "cr"}


@dataclass(frozen=True, slots=True)
class Change:
    """Characters `start` to `end` of a text with LF ends become `text`. `start == end` puts something in."""

    start: int
    end: int
    text: str


def with_lf(raw: str) -> str:
    """Return the text with LF as its only line end."""
    return _END.sub("\n", raw) if "\r" in raw else raw


def line_ends(raw: str) -> LineEnds:
    """Return which line ends a text has."""
    if "\r" not in raw:
        return "lf" if "\n" in raw else "none"
    kinds = set(_END.findall(raw))
    return _NAMES[kinds.pop()] if len(kinds) == 1 else "mixed"


def changed(text: str, changes: Sequence[Change]) -> str:
    """Return the text with changes that do not overlap applied, each counted in the text as it is given.

    Raises ValueError when they overlap or lie outside.
    """
    pieces: list[str] = []
    at = 0
    for change in _in_order(changes, len(text)):
        pieces += (text[at : change.start], change.text)
        at = change.end
    return "".join((*pieces, text[at:]))


def changed_keeping_ends(raw: str, changes: Sequence[Change]) -> str:
    """Return `raw` with changes that are counted in `with_lf(raw)`; what they do not touch stays as it is.

    A line that is put in ends as the lines of its file do; where these differ, as the line before it does.
    Raises ValueError when changes overlap or lie outside.
    """
    changes = [Change(change.start, change.end, with_lf(change.text)) for change in changes]
    if "\r" not in raw:
        return changed(raw, changes)
    book = _Ends(raw)
    joined = _Joined()
    at = 0
    for change in _in_order(changes, book.length):
        joined.add(raw[at : book.raw(change.start)])
        for line in book.ended(change):
            joined.add(line)
        at = book.raw(change.end)
    joined.add(raw[at:])
    return "".join(joined.pieces)


def _in_order(changes: Sequence[Change], length: int) -> list[Change]:
    ordered = sorted(changes, key=lambda change: (change.start, change.end))
    at = 0
    for change in ordered:
        if not at <= change.start <= change.end <= length:
            raise ValueError(f"changes overlap or lie outside: {change.start} to {change.end}, after {at} of {length}")
        at = change.end
    return ordered


class _Joined:
    """Pieces of a text behind one another. CR and LF that meet only now would become one end, so LF is then
    written as CRLF.
    """

    def __init__(self) -> None:
        self.pieces: list[str] = []

    def add(self, piece: str) -> None:
        if not piece:
            return
        if piece[0] == "\n" and self.pieces and self.pieces[-1][-1] == "\r":
            piece = f"\r{piece}"
        self.pieces.append(piece)


class _Ends:
    """Where the ends of a raw text are, in it and in its form with LF."""

    def __init__(self, raw: str) -> None:
        self._text = with_lf(raw)
        self._ends: list[str] = []
        self._at: list[int] = []  # in the text with LF
        self._behind: list[int] = []  # in the raw text
        longer = 0
        for end in _END.finditer(raw):
            self._ends.append(end.group())
            self._at.append(end.start() - longer)
            self._behind.append(end.end())
            longer += len(end.group()) - 1
        self.length = len(self._text)
        self._usual = max(sorted(set(self._ends)), key=self._ends.count)
        self._alike = len(set(self._ends)) == 1

    def raw(self, place: int) -> int:
        """Return the place in the raw text."""
        before = bisect_left(self._at, place)
        return place if not before else place - self._at[before - 1] - 1 + self._behind[before - 1]

    def ended(self, change: Change) -> list[str]:
        """Return the lines of a change with their ends; its last has none."""
        new = change.text.split("\n")
        if self._alike:
            return [self._usual.join(new)]
        first = bisect_left(self._at, change.start)
        old = self._text[change.start : change.end].split("\n")
        kept: dict[int, str] = {}
        at_old = at_new = 0
        for run in (*same_lines(old[:-1], new[:-1]), Run(len(old) - 1, len(new) - 1, 0)):
            # As many new lines as old ones between two that stayed are taken for these, changed.
            if run.new - at_new == run.old - at_old:
                kept |= {at_new + step: self._ends[first + at_old + step] for step in range(run.new - at_new)}
            kept |= {run.new + step: self._ends[first + run.old + step] for step in range(run.size)}
            at_old, at_new = run.old + run.size, run.new + run.size
        end = self._end_near(first)
        ended: list[str] = []
        for place, line in enumerate(new[:-1]):
            end = kept.get(place, end)
            ended.append(line + end)
        return [*ended, new[-1]]

    def _end_near(self, number: int) -> str:
        """Return the end of the line before, of the line itself, or the usual one."""
        if number:
            return self._ends[number - 1]
        return self._ends[number] if self._ends else self._usual
