"""One terminal line before it has colours: what every drawing function returns and every widget paints.

A `Line` knows how wide it is and what of it a person would copy; which colours a style has is said in
`rune.tcss`, by component classes of the same names.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from rich.cells import cell_len

from rune.text.safe_text import SafeText

# Every style that a span may name; several are parted by a space. `rune.tcss` has a rule for each, as `line--NAME`.
STYLES: Final = (
    "you",  # the person's words, and the mark before them
    "rune",  # the mark before an answer
    "dim",  # what is there when one looks for it: hints, times, gutters
    "strong",
    "emphasis",
    "strike",
    "code",  # code within a line
    "link",
    "heading",
    "quote",
    "bullet",
    "rule",  # lines that part
    "block",  # the background of a code block
    "keyword",  # highlighted code
    "string",
    "number",
    "comment",
    "function",
    "type",
    "operator",
    "inserted",
    "deleted",
    "changed",  # what of a line is another one
    "good",
    "warning",
    "bad",
    "accent",
    "thinking",
    "command",
    "key",
    "chosen",  # the row under the cursor
)

# Before what Enter takes, so that it is known without reversed colours too.
MARK: Final = "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}"


class Span(NamedTuple):
    """A piece of one line: `style` names some of STYLES, "" for none."""

    text: SafeText
    style: str = ""


class Line(NamedTuple):
    """One line of the terminal, never wider than it was asked for.

    The first `gutter` cells are drawn for the eye and never copied. `continues` None: the line is a line of its
    own; else it was wrapped, and this is what stood in the text between it and the line before (" " or "").
    """

    spans: tuple[Span, ...] = ()
    gutter: int = 0
    continues: str | None = None

    @property
    def text(self) -> SafeText:
        """All of it, the gutter included."""
        return SafeText("".join(span.text for span in self.spans))

    @property
    def cells(self) -> int:
        """How many cells it takes."""
        return sum(cell_len(span.text) for span in self.spans)


def line(*spans: Span | tuple[SafeText, str], gutter: int = 0, continues: str | None = None) -> Line:
    """Return a line of these spans; empty ones are left out."""
    return Line(tuple(Span(*span) for span in spans if span[0]), gutter, continues)


def copied(lines: Iterable[Line]) -> str:
    """Return what a person gets who copies these lines: no gutter, and what was wrapped is one line again."""
    out: list[str] = []
    for each in lines:
        if out:
            out.append("\n" if each.continues is None else each.continues)
        out.append(without_cells(each.text, each.gutter).rstrip())
    return "".join(out)


def without_cells(text: str, cells: int) -> str:
    """Return `text` without what begins in its first `cells` cells."""
    position = 0
    while position < len(text) and cells > 0:
        cells -= cell_len(text[position])
        position += 1
    return text[position:]
