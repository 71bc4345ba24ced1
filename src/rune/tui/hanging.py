"""Columns of plain text in less room than they were laid out for: what is wrapped stays under its own column."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from rune.text.safe_text import SafeText, safe_text
from rune.tui.lines import Line, Span
from rune.tui.markdown.wrapping import TAB, cells, expanded, hung, plain, wrapped

LEAST: Final = 16  # cells that a column has at least: with fewer, its text goes below
STEP: Final = 2

_COLUMN: Final = re.compile(r"\S(  +)(?=\S)")


class _Column(NamedTuple):
    """The second column of a line: where it was in the text, and where its text is drawn."""

    was: int
    drawn: int


def hanging(text: str, width: int, style: str = "") -> tuple[Line, ...]:
    """Return plain text in lines of at most `width` cells. What is too wide goes on under its line's second column
    (behind the first two spaces or more that follow a word), where there is none two cells deeper than it began.

    Lines that a command wrapped by itself, below a column, move with it. Copying gives back the text as it was.
    """
    if width < LEAST + STEP:
        return plain(text, width, style)
    rows: list[Line] = []
    column: _Column | None = None
    for each in safe_text(text).split("\n"):
        whole = expanded(each, TAB)
        indent = len(whole) - len(whole.lstrip(" "))
        if column is not None and indent >= column.was and whole.strip():
            rows += _below(whole, indent, column, width, style)
        else:
            drawn, column = _laid_out(whole, indent, width, style)
            rows += drawn
    return tuple(rows)


def _laid_out(whole: str, indent: int, width: int, style: str) -> tuple[list[Line], _Column | None]:
    found = _COLUMN.search(whole, indent)
    if found is None:
        return (_own(whole, indent, width, style) if cells(whole) > width else _row(whole, style)), None
    head, rest = whole[: found.start(1)], whole[found.end() :]
    was = cells(whole[: found.end()])
    if width - was >= LEAST:
        drawn = hung(_wrapped(rest, width - was, style), Span(SafeText(whole[: found.end()]), style), _blank(was))
        # What stands before the column belongs to the line.
        first = drawn[0]._replace(gutter=0)
        return [first, *drawn[1:]], _Column(was, was)
    if cells(whole) <= width:
        return _row(whole, style), _Column(was, was)
    deeper = _bounded(indent + STEP, width)
    below = hung(_wrapped(rest, width - deeper, style), _blank(deeper), _blank(deeper))
    below[0] = below[0]._replace(continues=found.group(1))
    return [*_own(head, indent, width, style), *below], _Column(was, deeper)


def _below(whole: str, indent: int, column: _Column, width: int, style: str) -> Iterator[Line]:
    """Give a line that goes on with the column above it."""
    if cells(whole) <= width and column.was == column.drawn:
        yield from _row(whole, style)
        return
    at = indent - column.was + column.drawn
    at = at if width - at >= LEAST else column.drawn if width - column.drawn >= LEAST else _bounded(indent, width)
    drawn = hung(_wrapped(whole[indent:], width - at, style), _blank(at), _blank(at))
    yield drawn[0]._replace(continues="\n" + " " * indent)
    yield from drawn[1:]


def _own(whole: str, indent: int, width: int, style: str) -> list[Line]:
    """Return a line that has no columns."""
    first = min(indent, max(width - LEAST - STEP, 0))
    drawn = hung(_wrapped(whole[indent:], width - first - STEP, style), _blank(first), _blank(first + STEP))
    if first < indent:
        drawn[0] = drawn[0]._replace(continues="\n" + " " * indent)
        return drawn
    return [drawn[0]._replace(gutter=0), *drawn[1:]]


def _row(whole: str, style: str) -> list[Line]:
    return [Line((Span(SafeText(whole), style),) if whole else ())]


def _wrapped(text: str, width: int, style: str) -> list[Line]:
    return wrapped([Span(SafeText(text), style)], width)


def _blank(wide: int) -> Span:
    return Span(SafeText(" " * wide))


def _bounded(indent: int, width: int) -> int:
    return max(min(indent, width - LEAST), 0)
