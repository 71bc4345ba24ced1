"""From the indentation in which a model wrote lines to that of the file, learned from the lines that are the same."""

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import pairwise

from rune.tools.editing.book import UNITS, Book

Pairs = list[tuple[str, str]]


def indenter(pairs: Pairs, written: Sequence[str], book: Book) -> Callable[[str], str | None]:
    """Return what gives a written indentation its form in the file, or None where that is not certain.

    `pairs` are those of lines that are the same, as written and in the file; `written` all that the model wrote.
    """
    known: dict[str, str] = {}
    torn: set[str] = set()  # one indentation that stands for several
    for mine, theirs in pairs:
        if known.setdefault(mine, theirs) != theirs:
            torn.add(mine)
    mostly_same = 2 * sum(mine == theirs for mine, theirs in pairs) > len(pairs)
    fitted = None if torn else _fitted(known, written, book)

    def given(indent: str) -> str | None:
        if indent in torn:
            return None
        if indent in known:
            return known[indent]
        if mostly_same:
            return indent
        return fitted(indent) if fitted else None

    return given


def _fitted(known: dict[str, str], written: Sequence[str], book: Book) -> Callable[[str], str | None] | None:
    """Return a rule `wide = slope * written + start` over counts of blanks or tabs; None when there is none."""
    mine = _kind([*known, *written])
    theirs = _kind(known.values()) or ("\t" if book.indents_with_tabs else " ")
    if mine == "mixed" or theirs == "mixed":
        return None
    widths = sorted({(len(one), len(other)) for one, other in known.items()})
    slope = _slope(widths, {len(indent) for indent in (*known, *written)}, mine, theirs, book)
    if slope is None:
        return None
    first_mine, first_theirs = widths[0]

    def given(indent: str) -> str | None:
        wide = first_theirs + slope * (len(indent) - first_mine)
        return theirs * int(wide) if wide >= 0 and wide.denominator == 1 else None

    return given


def _slope(widths: list[tuple[int, int]], written: set[int], mine: str, theirs: str, book: Book) -> Fraction | None:
    if len(widths) > 1:
        slopes = {Fraction(b[1] - a[1], b[0] - a[0]) for a, b in pairwise(widths)}
        slope = slopes.pop()
        return slope if not slopes and slope > 0 else None
    my_unit = 1 if mine == "\t" else min((b - a for a, b in pairwise(sorted(written))), default=None)
    their_unit = 1 if theirs == "\t" else book.unit or my_unit
    if my_unit is None or their_unit is None:
        return None
    one, other = widths[0]
    if mine != theirs and one and other:
        # Blanks for tabs at the same depth give the unit as well; where the two disagree nothing is certain.
        as_seen = Fraction(other, one)
        return as_seen if as_seen == Fraction(their_unit, my_unit) else None
    if my_unit not in UNITS and mine != "\t":
        return None
    return Fraction(their_unit, my_unit)


def _kind(indents: Iterable[str]) -> str:
    """Return the one character that indentations are made of, "" when all are empty, or "mixed"."""
    characters = set("".join(indents))
    return "mixed" if len(characters) > 1 else "".join(characters)
