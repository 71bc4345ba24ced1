"""The row at the bottom of the screen."""

from collections.abc import Sequence
from typing import ClassVar

from rune.tui.footer_state import FooterState, footer_line
from rune.tui.lines import Line
from rune.tui.painting import line_classes
from rune.tui.widgets.line_rows import LineRows


class Footer(LineRows):
    """Shows a `FooterState`."""

    COMPONENT_CLASSES: ClassVar[set[str]] = line_classes("accent", "key", "strong", "warning")

    DEFAULT_CSS = """
    Footer {
        dock: bottom;
        height: 1;
        background: $surface;
    }
    """

    _state = FooterState()

    def show(self, state: FooterState) -> None:
        """Show this from now on."""
        if state != self._state:
            self._state = state
            self.redraw()

    def draw(self, width: int) -> Sequence[Line]:
        """Return the one row."""
        return (footer_line(self._state, width),)
