"""One row above the prompt for what is offered and not asked."""

from collections.abc import Sequence
from typing import ClassVar, Final

from rune.text.safe_text import SafeText
from rune.tui.fit import flowing, spread
from rune.tui.lines import Line, Span
from rune.tui.painting import line_classes
from rune.tui.widgets.line_rows import LineRows

_LEAST_TEXT: Final = 8


class NoticeBar(LineRows):
    """Shows what an ended Rune left unsent, until it is taken or dropped."""

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
    """Return what is said of unsent texts: the first words of the first, how many more, what becomes of it by which
    key. Where it is narrow, the text goes before the keys.
    """
    rest = len(texts) - 1
    long, brief = (f"   and {rest} more", f" +{rest}") if rest else ("", "")
    forms = (
        (" unsent from before: “", long, (("up", " takes it, "), ("ctrl+x", " drops it "))),
        (" unsent: “", long, (("up", " takes it, "), ("ctrl+x", " drops it "))),
        (" unsent: “", brief, (("up", " takes, "), ("ctrl+x", " drops "))),
        (" “", brief, (("up", " takes, "), ("ctrl+x", " drops "))),
    )
    start, after, keys = forms[-1]
    room = 0
    for start, after, keys in forms:
        room = width - len(start) - len("”") - len(after) - 3 - sum(len(key) + len(does) for key, does in keys)
        if room >= _LEAST_TEXT:
            break
    said = Span(flowing(texts[0], max(room, 0)), "you")
    left = (Span(SafeText(start), "dim"), said, Span(SafeText(f"”{after}"), "dim"))
    right = [Span(SafeText("   "))]
    for key, does in keys:
        right += [Span(SafeText(key), "key"), Span(SafeText(does), "dim")]
    return spread(left, right, width)
