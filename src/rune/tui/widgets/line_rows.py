"""A widget that is a few rows of lines: each row is repainted only when it has changed."""

from collections.abc import Sequence
from typing import ClassVar, Final

from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from rune.tui.lines import Line
from rune.tui.painting import Painter, line_classes

_SOME_WIDTH: Final = 80  # for a widget that has none yet: whether there is anything to draw does not depend on it


class LineRows(Widget):
    """As high as what `draw` returns; with nothing to draw it is not there. What uses more styles names them."""

    COMPONENT_CLASSES: ClassVar[set[str]] = line_classes("dim")
    ALLOW_SELECT = False
    DEFAULT_CSS = """
    LineRows {
        height: auto;
        width: 1fr;
    }
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002  # Textual's name
        super().__init__(id=id)
        self._painter = Painter(self)
        self._rows: tuple[Line, ...] = ()
        self._rows_for = -1

    def draw(self, width: int) -> Sequence[Line]:
        """Return the rows for this many cells; to be overridden."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Show what has become of it."""
        width = self.size.width
        before, rows = self._rows, tuple(self.draw(width or _SOME_WIDTH))
        self.display = bool(rows)
        if width == 0 or len(rows) != len(before) or self._rows_for != width:
            self._rows_for = -1
            self.refresh(layout=True)
            return
        self._rows = rows
        changed = [Region(0, y, width, 1) for y, row in enumerate(rows) if row != before[y]]
        if changed:
            self.refresh(*changed)

    def on_mount(self) -> None:
        """Be there only when there is something to draw."""
        self.redraw()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return how many rows it takes."""
        return len(self._drawn(width))

    def render_line(self, y: int) -> Strip:
        """Paint one row."""
        width = self.size.width
        rows = self._drawn(width)
        if y >= len(rows):
            return self._painter.blank(width)
        return self._painter.strip(rows[y], width)

    def notify_style_update(self) -> None:
        """Look the colours up anew."""
        super().notify_style_update()
        self._painter.forget()

    def _drawn(self, width: int) -> tuple[Line, ...]:
        if self._rows_for != width:
            self._rows, self._rows_for = tuple(self.draw(width)), width
        return self._rows
