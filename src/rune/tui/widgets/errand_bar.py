"""One row above the prompt: how far the fetching or measuring of a model is, and the key that stops it."""

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from rune.text.safe_text import SafeText
from rune.tui.fit import spread, width_of
from rune.tui.lines import Line, Span
from rune.tui.painting import line_classes
from rune.tui.widgets.line_rows import LineRows

_NARROW: Final = 48


class ErrandBar(LineRows):
    """Shows what `line` gives for a width in cells, and takes no room when there is nothing."""

    COMPONENT_CLASSES: ClassVar[set[str]] = line_classes("key", "accent")

    _line: Callable[[int], SafeText] | None = None
    _key = ""

    def show(self, line_of: Callable[[int], SafeText] | None, key: str = "") -> None:
        """Show this as it is now; `key` stops it. None: nothing is done."""
        if line_of is not None or self._line is not None:
            self._line, self._key = line_of, key
            self.redraw()

    def draw(self, width: int) -> Sequence[Line]:
        """Return one row, or none."""
        return () if self._line is None else (errand_line(self._line, self._key, width),)


def errand_line(line_of: Callable[[int], SafeText], key: str, width: int) -> Line:
    """Return how far it is, with the key that stops it; where it is narrow its words go, the key never does."""
    right = (Span(SafeText("  ")), Span(SafeText(key), "key"), Span(SafeText(" stops it "), "dim"))
    if width < _NARROW:
        right = (Span(SafeText(" ")), right[1], Span(SafeText(" ")))
    said = Span(line_of(max(width - 1 - width_of(right), 1)), "accent")
    return spread([Span(SafeText(" ")), said], right, width)
