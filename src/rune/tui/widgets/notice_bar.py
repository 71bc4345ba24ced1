"""One row above the prompt for what is offered and not asked."""

from collections.abc import Sequence
from typing import ClassVar

from rune.text.safe_text import SafeText
from rune.tui.fit import flowing, spread
from rune.tui.lines import Line, Span
from rune.tui.painting import line_classes
from rune.tui.widgets.line_rows import LineRows

_LEAST_TEXT = 8


class NoticeBar(LineRows):
    """Shows what an ended Rune left unsent, until it is taken back or let go."""

    COMPONENT_CLASSES: ClassVar[set[str]] = line_classes("key", "you")

    _texts: tuple[str, ...] = ()

    def offer(self, texts: Sequence[str]) -> None:
        """Offer these unsent texts; none: it takes no room."""
        if tuple(texts) != self._texts:
            self._texts = tuple(texts)
            self.redraw()

    def draw(self, width: int) -> Sequence[Line]:
        """Return one row, or none."""
        return (unsent_line(self._texts, width),) if self._texts else ()


def unsent_line(texts: Sequence[str], width: int) -> Line:
    """Return what is said of unsent texts: the first words of the first, how many more, which key takes them."""
    several = len(texts) > 1
    more = f" and {len(texts) - 1} more" if several else ""
    does = " takes them back " if several else " takes it back "
    before, brief, after = SafeText(" unsent from before: “"), SafeText(" unsent: “"), SafeText(f"”{more}")
    start, action = before, does
    for start, action in ((before, does), (brief, does), (brief, " takes "), (SafeText(" “"), " ")):
        if width - len(start) - len(after) - len("  up") - len(action) >= _LEAST_TEXT:
            break
    said = flowing(texts[0], width - len(start) - len(after) - len("  up") - len(action))
    left = (Span(start, "dim"), Span(said, "you"), Span(after, "dim"))
    return spread(left, (Span(SafeText("  up"), "key"), Span(SafeText(action), "dim")), width)
