"""One of many, by name: a filter on top, the rows below. Opens at once and fills in when the rows have come.

It hangs from the top of the screen, so that the filter stays where it is when the rows come.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar, Final, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.screen import ModalScreen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Input

from rune.errors import RuneError
from rune.text.safe_text import SafeText, safe_text
from rune.tui.fit import cut_line, foreign, narrowed, spread
from rune.tui.hints import in_the_app
from rune.tui.lines import MARK, Line, Span, line
from rune.tui.painting import LINE_CLASSES, Painter, line_classes
from rune.tui.ranking import ranked
from rune.tui.widgets.filter_input import LONGEST, FilterInput
from rune.tui.widgets.line_rows import LineRows

_FIXED_ROWS: Final = 2  # title and filter
_MOST_ROWS: Final = 40
KEYS: Final = (("enter", " chooses"), ("esc", " leaves"))
Keys = Sequence[tuple[str, str]]  # each a key and what it does; the first of them go first where it is narrow


class PickerRow(NamedTuple):
    """A row: `name` is what choosing it gives, `find` what the filter looks through, `draw` returns it in as many
    cells as it is given. One that is not `open` is shown and cannot be chosen.
    """

    name: str
    find: str
    draw: Callable[[int], Line]
    open: bool = True


class Found(NamedTuple):
    """What there is to choose from, and what else is to be said of it (what could not be asked, say)."""

    rows: Sequence[PickerRow]
    notes: Sequence[str] = ()


class PickerRows(ScrollView, can_focus=False):
    """The rows, one line each; only those that are seen are drawn."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set(LINE_CLASSES)
    ALLOW_SELECT = False

    class Chosen(Message):
        """The person chose this row."""

        def __init__(self, rows: "PickerRows", name: str) -> None:
            super().__init__()
            self.rows = rows
            self.name = name

        @property
        def control(self) -> "PickerRows":
            """The list that it was chosen from."""
            return self.rows

    def __init__(self) -> None:
        super().__init__()
        self._rows: Sequence[PickerRow] = ()
        self._at = 0
        self._painter = Painter(self)

    def notify_style_update(self) -> None:
        """Look the colours up anew."""
        super().notify_style_update()
        self._painter.forget()

    @property
    def under_cursor(self) -> PickerRow | None:
        """The row that Enter would choose."""
        return self._rows[self._at] if self._rows else None

    def show(self, rows: Sequence[PickerRow], *, keep: str = "") -> None:
        """Show these from now on, with the cursor on the row of that name, else on the first one."""
        self._rows = rows
        self._at = next((place for place, row in enumerate(rows) if keep and row.name == keep), 0)
        self.virtual_size = Size(0, len(rows))
        self._reveal()
        self.refresh()

    def move(self, by: int) -> None:
        """Go on by rows; at either end it stays."""
        if self._rows:
            self._at = min(max(self._at + by, 0), len(self._rows) - 1)
            self._reveal()
            self.refresh()

    def choose(self) -> None:
        """Take the row under the cursor, if it may be taken."""
        row = self.under_cursor
        if row is not None and row.open:
            self.post_message(self.Chosen(self, row.name))

    def render_line(self, y: int) -> Strip:
        """Paint one row."""
        width = self.scrollable_content_region.width
        place = self.scroll_offset.y + y
        if place >= len(self._rows):
            return self._painter.blank(width)
        drawn = self._rows[place].draw(max(width - 2, 1))
        if place != self._at:
            return self._painter.strip(cut_line(line(Span(SafeText("  ")), *drawn.spans), width), width)
        whole = spread((Span(SafeText(f"{MARK} ")), *drawn.spans), (), width)
        return self._painter.strip(line(*(Span(text, f"{style} chosen") for text, style in whole.spans)), width)

    def on_resize(self) -> None:
        """Keep the cursor where it can be seen."""
        self._reveal()

    def on_click(self, event: Click) -> None:
        """Choose the row that was clicked."""
        place = self.scroll_offset.y + event.y
        if place < len(self._rows):
            self._at = place
            self.refresh()
            self.choose()

    def _reveal(self) -> None:
        if not self.size.height:
            return  # nothing is laid out yet, and everything would seem to be out of sight
        self.scroll_to_region(Region(0, self._at, 1, 1), animate=False, force=True, x_axis=False)


