"""Unified diffs as a person reads them: a number before each line, its sign, and what changed within a line.

     9     def total(cart):
    10  -      total = 0
    10  +      total = Decimal(0)

A line of a file cannot pass for a heading: how many lines a hunk has stands in its head, and so many are taken.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from rune.text.safe_text import SafeText, safe_text
from rune.tui.lines import Line, Span
from rune.tui.markdown.wrapping import TAB, cells, expanded, hung, wrapped
from rune.tui.revealed import revealed

Kind = Literal["text", "file", "hunk", "same", "removed", "added", "note"]

_HUNK: Final = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_KINDS: Final[dict[str, Kind]] = {" ": "same", "-": "removed", "+": "added", "\\": "note"}
_STYLES: Final[dict[Kind, str]] = {
    "text": "",
    "file": "strong",
    "hunk": "dim",
    "same": "",
    "removed": "deleted",
    "added": "inserted",
    "note": "dim",
}
_CHANGED: Final = "changed"
_WORD: Final = re.compile(r"\w+|\s+|[^\w\s]")
# A line is compared with another one word by word only where both are lines that somebody wrote.
_LONGEST: Final = 400
_ALIKE: Final = 0.4
_MOST_PAIRS: Final = 40
# Cells of a line that must be left beside the numbers.
_LEAST: Final = 24


class DiffRow(NamedTuple):
    """One line of a diff. `number` is that of the line in its file, the new one of lines that stay, None where it is
    none or not known. `marks` are where (from, to) it differs from the line that it stands for.
    """

    kind: Kind
    text: str
    number: int | None = None
    marks: tuple[tuple[int, int], ...] = ()


def is_diff(text: str) -> bool:
    """Say whether there is a unified diff in a text."""
    if "@@ -" not in text:
        return False
    lines = text.split("\n")
    return any(
        old.startswith("--- ") and new.startswith("+++ ") and _HUNK.match(hunk)
        for old, new, hunk in zip(lines, lines[1:], lines[2:], strict=False)
    )


@lru_cache(maxsize=16)
def diff_rows(text: str) -> tuple[DiffRow, ...]:
    """Return the lines of a text in which there are unified diffs, one after another perhaps, and words between."""
    return tuple(_with_marks(_read(text.removesuffix("\n").split("\n"))))


def digits(rows: Sequence[DiffRow]) -> int:
    """Return how many cells the numbers of these rows take."""
    return len(str(max((row.number for row in rows if row.number is not None), default=0)))


def drawn(row: DiffRow, width: int, number_cells: int) -> list[Line]:
    """Return a row in lines of at most `width` cells; its number is not copied, its sign is."""
    if row.kind not in ("same", "removed", "added") or width <= len("- "):
        return wrapped(revealed(row.text, _STYLES[row.kind]), width, chop=True) or [Line()]
    style = _STYLES[row.kind]
    sign = {"same": " ", "removed": "-", "added": "+"}[row.kind]
    number = "" if row.number is None else str(row.number)
    gutter = f"{number.rjust(number_cells)} " if width - number_cells - 1 >= _LEAST else ""
    room = max(width - len(gutter) - 2, 1)
    lines = wrapped(_marked(row, style), room, chop=True) or [Line()]
    first = Span(SafeText(f"{sign} "), style)
    signed = [
        Line((first if place == 0 else Span(SafeText("  ")), *line.spans), 0 if place == 0 else 2, line.continues)
        for place, line in enumerate(lines)
    ]
    if not gutter:
        return signed
    return hung(signed, Span(SafeText(gutter), "dim"), Span(SafeText(" " * len(gutter))))


def drawn_rows(rows: Sequence[DiffRow], number_cells: int, width: int) -> tuple[Line, ...]:
    """Return rows in lines of at most `width` cells."""
    return tuple(line for row in rows for line in drawn(row, width, number_cells))


class _Hunk:
    """Counts the lines of the hunk that is read, so that none of them passes for anything else."""

    def __init__(self, head: re.Match[str] | None = None) -> None:
        self._old, self._new = (int(head[1][:9]), int(head[3][:9])) if head else (0, 0)
        self._left = [int((head[group] or "1")[:9]) for group in (2, 4)] if head else [0, 0]
        self._numbered = True

    def take(self, line: str) -> DiffRow | None:
        """Return a line as one of this hunk; None where it is none of it."""
        if max(self._left) <= 0:
            return None
        kind = _KINDS.get(line[:1]) if line else "same"
        if kind is None:
            if _HUNK.match(line):
                return None
            self._numbered = False  # something was left out here: which lines follow cannot be known
            return DiffRow("note", line)
        if kind == "note":
            return DiffRow(kind, line)
        number = self._old if kind == "removed" else self._new
        if kind != "added":
            self._old += 1
            self._left[0] -= 1
        if kind != "removed":
            self._new += 1
            self._left[1] -= 1
        return DiffRow(kind, line[1:], number if self._numbered else None)


def _read(lines: Sequence[str]) -> Iterator[DiffRow]:
    hunk = _Hunk()
    place = 0
    while place < len(lines):
        line = lines[place]
        place += 1
        if (row := hunk.take(line)) is not None:
            yield row
        elif (head := _HUNK.match(line)) is not None:
            hunk = _Hunk(head)
            yield DiffRow("hunk", line)
        elif line.startswith("--- ") and place < len(lines) and lines[place].startswith("+++ "):
            yield from _heading(line[4:], lines[place][4:])
            place += 1
        else:
            yield DiffRow("note" if line.startswith("\\ ") else "text", line)


def _heading(old: str, new: str) -> Iterator[DiffRow]:
    """Say which file it is in one line, where both names are the same but for git's a/ and b/."""
    if old == "/dev/null":
        yield DiffRow("file", f"{new.removeprefix('b/')} (new)")
    elif new == "/dev/null":
        yield DiffRow("file", f"{old.removeprefix('a/')} (removed)")
    elif old.removeprefix("a/") == new.removeprefix("b/"):
        yield DiffRow("file", new.removeprefix("b/"))
    else:
        yield DiffRow("file", f"--- {old}")
        yield DiffRow("file", f"+++ {new}")


