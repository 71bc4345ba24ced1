"""Messages that wait until the running turn has ended, between the transcript and the prompt."""

from collections.abc import Sequence
from typing import ClassVar, Final

from rune.text.safe_text import SafeText
from rune.tui.fit import flowing, spread
from rune.tui.lines import Line, Span
from rune.tui.painting import line_classes
from rune.tui.widgets.line_rows import LineRows

ROWS: Final = 3
_TAKES_BACK: Final = (Span(SafeText("  esc"), "key"), Span(SafeText(" takes it back "), "dim"))
_TAKES_CELLS: Final = 20
_TEXT_CELLS: Final = 20


class WaitingMessages(LineRows):
    """Shows the texts that wait, the next to be sent first; the newest one is the one that Esc takes back."""

    COMPONENT_CLASSES: ClassVar[set[str]] = line_classes("key", "you")

    _texts: tuple[str, ...] = ()

    def show(self, texts: Sequence[str]) -> None:
        """Show these from now on; none: it takes no room."""
        if tuple(texts) != self._texts:
            self._texts = tuple(texts)
            self.redraw()

    def draw(self, width: int) -> Sequence[Line]:
        """Return at most three rows."""
        return waiting_lines(self._texts, width)


def waiting_lines(texts: Sequence[str], width: int) -> tuple[Line, ...]:
    """Return a row for each text, the first and the last of them when they are many, and how many are between."""
    many = len(texts)
    if many <= ROWS:
        return tuple(_row(text, place, many, width) for place, text in enumerate(texts, 1))
    between = SafeText(f" … and {many - 2} more")
    return (
        _row(texts[0], 1, many, width),
        spread([Span(between, "dim")], [], width),
        _row(texts[-1], many, many, width),
    )


def _row(text: str, place: int, many: int, width: int) -> Line:
    number = SafeText(f" waiting {place}/{many}  ")
    room = width - len(number)
    ends = place == many and room >= _TEXT_CELLS + _TAKES_CELLS
    said = flowing(text, room - (_TAKES_CELLS if ends else 1))
    return spread([Span(number, "dim"), Span(said, "you")], _TAKES_BACK if ends else (), width)
