"""Rows above the prompt: that nothing can be written, and what is offered and not asked."""

from collections.abc import Sequence
from typing import ClassVar, Final

from textual.geometry import Size

from rune.text.safe_text import SafeText
from rune.tui.fit import ELLIPSIS, cut_line, flowing, spread
from rune.tui.lines import Line, Span, line
from rune.tui.markdown.wrapping import plain
from rune.tui.painting import line_classes
from rune.tui.widgets.line_rows import LineRows

_LEAST_TEXT: Final = 8
_SHARE_OF_SCREEN: Final = 3


class NoticeBar(LineRows):
    """Shows why nothing can be written as long as that is so, and what an ended Rune left unsent until it is taken or
    dropped.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = line_classes("key", "you", "warning")

    _texts: tuple[str, ...] = ()
    _warning = ""
    _most = 1

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return how many rows it takes: the warning at most a third of the screen."""
        most = max(1, viewport.height // _SHARE_OF_SCREEN)
        if most != self._most:
            self._most = most
            self._rows_for = -1
        return super().get_content_height(container, viewport, width)

    def warn(self, text: str) -> None:
        """Show this, as much of it as there is room for; "": nothing is wrong."""
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
        return (*warning_lines(self._warning, width, self._most), *unsent)


def warning_lines(text: str, width: int, most: int | None = None) -> tuple[Line, ...]:
    """Return a warning in rows of this width, each a cell away from both edges; none for no text. `most` rows, with
    an ellipsis where that is not all.
    """
    if not text:
        return ()
    cells = max(width - 2, 1)
    rows = [*plain(" ".join(text.split()), cells, "warning")]
    if most is not None and len(rows) > most:
        rows = rows[:most]
        rows[-1] = cut_line(line(*rows[-1].spans, Span(ELLIPSIS, "warning")), cells)
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