class PickerLine(LineRows):
    """What is chosen here, and which keys there are."""

    COMPONENT_CLASSES: ClassVar[set[str]] = line_classes("strong", "key", "bad")

    def __init__(self, title: str, keys: Keys = KEYS) -> None:
        super().__init__()
        self._title = SafeText(f" {title} ")
        self._keys = keys

    def draw(self, width: int) -> Sequence[Line]:
        """Return the one row."""
        title = Span(self._title, "strong")
        forms = [_help(self._keys[gone:]) for gone in range(len(self._keys))]
        parts = {"title": ((title,),), "keys": (*forms, ())}
        fitting = narrowed(parts, ["keys"] * len(forms), width)
        return (spread([title], fitting["keys"], width),)


class PickerNotes(LineRows):
    """What is to be said of the rows: that they come, that there are none, what went wrong."""

    COMPONENT_CLASSES: ClassVar[set[str]] = line_classes("strong", "key", "bad", "warning")

    _texts: Sequence[tuple[str, str]] = ()

    def show(self, texts: Sequence[tuple[str, str]]) -> None:
        """Say these from now on, each a text and its style; they may hold foreign text."""
        self._texts = [text for text in texts if text[0]]
        self.redraw()

    def draw(self, width: int) -> Sequence[Line]:
        """Return them, wrapped at spaces into six rows each at most."""
        return [row for text, style in self._texts for row in _sentence(text, style, width)]


