"""Rows above the prompt: that nothing can be written, and what is offered and not asked."""

from collections.abc import Sequence
from typing import ClassVar, Final

from rune.text.safe_text import SafeText
from rune.tui.fit import flowing, spread
from rune.tui.lines import Line, Span, line
from rune.tui.markdown.wrapping import plain
from rune.tui.painting import line_classes
from rune.tui.widgets.line_rows import LineRows

_LEAST_TEXT: Final = 8


class NoticeBar(LineRows):
    """Shows why nothing can be written as long as that is so, and what an ended Rune left unsent until it is taken or
    dropped.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = line_classes("key", "you", "warning")

    _texts: tuple[str, ...] = ()
    _warning = ""

    def warn(self, text: str) -> None:
        """Show this in as many rows as it takes; "": nothing is wrong."""
        if text != self._warning:
            self._warning = text
            self.redraw()

    def offer(self, texts: Sequence[str]) -> None:
        """Offer these unsent texts; none: it takes no room."""
        if tuple(texts) != self._texts:
            self._texts = tuple(texts)
            self.redraw()

    def draw(self, width: int) -> Sequence[Line]:
        """Return the rows of the warning, and one of what is unsent; none where there is neither."""
        unsent = (unsent_line(self._texts, width),) if self._texts else ()
        return (*warning_lines(self._warning, width), *unsent)


def warning_lines(text: str, width: int) -> tuple[Line, ...]:
    """Return a warning in rows of this width, each a cell away from both edges; none for no text."""
    if not text:
        return ()
    rows = plain(" ".join(text.split()), max(width - 2, 1), "warning")
    return tuple(line(Span(SafeText(" ")), *row.spans) for row in rows)


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
