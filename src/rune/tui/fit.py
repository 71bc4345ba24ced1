"""Makes texts and rows fit where they go: what is too wide is cut with …, and what matters least goes first."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from rich.cells import cell_len

from rune.text.fitting import CHARS_A_CELL, ELLIPSIS, JOINERS, cut, fitting, foreign, head
from rune.text.safe_text import SafeText
from rune.tui.lines import Line, Span, line

__all__ = (
    "ELLIPSIS",
    "Spans",
    "cut",
    "cut_line",
    "cut_middle",
    "fitting",
    "flowing",
    "foreign",
    "narrowed",
    "spread",
    "width_of",
)

Spans = tuple[Span, ...]


def flowing(text: str, cells: int) -> SafeText:
    """Return the beginning of a longer text as one line: each run of white space is one space."""
    limit = (max(cells, 0) + 1) * CHARS_A_CELL
    return foreign(" ".join(text[: limit * 2].split()) + (ELLIPSIS if len(text) > limit * 2 else ""), cells)


def cut_middle(text: SafeText, cells: int) -> SafeText:
    """Return `text` in at most `cells` cells, with … where its middle is missing."""
    if cell_len(text) <= cells:
        return text
    if cells <= 0:
        return SafeText("")
    begins = head(text, (cells - 1) // 2)
    return SafeText(begins + ELLIPSIS + _tail(text, cells - 1 - cell_len(begins)))


def cut_line(whole: Line, cells: int) -> Line:
    """Return a line in at most `cells` cells, with … where its end is missing."""
    if whole.cells <= cells:
        return whole
    kept: list[Span] = []
    left = cells
    for span in whole.spans:
        wide = cell_len(span.text)
        if wide >= left:
            # One cell more than fits, so that the … comes even where this span ends just there.
            kept.append(Span(cut(SafeText(span.text + ELLIPSIS), left), span.style))
            break
        kept.append(span)
        left -= wide
    return line(*kept, gutter=whole.gutter, continues=whole.continues)


def width_of(spans: Iterable[Span]) -> int:
    """Return how many cells these spans take."""
    return sum(cell_len(span.text) for span in spans)


def narrowed(parts: Mapping[str, Sequence[Spans]], order: Iterable[str], cells: int) -> dict[str, Spans]:
    """Return one form of each part so that together they take at most `cells`, if that can be.

    Each part has its forms, the longest first; each name in `order` takes that part to its next one.
    """
    at = dict.fromkeys(parts, 0)
    widths = {name: [width_of(form) for form in forms] for name, forms in parts.items()}
    total = sum(forms[0] for forms in widths.values())
    for name in order:
        if total <= cells:
            break
        if at[name] + 1 < len(parts[name]):
            total += widths[name][at[name] + 1] - widths[name][at[name]]
            at[name] += 1
    return {name: forms[at[name]] for name, forms in parts.items()}


def spread(left: Iterable[Span], right: Iterable[Span], width: int) -> Line:
    """Return one row of `width` cells: the one part at its left edge, the other at its right."""
    left, right = tuple(left), tuple(right)
    room = width - width_of(left) - width_of(right)
    return cut_line(line(*left, Span(SafeText(" " * max(room, 0))), *right), width)


def _tail(text: str, cells: int) -> str:
    start, taken = len(text), 0
    while start and (taken := taken + cell_len(text[start - 1])) <= cells:
        start -= 1
    while start < len(text) and (
        text[start] in JOINERS or unicodedata.category(text[start])[0] == "M" or cell_len(text[start:]) > cells
    ):
        start += 1
    return text[start:]
