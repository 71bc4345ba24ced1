"""Text in lines of so many cells. Nothing is torn that belongs to one character, and `lines.copied` gives back
what was wrapped.

Cells are counted as Textual counts them. Text that comes here is safe already and has no tabs and line feeds.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import accumulate
from typing import Final, NamedTuple

from rich.cells import cell_len

from rune.text.safe_text import SafeText, safe_text
from rune.tui.lines import Line, Span

# Stands for a character that is wider than all the room there is.
TOO_WIDE: Final = SafeText("▯")
TAB: Final = 8

# One cell each, and nothing that would join with what is before it.
_NARROW = re.compile(
    "[ -~\u00a0-\u00ac\u00ae-\u02ff\u0370-\u0377\u037a-\u037f\u0384-\u0482\u048a-\u052f\u1e00-\u1f15"
    "\u2010-\u2027\u2030-\u205e\u20a0-\u20bf\u2190-\u21ff\u2200-\u22ff\u2500-\u25fc\u2713\u2714\u2717\u2718]*"
)
# Two cells each, and likewise. Compiling it takes a millisecond, and few texts need it.
_SIMPLE_WIDE = "[\u3001-\u3029\u3041-\u3096\u30a1-\u30fe\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff60]*"
_JOINERS = "\u200c\u200d"
_FLAG_LETTERS = range(0x1F1E6, 0x1F200)
# Letters by category that Unicode counts to the one before: the Thai and Lao sara am.
_FOLLOWING_LETTERS = "\u0e33\u0eb3"
# What must not begin a line, or end one, in writing that has no spaces.
_CLOSING = "、。，．：；？！）」』】〕〉》”’…)]},.!?;:"  # noqa: RUF001 - they look like others, and are meant
_OPENING = "（「『【〔〈《“‘([{"  # noqa: RUF001  # as above
_WIDE = 2


class Row(NamedTuple):
    """`text[start:end]` is a line; `continues` as in `Line`."""

    start: int
    end: int
    continues: str | None


class Clusters(NamedTuple):
    """What a person would call the characters of a text: where each begins (and, last, the text's length), and
    the cells it takes.
    """

    starts: list[int]
    cells: list[int]


def is_narrow(text: str) -> bool:
    """Say whether every character of `text` surely takes one cell."""
    return text.isascii() or _NARROW.fullmatch(text) is not None


def cells(text: str) -> int:
    """Return how many cells `text` takes."""
    return len(text) if text.isascii() else cell_len(text)


def line_cells(line: Line) -> int:
    """Return how many cells a line takes; as `Line.cells`, and quick for what is ASCII."""
    return sum([cells(span.text) for span in line.spans])


def wrapped(pieces: Sequence[Span], width: int, *, chop: bool = False) -> list[Line]:
    """Return one line of text as lines of at most `width` cells (at least one). `chop`: not at words, but where
    the room ends, as code is.
    """
    text = "".join([piece.text for piece in pieces])
    width = max(1, width)
    if is_narrow(text):
        if len(text) <= width:
            return [Line(tuple([piece for piece in pieces if piece.text]))]
        rows = _narrow_rows(text, width, chop=chop)
    else:
        clusters = _clustered(text)
        if max(clusters.cells) > width:
            return wrapped(_narrowed(pieces, text, clusters, width), width, chop=chop)
        pieces = _snapped(pieces, clusters)
        if sum(clusters.cells) <= width:
            return [Line(tuple(pieces))]
        rows = _wide_rows(text, clusters, width, chop=chop)
    return list(_sliced(pieces, rows))


def plain(
    text: str, width: int, style: str = "", *, first: Span | None = None, rest: Span | None = None
) -> tuple[Line, ...]:
    """Return plain text in lines of at most `width` cells: its spaces and columns stay.

    `first` and `rest` are drawn before the first line and before the others, and not copied; they take the same
    room, and are left out where there is none for them.
    """
    lead, others = first or rest or Span(SafeText("")), rest or Span(SafeText(" " * cells(first.text if first else "")))
    room = width - max(cells(lead.text), cells(others.text))
    if room < 1:
        return plain(text, width, style) if first or rest else plain(text, 1, style)
    lines = [
        line
        for each in safe_text(text).split("\n")
        for line in wrapped([Span(SafeText(expanded(each, TAB)), style)], room)
    ]
    return tuple(lines if first is None and rest is None else hung(lines, lead, others))


def hung(lines: Iterable[Line], first: Span, rest: Span) -> list[Line]:
    """Return `lines` with `first` before the first of them and `rest` before the others, not to be copied."""
    out: list[Line] = []
    before, gutter = first, cells(first.text)
    for line in lines:
        out.append(Line((before, *line.spans) if before.text else line.spans, gutter + line.gutter, line.continues))
        before, gutter = rest, cells(rest.text)
    return out


def expanded(text: str, tab: int) -> str:
    """Return a line with its tabs as spaces up to the next multiple of `tab` cells."""
    if "\t" not in text:
        return text
    if is_narrow(text.replace("\t", "")):
        return text.expandtabs(tab)
    out: list[str] = []
    column = 0
    for position, part in enumerate(text.split("\t")):
        if position:
            out.append(" " * (tab - column % tab))
            column += tab - column % tab
        out.append(part)
        column += cell_len(part)
    return "".join(out)


def _narrow_rows(text: str, width: int, *, chop: bool) -> Iterator[Row]:
    # White space at the very end is no reason for a line.
    size, start = len(text.rstrip()), 0
    continues: str | None = None
    while size - start > width:
        end = start + width
        following = end
        if not chop:
            indented = start
            while indented < end and text[indented] == " ":
                indented += 1
            space = end if text[end] == " " else text.rfind(" ", indented, end)
            if space >= 0:
                end = following = space
                while following < size and text[following] == " ":
                    following += 1
        yield (row := _row(text, start, end, continues))
        continues = text[row.end : following]
        start = following
    yield Row(start, size, continues)


def _wide_rows(text: str, clusters: Clusters, width: int, *, chop: bool) -> Iterator[Row]:
    starts, size = clusters.starts, len(text.rstrip())
    count = bisect_left(starts, size)
    sums = [0, *accumulate(clusters.cells)]
    first = 0
    continues: str | None = None
    while (fitting := bisect_right(sums, sums[first] + width) - 1) < count:
        end = fitting
        if not chop:
            while end > first and not _may_end(text, clusters, first, end):
                end -= 1
            end = end if end > first else fitting
        following = end
        while not chop and following < count and _is_space(text, clusters, following):
            following += 1
        yield (row := _row(text, starts[first], starts[end], continues))
        continues = text[row.end : starts[following]]
        first = following
    yield Row(starts[first], size, continues)


def _row(text: str, start: int, end: int, continues: str | None) -> Row:
    """Return a row that ends where its ink ends: who copies a line loses the white space at its end."""
    return Row(start, start + len(text[start:end].rstrip()), continues)


def _is_space(text: str, clusters: Clusters, position: int) -> bool:
    start = clusters.starts[position]
    return text[start] == " " and clusters.starts[position + 1] == start + 1


def _may_end(text: str, clusters: Clusters, first: int, position: int) -> bool:
    """Say whether a line that begins with cluster `first` may end before this one: at spaces, of which only those
    at its own beginning belong to it, and between wide characters.
    """
    if _is_space(text, clusters, position):
        return True
    if _is_space(text, clusters, position - 1):
        start = clusters.starts[first]
        return bool(text[start : clusters.starts[position]].strip(" "))
    if clusters.cells[position] < _WIDE and clusters.cells[position - 1] < _WIDE:
        return False
    return text[clusters.starts[position]] not in _CLOSING and text[clusters.starts[position - 1]] not in _OPENING


@cache
def _simple_wide() -> re.Pattern[str]:
    return re.compile(_SIMPLE_WIDE)


def _clustered(text: str) -> Clusters:
    starts: list[int] = []
    widths: list[int] = []
    position, size = 0, len(text)
    while position < size:
        # What is all alike needs no look at each character, except that a mark may follow the last one.
        for run, width in ((_NARROW, 1), (_simple_wide(), _WIDE)):
            found = run.match(text, position)
            if found is not None and found.end() > position + 1:
                alike = found.end() - 1
                starts += range(position, alike)
                widths += [width] * (alike - position)
                position = alike
                break
        end = _cluster_end(text, position)
        starts.append(position)
        widths.append(cells(text[position:end]))
        position = end
    starts.append(size)
    return Clusters(starts, widths)


def _cluster_end(text: str, start: int) -> int:
    """Return where the cluster ends that begins at `start`."""
    size = len(text)
    end = start + 1
    if ord(text[start]) in _FLAG_LETTERS and end < size and ord(text[end]) in _FLAG_LETTERS:
        end += 1
    while end < size and (text[end - 1] in _JOINERS or (not text[end].isascii() and _follows(text[end]))):
        end += 1
    return end


@lru_cache(maxsize=4096)
def _follows(char: str) -> bool:
    """Say whether a character belongs to the one before it: marks, joiners, tones of skin, vowels of Hangul."""
    return char in _FOLLOWING_LETTERS or unicodedata.category(char)[0] == "M" or cell_len(char) == 0


def _snapped(pieces: Sequence[Span], clusters: Clusters) -> list[Span]:
    """Return the pieces with their ends moved so that none of them parts a cluster."""
    starts = set(clusters.starts)
    out: list[Span] = []
    end = 0
    for piece in pieces:
        text = piece.text
        lead = 0
        while out and lead < len(text) and end + lead not in starts:
            lead += 1
        if lead:
            out[-1] = Span(SafeText(out[-1].text + text[:lead]), out[-1].style)
        if len(text) > lead:
            out.append(Span(SafeText(text[lead:]), piece.style) if lead else piece)
        end += len(text)
    return out


def _narrowed(pieces: Sequence[Span], text: str, clusters: Clusters, width: int) -> list[Span]:
    """Return the pieces with a mark for every character that is wider than `width`."""
    ends = clusters.starts[1:]
    wide = [
        (start, end) for start, end, taken in zip(clusters.starts, ends, clusters.cells, strict=False) if taken > width
    ]
    out: list[Span] = []
    for piece, start in _placed(_snapped(pieces, clusters)):
        end = start + len(piece.text)
        parts: list[str] = []
        done = start
        for low, high in wide:
            if start <= low < end:
                parts += (text[done:low], TOO_WIDE)
                done = high
        out.append(Span(SafeText("".join([*parts, text[done:end]])), piece.style))
    return out


def _placed(pieces: Iterable[Span]) -> Iterator[tuple[Span, int]]:
    start = 0
    for piece in pieces:
        yield piece, start
        start += len(piece.text)


def _sliced(pieces: Sequence[Span], rows: Iterable[Row]) -> Iterator[Line]:
    """Yield the lines; the rows are in order."""
    index, start = 0, 0  # a piece, and where it begins
    for row in rows:
        spans: list[Span] = []
        while index < len(pieces):
            text, style = pieces[index]
            end = start + len(text)
            low, high = max(row.start, start), min(row.end, end)
            if low < high:
                spans.append(Span(SafeText(text[low - start : high - start]), style))
            if end > row.end:
                break
            index, start = index + 1, end
        yield Line(tuple(spans), 0, row.continues)