class Picker(ModalScreen[str | None]):
    """Gives the `name` of what was chosen, None when it was left.

    `load` may raise RuneError, which is shown in place of the rows. `empty` says what to do where there are none.
    `query` stands in the filter from the beginning, `asks` is said there while nothing does.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "leave", "Leave"),
        Binding("up", "move(-1)", "Up", show=False, priority=True),
        Binding("down", "move(1)", "Down", show=False, priority=True),
        Binding("pageup", "page(-1)", "Page up", show=False, priority=True),
        Binding("pagedown", "page(1)", "Page down", show=False, priority=True),
    ]
    CSS_PATH = "picker.tcss"

    def __init__(
        self,
        title: str,
        load: Callable[[], Awaitable[Found]],
        *,
        empty: str,
        current: str = "",
        query: str = "",
        asks: str = "type to narrow",
        keys: Keys = KEYS,
    ) -> None:
        super().__init__()
        self._query = safe_text(query[:LONGEST], newlines=False, tabs=False)
        self._asks = asks
        self._title = title
        self._keys = keys
        self._load = load
        self._empty = empty
        self._current = current
        self._found: Found | None = None
        self._error: RuneError | None = None

    def compose(self) -> ComposeResult:
        """Put the filter above the rows, and what is to be said below them."""
        with Vertical(id="picker"):
            yield PickerLine(self._title, self._keys)
            yield FilterInput(self._query, placeholder=self._asks, compact=True, select_on_focus=False)
            yield PickerRows()
            yield PickerNotes()

    def on_mount(self) -> None:
        """Ask for the rows."""
        typed = self.query_one(FilterInput)
        typed.focus()
        typed.cursor_position = len(typed.value)
        self._show()
        self._fit()
        self.run_worker(self._fill(), name="rows", exclusive=True)

    async def _fill(self) -> None:
        try:
            self._found = await self._load()
        except RuneError as error:
            self._error = error
        self._show(keep=self._current)
        self._fit()

    def on_resize(self) -> None:
        """Be as high as is needed for this width."""
        self._fit()

    def _fit(self) -> None:
        """Be as high as all rows and what is said of them need; the screen's own height is the limit.

        Narrowing does not change it: nothing moves while one types.
        """
        box = self.query_one("#picker")
        notes = len(self.query_one(PickerNotes).draw(box.content_size.width or self.size.width))
        box.styles.height = box.gutter.height + _FIXED_ROWS + min(max(self._height(), 1), _MOST_ROWS) + notes

    def _height(self) -> int:
        """Return how many rows there shall be room for."""
        return len(self._found.rows) if self._found is not None else 0

    def _show(self, keep: str = "") -> None:
        rows = self._found.rows if self._found is not None else ()
        query = self._typed()
        matching = [rows[position] for position in ranked(query, [row.find for row in rows])]
        self._put([*matching, *self._besides(query)], keep=keep)
        self._say(query, any_shown=bool(matching))

    def _besides(self, query: str) -> Sequence[PickerRow]:
        """Return what can be chosen below the rows that match, because of what was typed."""
        del query
        return ()

    def _put(self, rows: Sequence[PickerRow], keep: str) -> None:
        """Show these rows; where there are none, what is said of that stands directly below the filter."""
        shown = self.query_one(PickerRows)
        shown.display = bool(rows)
        shown.show(rows, keep=keep)

    def _typed(self) -> str:
        return self.query_one(FilterInput).value

    def _say(self, query: str, *, any_shown: bool) -> None:
        self.query_one(PickerNotes).show(self._said(query, any_shown=any_shown))

    def _said(self, query: str, *, any_shown: bool) -> Sequence[tuple[str, str]]:
        """Return what is said below the rows, with its style: the state of things first."""
        if self._error is not None:
            return [(self._error.message, "bad"), (in_the_app(self._error.hint), "")]
        if self._found is None:
            return [("loading …", "dim")]
        notes = [(note, "dim") for note in self._found.notes]
        if not self._found.rows:
            return [(self._empty, ""), *notes]
        return notes if any_shown else [(f"nothing here matches “{query}”", "dim")]

    @on(Input.Changed)
    def _narrow(self, event: Input.Changed) -> None:
        event.stop()
        self._narrowed()

    def _narrowed(self) -> None:
        """Show what the filter leaves now."""
        self._show()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._entered()

    def _entered(self) -> None:
        """Choose the row under the cursor."""
        self.query_one(PickerRows).choose()

    @on(PickerRows.Chosen)
    def _chosen(self, event: PickerRows.Chosen) -> None:
        event.stop()
        self.dismiss(event.name)

    def action_move(self, by: int) -> None:
        """Go to another row."""
        self.query_one(PickerRows).move(by)

    def action_page(self, by: int) -> None:
        """Go a page on."""
        rows = self.query_one(PickerRows)
        rows.move(by * max(rows.size.height - 1, 1))

    def action_leave(self) -> None:
        """Choose nothing."""
        self.dismiss(None)


def _help(keys: Sequence[tuple[str, str]]) -> tuple[Span, ...]:
    spans: list[Span] = []
    for key, does in keys:
        spans += [Span(SafeText("  ")), Span(SafeText(key), "key"), Span(SafeText(does), "dim")]
    return (*spans, Span(SafeText(" ")))


def _sentence(text: str, style: str, width: int, rows: int = 6) -> list[Line]:
    out: list[Line] = []
    words = safe_text(text[:2000], newlines=False, tabs=False).split(" ")
    while words and len(out) < rows:
        taken = SafeText(words.pop(0))
        while words and len(f" {taken} {words[0]} ") <= width:
            taken = SafeText(f"{taken} {words.pop(0)}")
        if words and len(out) == rows - 1:
            taken = SafeText(" ".join([taken, *words]))
        out.append(line(Span(SafeText(" ")), Span(foreign(taken, max(width - 2, 1)), style)))
    return out
