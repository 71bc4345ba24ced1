"""One row above the prompt: that another Rune has this conversation open, and what can be done here all the same.

It takes neither the keyboard nor an answer: one may simply read on.
"""

from collections.abc import Sequence
from typing import ClassVar

from rune.errors import LeaseHeldError
from rune.text.safe_text import SafeText
from rune.tui.fit import cut_line, spread, width_of
from rune.tui.lines import Line, Span, line
from rune.tui.painting import line_classes
from rune.tui.widgets.line_rows import LineRows


class HeldBar(LineRows):
    """Says who has the conversation open, with the keys that branch off and that go on reading."""

    COMPONENT_CLASSES: ClassVar[set[str]] = line_classes("key", "warning")

    _holder: LeaseHeldError | None = None
    _waits: bool = False
    _brief: bool = False

    def offer(self, holder: LeaseHeldError | None, *, waits: bool, brief: bool = False) -> None:
        """Offer a fork of what this one holds; None: it takes no room. `waits`: a message could not be sent. `brief`:
        the person reads on, and knows.
        """
        if (holder, waits, brief) != (self._holder, self._waits, self._brief):
            self._holder, self._waits, self._brief = holder, waits, brief
            self.redraw()

    def draw(self, width: int) -> Sequence[Line]:
        """Return one row, or none."""
        if self._holder is None:
            return ()
        row = brief_line(self._holder, width) if self._brief else held_line(self._holder, width, waits=self._waits)
        return (row,)


def held_line(holder: LeaseHeldError, width: int, *, waits: bool) -> Line:
    """Return who holds it and which keys do what; what is said shortens before the keys do."""
    process = _where(holder)
    does = "sends it in a fork" if waits else "goes on in a fork"
    # While a message waits, Esc takes that back, as its own row says.
    reads = ("  ", "esc", ": only read ") if not waits else (" ", "", "")
    forms = (
        (f" open {process}; what you sent waits" if waits else f" open {process}; it can be read", does, reads),
        (f" open {process}", does, reads),
        (f" open {process}", "forks", reads),
        (f" open {process}", "forks", (" ", "", "")),
        (" open", "forks", (" ", "", "")),
    )
    row = line()
    for said, action, (gap, key, reading) in forms:
        left = (Span(SafeText(said), "warning"),)
        right = (
            *(Span(SafeText("   f6"), "key"), Span(SafeText(f" {action}"), "dim"), Span(SafeText(gap))),
            *(Span(SafeText(key), "key"), Span(SafeText(reading), "dim")),
        )
        row = spread(left, right, width)
        if width_of([*left, *right]) <= width:
            break
    return cut_line(row, width)


def brief_line(holder: LeaseHeldError, width: int) -> Line:
    """Return who holds it and the key that forks, in a few words."""
    key, does = Span(SafeText("f6"), "key"), Span(SafeText(" fork"), "dim")
    row = line()
    for said in (f" open {_where(holder)} \N{MIDDLE DOT} ", " open \N{MIDDLE DOT} ", " open "):
        row = line(Span(SafeText(said), "dim"), key, does)
        if row.cells <= width:
            break
    return cut_line(row, width)


def _where(holder: LeaseHeldError) -> str:
    return f"in process {holder.pid}" if holder.pid else "elsewhere"
