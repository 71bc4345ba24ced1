"""Lines become strips: the one place that knows the component classes and turns names of styles into colours."""

import logging
from typing import Final
from weakref import WeakKeyDictionary

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from rune.tui.lines import STYLES, Line


def line_classes(*styles: str) -> set[str]:
    """Return what a widget that paints these styles has among its COMPONENT_CLASSES; `rune.tcss` has a rule for each.

    Textual resolves every one of them for every widget when a screen comes up: who needs few names few.
    """
    return {f"line--{name}" for name in styles}


LINE_CLASSES: Final = frozenset(line_classes(*STYLES))


class Painter:
    """Paints lines for one widget that has LINE_CLASSES. Whoever owns it calls `forget` when styles change."""

    def __init__(self, widget: Widget) -> None:
        self._widget = widget
        self._styles: dict[str, Style] = {}

    def forget(self) -> None:
        """Look all styles up anew: the theme, the background or the terminal's colours are others."""
        self._styles.clear()

    def style(self, names: str = "") -> Style:
        """Return the looks of style names parted by spaces, on the widget's background; a later name wins."""
        known = self._styles.get(names)
        if known is None:
            known = self._styles[names] = self._resolved(names)
        return known

    def strip(self, line: Line, width: int, *, under: str = "", selected: tuple[int, int] | None = None) -> Strip:
        """Paint a line `width` cells wide. `under` names styles that lie under all of it; `selected` are the first
        character that is selected and the one after the last (-1: to the end).
        """
        segments = [Segment(span.text, self.style(f"{under} {span.style}".strip())) for span in line.spans]
        if selected is not None:
            start, end = selected
            segments = _marked(segments, start, len(line.text) if end < 0 else end, self._widget.selection_style)
        return Strip(segments).adjust_cell_length(width, self.style(under))

    def blank(self, width: int) -> Strip:
        """Paint an empty line."""
        return Strip.blank(width, self.style())

    def _resolved(self, names: str) -> Style:
        _, _, background, color = self._widget.colors
        text_style = self._widget.text_style
        # Reversed, every colour would be a ground of its own: what is chosen is one even bar.
        chosen = "chosen" in names.split()
        for name in names.split():
            try:
                rules = self._widget.get_component_styles(f"line--{name}")
            except KeyError:
                # Worse than a line without its colour is an app that ends over it.
                logging.getLogger(__name__).warning("%s does not name the style %r", type(self._widget).__name__, name)
                continue
            text_style += rules.text_style
            if chosen and name != "chosen":
                continue
            if rules.has_rule("background"):
                background += rules.background.tint(rules.background_tint)
            if rules.has_rule("color"):
                color = rules.color.multiply_alpha(rules.text_opacity)
            if rules.has_rule("auto_color") and rules.auto_color:
                color = background.get_contrast_text(color.a)
        return text_style + Style.from_color((background + color).rich_color, background.rich_color)


_PAINTERS: WeakKeyDictionary[Widget, tuple[object, Painter]] = WeakKeyDictionary()


def paint_line(widget: Widget, line: Line, width: int, *, under: str = "") -> Strip:
    """Paint a line of a widget that has LINE_CLASSES and shows only few lines; `under` as in Painter."""
    theme = widget.app.current_theme  # pyright: ignore[reportUnknownMemberType]  # what an app returns does not matter
    looks = (theme.name, theme.ansi, widget.colors, frozenset(widget.pseudo_classes))
    known = _PAINTERS.get(widget)
    if known is None or known[0] != looks:
        known = _PAINTERS[widget] = looks, Painter(widget)
    return known[1].strip(line, width, under=under)


def _marked(segments: list[Segment], start: int, end: int, style: Style) -> list[Segment]:
    """Return the segments with a style over the characters from `start` to before `end`."""
    marked: list[Segment] = []
    at = 0
    for text, own, _ in segments:
        first = max(start - at, 0)
        last = max(end - at, first)
        pieces = ((text[:first], own), (text[first:last], (own or Style()) + style), (text[last:], own))
        marked.extend(Segment(piece, looks) for piece, looks in pieces if piece)
        at += len(text)
    return marked
