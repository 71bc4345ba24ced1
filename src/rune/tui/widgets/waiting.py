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
_SENDS: Final = (Span(SafeText("  enter"), "key"), Span(SafeText(" sends it "), "dim"))
_TAKES_CELLS: Final = 20
_SENDS_CELLS: Final = 17
_TEXT_CELLS: Final = 20


class WaitingMessages(LineRows):
    """Shows the texts that wait, the next to be sent first; the newest one is the one that Esc takes back."""

    COMPONENT_CLASSES: ClassVar[set[str]] = line_classes("key", "you")

    _texts: tuple[str, ...] = ()
    _held = False

    def show(self, texts: Sequence[str], *, held: bool = False) -> None:
        """Show these from now on; none: it takes no room. `held`: they wait for the person, not for a turn."""
        if (tuple(texts), held) != (self._texts, self._held):
            self._texts, self._held = tuple(texts), held
            self.redraw()

    def draw(self, width: int) -> Sequence[Line]:
        """Return at most three rows."""
        return waiting_lines(self._texts, width, held=self._held)


def waiting_lines(texts: Sequence[str], width: int, *, held: bool = False) -> tuple[Line, ...]:
    """Return a row for each text, the first and the last of them when they are many, and how many are between. The
    last one says which key takes it back, and where they are `held`, which one sends them on.
    """
    many = len(texts)
    if many <= ROWS:
        return tuple(_row(text, place, many, width, held=held) for place, text in enumerate(texts, 1))
    between = SafeText(f" … and {many - 2} more")
    return (
        _row(texts[0], 1, many, width, held=held),
        spread([Span(between, "dim")], [], width),
        _row(texts[-1], many, many, width, held=held),
    )


def _row(text: str, place: int, many: int, width: int, *, held: bool) -> Line:
    number = SafeText(f" waiting {place}/{many}  ")
    room = width - len(number)
    keys, cells = _TAKES_BACK, _TAKES_CELLS
    if held:
        both = room >= _TEXT_CELLS + _SENDS_CELLS + _TAKES_CELLS
        keys, cells = ((*_SENDS, *_TAKES_BACK), _SENDS_CELLS + _TAKES_CELLS) if both else (_SENDS, _SENDS_CELLS)
    ends = place == many and room >= _TEXT_CELLS + cells
    said = flowing(text, room - (cells if ends else 1))
    return spread([Span(number, "dim"), Span(said, "you")], keys if ends else (), width)
