"""The row at the top of the screen."""

from collections.abc import Sequence
from typing import ClassVar

from rune.tui.header_state import HeaderState, header_line
from rune.tui.lines import Line
from rune.tui.painting import line_classes
from rune.tui.widgets.line_rows import LineRows


class Header(LineRows):
    """Shows a `HeaderState`."""

    COMPONENT_CLASSES: ClassVar[set[str]] = line_classes("accent", "strong", "good", "warning", "bad")

    DEFAULT_CSS = """
    Header {
        dock: top;
        height: 1;
        background: $surface;
    }
    """

    _state = HeaderState()

    def show(self, state: HeaderState) -> None:
        """Show this from now on."""
        if state != self._state:
            self._state = state
            self.redraw()

    def draw(self, width: int) -> Sequence[Line]:
        """Return the one row."""
        return (header_line(self._state, width),)
