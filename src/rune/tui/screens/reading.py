"""A text to be read over everything else: it scrolls, with a row that names the keys, and nobody writes in it."""

import asyncio
from collections.abc import Callable, Sequence
from typing import ClassVar, Final, TypeVar

from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.scroll_view import ScrollView
from textual.strip import Strip

from rune.text.safe_text import SafeText
from rune.tui.fit import cut_line, width_of
from rune.tui.lines import Line, Span, line
from rune.tui.painting import LINE_CLASSES, Painter, line_classes
from rune.tui.widgets.line_rows import LineRows

Answer = TypeVar("Answer")
Keys = Sequence[tuple[str, str]]  # each a key and what it does

SCROLLING: Final = (("↑↓", "scroll"), ("pgup pgdn", "pages"), ("home end", "ends"))


class ReadingScreen(ModalScreen[Answer]):
    """Has one ScrolledText, which the keys move whatever has the focus."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "scroll(-1)", "Up", show=False),
        Binding("down", "scroll(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown,space", "page(1)", "Page down", show=False),
        Binding("home", "ends(-1)", "Top", show=False),
        Binding("end", "ends(1)", "Bottom", show=False),
    ]

    def action_scroll(self, by: int) -> None:
        """Move the text by rows."""
        self.query_one(ScrolledText).scroll_relative(y=by, animate=False)

    def action_page(self, by: int) -> None:
        """Move the text by pages."""
        text = self.query_one(ScrolledText)
        text.scroll_relative(y=by * max(text.size.height - 1, 1), animate=False)

    def action_ends(self, to: int) -> None:
        """Show the beginning or the end of the text."""
        text = self.query_one(ScrolledText)
        text.scroll_to(y=0 if to < 0 else text.virtual_size.height, animate=False)


class ScrolledText(ScrollView, can_focus=False):
    """Lines of any length, laid out anew for each width by `lay_out`, beside the keys: it may take seconds."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set(LINE_CLASSES)
    ALLOW_SELECT = False
    DEFAULT_CSS = """
    ScrolledText {
        height: 1fr;
        padding: 0 1;
        overflow-x: hidden;
        overflow-y: auto;
    }
    """

    def __init__(self, lay_out: Callable[[int], Sequence[Line]]) -> None:
        super().__init__()
        self._lay_out = lay_out
        self._rows: Sequence[Line] = ()
        self._rows_for: int = -1
        self._painter = Painter(self)

    def notify_style_update(self) -> None:
        """Look the colours up anew."""
        super().notify_style_update()
        self._painter.forget()

    def on_resize(self) -> None:
        """Lay it out anew where the width has changed."""
        # A column stays free for the scrollbar, so that wrapping never depends on whether there is one.
        width = max(self.size.width - 1, 1)
        if width != self._rows_for:
            self._rows_for = width
            self.run_worker(self._wrap(width), name="wrapping", exclusive=True)

    def render_line(self, y: int) -> Strip:
        """Paint one row."""
        width = self.scrollable_content_region.width
        row = self.scroll_offset.y + y
        if row >= len(self._rows):
            return self._painter.blank(width)
        return self._painter.strip(self._rows[row], width)

    async def _wrap(self, width: int) -> None:
        self._rows = await asyncio.to_thread(self._lay_out, width)
        self.virtual_size = Size(width, len(self._rows))
        self.refresh()


class KeysRow(LineRows):
    """Which keys there are, in as many rows as they need."""

    COMPONENT_CLASSES: ClassVar[set[str]] = line_classes("key")

    def __init__(self, keys: Keys) -> None:
        super().__init__()
        self._keys = tuple(keys)

    def draw(self, width: int) -> Sequence[Line]:
        """Return the rows."""
        rows: list[list[Span]] = []
        for key, does in self._keys:
            spans = [Span(SafeText(key), "key"), Span(SafeText(f" {does}"), "dim")]
            if rows and width_of(rows[-1]) + len("   ") + width_of(spans) <= width:
                rows[-1] += [Span(SafeText("   ")), *spans]
            else:
                rows.append([Span(SafeText(" ")), *spans])
        return tuple(cut_line(line(*row), width) for row in rows)
