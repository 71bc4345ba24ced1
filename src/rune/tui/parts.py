"""What an entry of a transcript is cut into: parts, which are cached and copied as one, and drawn when they are seen.

Knows no widget and no colour. Texts are made safe at the last moment: a part keeps them as they came.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from rune.text.safe_text import SafeText
from rune.tui.fit import foreign
from rune.tui.lines import Line, Span, line

if TYPE_CHECKING:
    from rune.tui.markdown.blocks import Block

Speaker = Literal["you", "rune", ""]
Action = Literal["fold", "copy", ""]

WIDE: Final = 56  # cells from which the gutter has room for names
NAMES_GUTTER, MARKS_GUTTER = 7, 2
CHUNK: Final = 40  # lines of plain text in a part: what is open at the end is laid out anew when more comes

_NAMES: Final[dict[Speaker, SafeText]] = {"you": SafeText("you"), "rune": SafeText("rune"), "": SafeText("")}
_MARKS: Final[dict[Speaker, SafeText]] = {"you": SafeText(">"), "rune": SafeText("·"), "": SafeText("")}


class Part(msgspec.Struct, frozen=True, eq=False):
    """A piece of an entry. `source` is what is copied with the whole of it, and stands at `start` in the entry's
    text ("": it is only shown); `body` draws it in so many cells; `action` is what a click on its first line does.
    """

    body: Callable[[int], Sequence[Line]]
    source: str = ""
    start: int = 0
    speaker: Speaker = ""
    above: int = 0  # blank lines above it
    rows: int | None = None  # lines of the body where they are known before it is drawn
    block: "Block | None" = None
    action: Action = ""
    flush: bool = False  # columns of its own: it stands as far to the left as it may


def gutter(width: int) -> int:
    """Return the cells before the text in so many cells of width."""
    if width >= WIDE:
        return NAMES_GUTTER
    return MARKS_GUTTER if width > MARKS_GUTTER else 0


def lines_of(part: Part, width: int) -> tuple[Line, ...]:
    """Draw a part, the blank lines above it and the gutter included; no line is wider than `width` (at least 1)."""
    cells = min(gutter(width), MARKS_GUTTER) if part.flush else gutter(width)
    blank = Span(SafeText(" " * cells))
    drawn = [line()] * part.above
    for number, each in enumerate(part.body(max(width - cells, 1))):
        head = _mark(part.speaker, cells) if number == 0 else blank
        spans = (head, *each.spans) if cells else each.spans
        drawn.append(Line(spans, each.gutter + cells, each.continues))
    return tuple(drawn)


def row(text: SafeText, style: str, *, action: Action = "") -> Part:
    """Return one row that is only shown, cut where it is too narrow."""
    return Part(lambda width: (line(Span(foreign(text, width), style)),), rows=1, action=action)


def chunks(text: str, start: int, body: Callable[[str], Callable[[int], Sequence[Line]]]) -> Iterator[Part]:
    """Give a text from `start` on in parts of CHUNK lines; `body` says how one is drawn."""
    while start < len(text):
        end = start - 1
        for _ in range(CHUNK):
            end = text.find("\n", end + 1)
            if end < 0:
                end = len(text)
                break
        yield Part(body(text[start:end]), source=text[start : end + 1], start=start)
        start = end + 1


def _mark(speaker: Speaker, cells: int) -> Span:
    text = (_NAMES if cells == NAMES_GUTTER else _MARKS)[speaker]
    return Span(SafeText(text.ljust(cells)), speaker)