def _with_marks(rows: Iterator[DiffRow]) -> Iterator[DiffRow]:
    """Mark within lines that stand for each other what is different: of removed ones and the added ones behind them."""
    removed: list[DiffRow] = []
    added: list[DiffRow] = []
    for row in rows:
        if row.kind == "removed" and not added:
            removed.append(row)
        elif row.kind == "added" and removed:
            added.append(row)
        else:
            yield from _compared(removed, added)
            removed, added = ([row], []) if row.kind == "removed" else ([], [])
            if row.kind != "removed":
                yield row
    yield from _compared(removed, added)


def _compared(removed: list[DiffRow], added: list[DiffRow]) -> Iterator[DiffRow]:
    for place in range(min(len(removed), len(added), _MOST_PAIRS)):
        removed[place], added[place] = _pair(removed[place], added[place])
    yield from removed
    yield from added


def _pair(old: DiffRow, new: DiffRow) -> tuple[DiffRow, DiffRow]:
    if max(len(old.text), len(new.text)) > _LONGEST:
        return old, new
    from difflib import SequenceMatcher  # noqa: PLC0415 - most conversations show no diff

    one, other = _WORD.findall(old.text), _WORD.findall(new.text)
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return old, new
    changes = [each for each in matcher.get_opcodes() if each[0] != "equal"]
    return (
        old._replace(marks=_places(one, [(start, end) for _, start, end, _, _ in changes])),
        new._replace(marks=_places(other, [(start, end) for _, _, _, start, end in changes])),
    )


def _places(words: Sequence[str], ranges: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return ranges of words as ranges of characters."""
    starts = [0]
    for word in words:
        starts.append(starts[-1] + len(word))
    return tuple((starts[start], starts[end]) for start, end in ranges if end > start)


def _marked(row: DiffRow, style: str) -> list[Span]:
    """Return a line in spans, what changed in it marked; what had to be made visible stands out instead."""
    if not row.marks or safe_text(row.text, newlines=False) != row.text:
        return revealed(row.text, style)
    pieces: list[Span] = []
    at = column = 0
    for start, end in (*row.marks, (len(row.text), len(row.text))):
        for text, looks in ((row.text[at:start], style), (row.text[start:end], f"{style} {_CHANGED}")):
            shown = expanded(" " * (column % TAB) + text, TAB)[column % TAB :]
            column += cells(shown)
            pieces.append(Span(SafeText(shown), looks))
        at = end
    return [piece for piece in pieces if piece.text]
