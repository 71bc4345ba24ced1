"""A text area that never draws a character that a terminal would act on.

Its document holds every text in pieces (`rune.tui.pieces`), by whatever way it went in; `text` is what they stand for.
A large paste is one piece: one cell column of its label after the other, one backspace to delete it.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import ClassVar, Final, NamedTuple, cast

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import App
from textual.content import Content
from textual.geometry import Offset, Region, Size
from textual.strip import Strip
from textual.widgets import TextArea
from textual.widgets.text_area import DocumentNavigator, Edit, EditResult, Location, Selection

from rune.text.safe_text import SafeText
from rune.text.storable import storable
from rune.tui.pasting import block_label, is_block, is_heavy, normalised
from rune.tui.pieces import Pieces, around
from rune.tui.widgets.layout import when_laid_out
from rune.tui.widgets.sliced_document import Row, SlicedDocument

MARK: Final = "> "
ABOVE: Final = "\N{UPWARDS ARROW} "
BELOW: Final = "\N{DOWNWARDS ARROW} "
ROWS: Final = 8
_LEAST_ROWS: Final = 2
_SHARE_OF_SCREEN: Final = 3


class _Looks(NamedTuple):
    base: Style
    cursor: Style
    selection: Style


class SafeTextArea(TextArea, inherit_bindings=False):
    """As high as its text, up to eight rows and a third of the screen. It binds no keys."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"safe-text-area--mark"}
    DEFAULT_CSS = """
    SafeTextArea {
        height: auto;
        width: 1fr;
        border: none;
        padding: 0;
        background: transparent;
        overflow: hidden;
        &:focus {
            border: none;
        }
        & .safe-text-area--mark {
            color: $text-primary;
            text-style: bold;
        }
    }
    """

    def __init__(self, *, placeholder: str = "", id: str | None = None) -> None:  # noqa: A002 - Textual's name for it
        self._pieces = Pieces()
        self._expanded = ("", "")
        self._drawn = ("", SafeText(""))
        self._looks = _Looks(Style(), Style(), Style())
        self._rows: list[Row] | None = None
        self._most = ROWS
        super().__init__(placeholder=Content(placeholder), highlight_cursor_line=False, id=id)
        self._slice()
        # Nothing moves by itself, and a key costs no search for a bracket's partner.
        self.cursor_blink = False
        self.match_cursor_bracket = False

    @property
    def text(self) -> str:
        """The whole text, what was pasted included."""
        written = self.document.text
        if self._expanded[0] != written:
            self._expanded = (written, self._pieces.original(written))
        return self._expanded[1]

    @text.setter
    def text(self, value: str) -> None:
        self.load_text(value)

    def load_text(self, text: str) -> None:
        """Have this text instead, with the cursor at its end and nothing to undo."""
        self._pieces.forget()
        self._load(self._form_of(text))

    def edit(self, edit: Edit) -> EditResult:
        """Do an edit whose text comes from outside."""
        return self._put(self._pieces.written(normalised(edit.text)), edit)

    def undo(self) -> None:
        """Take back what was edited last."""
        super().undo()
        self.scroll_cursor_visible()

    def redo(self) -> None:
        """Do what was taken back once more."""
        super().redo()
        self.scroll_cursor_visible()

    def paste(self, text: str, start: Location, end: Location) -> None:
        """Put what was pasted in the place of what is there."""
        text = normalised(text)
        if self._pieces.many:
            self._begin_anew()
            start, end = self.selection
        written = self._pieces.written(text)
        # What is drawn may be much longer than the text: eight cells for a character that cannot be shown.
        if is_block(text) or is_block(written):
            written = self._pieces.whole(text, block_label(text))
        self._put(written, Edit(written, start, end, maintain_selection_offset=False))

    def get_line(self, line_index: int) -> Text:
        """Return a line as it is drawn: as many characters as it has."""
        return Text(self._shown(line_index), end="", no_wrap=True)

    def validate_selection(self, selection: Selection) -> Selection:
        """Keep the cursor out of pieces: what goes into one comes out at its other side."""
        return Selection(self._outside(selection.start), self._outside(selection.end))

    @property
    def gutter_width(self) -> int:
        """How many cells the mark at the left takes."""
        return len(MARK)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Paint rows. What is the same for all of them is looked up once."""
        if not self.document.text:
            self._rows = None
            return super().render_lines(crop)
        self._rows = list(self._wrapped.rows(self.scroll_offset.y, self.size.height))
        look_up = self.get_component_rich_style
        self._looks = _Looks(self.rich_style, *(look_up(f"text-area--{name}") for name in ("cursor", "selection")))
        return super(TextArea, self).render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Paint one row, behind the mark or as much room."""
        mark = Segment(self._mark(y), self.get_component_rich_style("safe-text-area--mark"))
        width = max(0, self.size.width - len(MARK))
        if self._rows is None:
            row = super().render_line(y).adjust_cell_length(width, self.rich_style)
        else:
            base = self._looks.base
            segments = self._segments(self._rows[y]) if y < len(self._rows) else ()
            row = Strip(segments).apply_style(base).adjust_cell_length(width, base)
        return Strip([mark, *row], self.size.width)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return how many rows it has: those of its text, within limits."""
        self._most = min(ROWS, max(_LEAST_ROWS, viewport.height // _SHARE_OF_SCREEN))
        return min(max(1, super().get_content_height(container, viewport, width)), self._most)

    def scroll_cursor_visible(self, center: bool = False, animate: bool = False) -> Offset:
        """Bring the cursor into view. A text that fits is never scrolled: there will be room for it in a moment, and
        till then its first rows stay where they are.
        """
        if self.wrapped_document.height > self._most:
            return super().scroll_cursor_visible(center, animate)
        self._recompute_cursor_offset()
        if self.scroll_offset.y:
            self.scroll_to(y=0, animate=False, force=True)
        return Offset(0, 0)

    def action_copy(self) -> None:
        """Copy what is selected."""
        if self.selected_text:
            self._in_app.copy_to_clipboard(storable(self._pieces.original(self.selected_text)))

    def action_cut(self) -> None:
        """Copy what is selected, and delete it."""
        self.action_copy()
        if self.selected_text:
            self.delete(*self.selection, maintain_selection_offset=False)

    def action_paste(self) -> None:
        """Paste what was copied within Rune last."""
        self.paste(self._in_app.clipboard, *self.selection)

    def on_mount(self) -> None:
        """Follow the layout: where the cursor is on the screen changes with it."""
        when_laid_out(self, self._follow_layout)

    def on_resize(self) -> None:
        """Keep the cursor in sight."""
        self.call_after_refresh(self.scroll_cursor_visible)

    def on_paste(self, event: events.Paste) -> None:
        """Take what the terminal says was pasted."""
        event.stop()
        event.prevent_default()
        if not self.read_only and event.text:
            self.paste(event.text, *self.selection)

    def _mark(self, y: int) -> str:
        """Return what stands before a row: the mark before the first one, and where there is more than is seen.

        There is no scroll bar: it would come and go while one types, and the text be wrapped anew.
        """
        place = y + self.scroll_offset.y
        if y == 0 and place > 0:
            return ABOVE
        if y > 0 and y == self.size.height - 1 and place < self._wrapped.height - 1:
            return BELOW
        return MARK if place == 0 else " " * len(MARK)

    def _shown(self, line_index: int) -> SafeText:
        written = self.document.get_line(line_index)
        if self._drawn[0] != written:
            self._drawn = (written, self._pieces.shown(written))
        return self._drawn[1]

    def _segments(self, row: Row) -> Iterator[Segment]:
        """Yield the pieces of a row that look alike."""
        text = self._shown(row.line)
        (top, bottom), cursor = sorted(self.selection), self.selection.end
        # One cell behind a line's end, for the cursor or as the line feed that is selected.
        ends = row.end + 1 if row.last else row.end
        chosen = _between(row, top, bottom, ends) if top != bottom else (0, 0)
        at = cursor[1] if self.has_focus and cursor[0] == row.line and row.start <= cursor[1] < ends else -1
        stops = sorted({row.start, ends, *(stop for stop in (*chosen, at, at + 1) if row.start < stop < ends)})
        tabs = iter(row.tabs)
        for start, end in pairwise(stops):
            style = self._looks.cursor if start == at else None
            if style is None and chosen[0] <= start < chosen[1]:
                style = self._looks.selection
            if style is None and start >= row.end:
                return
            drawn = text[start:end] + " " * (end - max(start, len(text)) if end > len(text) else 0)
            yield Segment("".join(" " * next(tabs, 1) if char == "\t" else char for char in drawn), style)

    @property
    def _in_app(self) -> App[object]:
        # Textual leaves open what its app returns at its end.
        return cast("App[object]", self.app)  # pyright: ignore[reportUnknownMemberType]  # of any type there

    def _load(self, written: str) -> None:
        super().load_text(written)
        self._slice()
        self.move_cursor(self.document.end)
        self.scroll_cursor_visible()

    def _put(self, written: str, edit: Edit) -> EditResult:
        """Do the edit with a text that is written in pieces; a piece that it touches goes as a whole."""
        top, bottom = edit.top, edit.bottom
        top = (top[0], around(self.document[top[0]], top[1])[0])
        bottom = (bottom[0], around(self.document[bottom[0]], bottom[1])[1])
        result = super().edit(Edit(written, top, bottom, edit.maintain_selection_offset))
        # The cursor was moved before it was known how high the text is now.
        self.scroll_cursor_visible()
        return result

    def _slice(self) -> None:
        self._wrapped = SlicedDocument(self.document, self.wrap_width, self.indent_width)
        self.wrapped_document = self._wrapped
        self.navigator = DocumentNavigator(self._wrapped)

    def _form_of(self, text: str) -> str:
        """Return a text that is to be edited as it is to be loaded; one that is too large for that as a block."""
        text = normalised(text)
        if is_heavy(text) or is_heavy(written := self._pieces.written(text)):
            return self._pieces.whole(text, block_label(text))
        return written

    def _begin_anew(self) -> None:
        """Load the text that is there once more: too many pieces were made since it was loaded."""
        self.load_text(self.text)

    def _outside(self, location: Location) -> Location:
        row, column = location
        start, end = around(self.document[row], column)
        return (row, end if location > self.selection.end else start)

    def _follow_layout(self, _: object) -> None:
        """Put the terminal's cursor where the text cursor is: an input method writes there."""
        where = self.cursor_screen_offset
        if self.has_focus and self._in_app.cursor_position != where:
            self._in_app.cursor_position = where
            # The position goes out with the next picture.
            self.refresh()


def _between(row: Row, top: Location, bottom: Location, ends: int) -> tuple[int, int]:
    """Return what of a row is selected, from where to before where."""
    if not top[0] <= row.line <= bottom[0]:
        return 0, 0
    return top[1] if row.line == top[0] else row.start, bottom[1] if row.line == bottom[0] else ends
