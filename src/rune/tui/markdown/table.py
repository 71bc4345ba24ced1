"""A table as lines: columns side by side where they fit, wrapped where they nearly fit, else one cell a line."""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from rune.text.safe_text import SafeText
from rune.tui.lines import Line, Span
from rune.tui.markdown.wrapping import line_cells, wrapped

Align = Literal["left", "center", "right"]
Cell = list[list[Span]]  # its lines before wrapping

_BETWEEN: Final = Span(SafeText(" │ "), "rule")
_CROSS: Final = "─┼─"
# A column is not made narrower than this (or than what stands in it).
_LEAST: Final = 6


class Table(NamedTuple):
    """A table: how its columns are aligned, and its rows, of as many cells each. The first row is the head."""

    aligns: tuple[Align, ...]
    rows: list[list[Cell]]


def drawn(table: Table, width: int, *, headed: bool = True) -> list[Line]:
    """Return the table's lines; `headed` False: the head is known from before, and not drawn again."""
    natural = [max(_cells(row[column]) for row in table.rows) for column in range(len(table.aligns))]
    widths = _fitted(natural, width - 3 * (len(natural) - 1))
    if not widths:
        return _listed(table, width)
    out: list[Line] = []
    if headed:
        out += _row(table.rows[0], widths, table.aligns)
        out.append(Line((Span(SafeText(_CROSS.join(["─" * each for each in widths])), "rule"),)))
    for row in table.rows[1:]:
        out += _row(row, widths, table.aligns)
    return out


def _fitted(natural: Sequence[int], room: int) -> list[int]:
    """Return a width for each column, together at most `room`; none if that would be too narrow to read.

    The widest columns give way first: all that are cut get the same width.
    """
    widths = [max(1, each) for each in natural]
    if sum(widths) <= room:
        return widths
    if sum(min(each, _LEAST) for each in widths) > room:
        return []
    left, columns = room, len(widths)
    for each in sorted(widths):
        if each * columns > left:
            break
        left -= each
        columns -= 1
    share, over = divmod(left, columns)
    out: list[int] = []
    for each in widths:
        if each <= share:
            out.append(each)
            continue
        out.append(share + (over > 0))
        over -= 1
    return out


def _row(row: Sequence[Cell], widths: Sequence[int], aligns: Sequence[Align]) -> list[Line]:
    columns = [
        [line for each in cell for line in wrapped(each, width)] for cell, width in zip(row, widths, strict=True)
    ]
    out: list[Line] = []
    last = len(widths) - 1
    for number in range(max(map(len, columns))):
        spans: list[Span] = []
        for position, (lines, width, align) in enumerate(zip(columns, widths, aligns, strict=True)):
            if position:
                spans.append(_BETWEEN)
            line = lines[number] if number < len(lines) else Line()
            missing = width - line_cells(line)
            before = missing if align == "right" else missing // 2 if align == "center" else 0
            after = missing - before if position < last else 0
            if before:
                spans.append(Span(SafeText(" " * before)))
            spans += line.spans
            if after:
                spans.append(Span(SafeText(" " * after)))
        out.append(Line(tuple(spans)))
    return out


def _listed(table: Table, width: int) -> list[Line]:
    """Return each row as a list of its cells with the names of their columns."""
    heads = table.rows[0]
    rows = table.rows[1:] or [heads]
    out: list[Line] = []
    for number, row in enumerate(rows):
        if number:
            out.append(Line((Span(SafeText("─" * width), "rule"),)))
        for head, cell in zip(heads, row, strict=True):
            named = cell is not head and any(head)
            first = [*head[0], Span(SafeText(": "), "strong"), *cell[0]] if named else cell[0]
            out += [line for each in (first, *cell[1:]) for line in wrapped(each, width)]
    return out


def _cells(cell: Cell) -> int:
    return max(line_cells(Line(tuple(each))) for each in cell)
