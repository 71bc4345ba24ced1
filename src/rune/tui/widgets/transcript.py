"""The transcript: a virtual log of lines. One widget however long the conversation, drawn where it is looked at."""

from collections import OrderedDict
from functools import partial, partialmethod
from typing import ClassVar, Final, cast

from textual import on
from textual.binding import Binding, BindingType
from textual.events import Click, Hide, Resize, Show, Unmount
from textual.geometry import Offset, Region, Size
from textual.message import Message
from textual.reactive import Reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from rune.tui.copying import code_from, copied_selection, nearest_code, whole_entry, whole_part
from rune.tui.drawing import Fold, Part, foldable, grows
from rune.tui.line_log import LineLog, Spot
from rune.tui.lines import copied, without_cells
from rune.tui.painting import LINE_CLASSES, Painter
from rune.tui.transcript_state import Transcript
from rune.tui.widgets.drawing_ahead import DrawingAhead

KEPT_STRIPS: Final = 2_000


class TranscriptView(ScrollView, can_focus=True):
    """Shows the `Transcript` it was last given. `following`: it stays at the end while the person has not left it."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set(LINE_CLASSES)
    DEFAULT_CSS = """
    TranscriptView {
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "toggle_thinking", "Thinking", show=False),
        Binding("c", "copy_code", "Copy code", show=False),
    ]

    class FollowChanged(Message):
        """The person left the end or came back to it, or more came meanwhile: about `below` lines not yet seen."""

        def __init__(self, view: "TranscriptView", *, following: bool, below: int) -> None:
            super().__init__()
            self.view = view
            self.following = following
            self.below = below

        @property
        def control(self) -> "TranscriptView":
            """The view it is about."""
            return self.view

    class CopyAsked(Message):
        """The person wants this text on the clipboard."""

        def __init__(self, view: "TranscriptView", text: str) -> None:
            super().__init__()
            self.view = view
            self.text = text

        @property
        def control(self) -> "TranscriptView":
            """The view it came from."""
            return self.view

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002  # Textual's name
        super().__init__(id=id, classes=classes)
        self._log = LineLog()
        self._painter = Painter(self)
        self._strips: OrderedDict[tuple[Part, int], Strip] = OrderedDict()
        self._transcript = Transcript()
        self._following = True
        self._below = 0
        self._told = (True, 0)
        self._asleep = True  # hidden, or not yet laid out: nothing is drawn
        self._behind = False  # a transcript waits to be drawn
        self._sought: str | None = None  # an entry to go to, once it is drawn
        self._placing = False  # the scroll position is ours to set
        self._painting = False
        self._ahead = DrawingAhead(self, partial(self._place, seen=True))

    @property
    def following(self) -> bool:
        """Whether what comes at the end is brought into view."""
        return self._following

    @property
    def below(self) -> int:
        """About how many lines came below since the person left the end."""
        return self._below

    @property
    def lines_drawn(self) -> int:
        """How many lines were laid out so far, whether they were seen or not."""
        return self._log.lines_drawn

    @property
    def busy(self) -> bool:
        """Whether something is still being drawn ahead of the person."""
        return self._ahead.busy

    @property
    def content_lines(self) -> tuple[str, ...]:
        """Everything that could be scrolled to, as text; draws all of it."""
        log = self._log
        return tuple(
            line.text.rstrip()
            for entry in range(len(log.entries))
            for part in range(len(log.parts(entry)))
            for line in log.lines(entry, part)
        )

    def show(self, transcript: Transcript, *, at: str | None = None) -> None:
        """Show a transcript; only what differs from the last one is drawn. `at` is the key of an entry that is brought
        to the top, its first line marked; where there is none of that key, the end is shown.
        """
        self._transcript = transcript
        self._behind = True
        if at is not None:
            self._sought = at
        if not self._asleep:
            self._catch_up()

    def follow(self) -> None:
        """Go to the end and stay there; nothing is marked any longer."""
        self.unmark()
        self._stay()

    def unmark(self) -> None:
        """Mark no line any longer."""
        if self._log.marked:
            self._log.marked = ""
            self.refresh()

    def to_top(self) -> None:
        """Go to the beginning."""
        self._go(0)

    def page(self, pages: int) -> None:
        """Go so many pages down (above 0) or up; a line of the last page stays in view."""
        line = self._top + pages * max(self.size.height - 1, 1)
        self._go(min(max(line, 0), self.max_scroll_y))

    def toggle(self, what: Fold) -> None:
        """Open what of this kind is folded in view, or fold it where all is open; with nothing in view the newest."""
        folds = [entry for entry in self._visible_entries() if foldable(self._log.entries[entry]) == what]
        if not folds:
            numbers = range(len(self._log.entries) - 1, -1, -1)
            folds = [entry for entry in numbers if foldable(self._log.entries[entry]) == what][:1]
        self._fold(folds, opened=not all(self._log.opened(entry) for entry in folds))

    # Thinking and long texts.
    toggle_thinking = action_toggle_thinking = partialmethod(toggle, "words")

    def action_copy_code(self) -> None:
        """Ask for the lowest code block in view to be copied, else for the nearest above."""
        code = nearest_code(self._log, min(self._top + self.size.height, self._log.total) - 1)
        if code is not None:
            self.post_message(self.CopyAsked(self, code))

    def action_scroll_home(self) -> None:
        """Go to the beginning."""
        self.to_top()

    def action_scroll_end(self) -> None:
        """Go to the end."""
        self.follow()

    @on(Resize)
    @on(Show)
    def _wake(self) -> None:
        """Lay out what is in view for the size it has now, with what came while it was hidden."""
        self._asleep = not (self.size and self.display)
        if self._asleep:
            self._ahead.rest()
        else:
            self._catch_up()

    @on(Hide)
    @on(Unmount)
    def _hidden(self) -> None:
        """Do nothing until it is seen again."""
        self._asleep = True
        self._ahead.rest()

    @on(Click)
    def _clicked(self, event: Click) -> None:
        """Do what the line is for: fold, copy, or with two and three clicks select the part and the entry."""
        event.prevent_default()
        offset = event.get_content_offset(self)
        spot = self._log.at(self._top + offset.y) if offset is not None else None
        if spot is None:
            return
        if event.chain > 1:
            ends = whole_part(self._log, spot) if event.chain == 2 else whole_entry(self._log, spot)  # noqa: PLR2004  # double
            self.screen.selections = {self: Selection(*(Offset(end.character, end.spot.number) for end in ends))}
            return
        parts = self._log.parts(spot.entry)
        part = parts[spot.part]
        if self.text_selection is not None or spot.line != part.above:
            return
        if part.action == "fold":
            self._fold([spot.entry], opened=not self._log.opened(spot.entry))
        elif part.action == "copy" and not copied([self._log.lines(spot.entry, spot.part)[spot.line]]):
            self.post_message(self.CopyAsked(self, code_from(parts, spot.part)))

    def notify_style_update(self) -> None:
        """Paint everything anew: the looks are others."""
        super().notify_style_update()
        self._painter.forget()
        self._strips.clear()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Tell what the person scrolls from what the view does itself."""
        super().watch_scroll_y(old_value, new_value)
        if not self._placing and round(old_value) != round(new_value):
            self._go(round(new_value))

    def scroll_to(self, x: float | None = None, y: float | None = None, **_: object) -> None:
        """Scroll at once: an animation would have to know where it ends, and heights are still found out."""
        if y is not None:
            self.scroll_target_y = self.scroll_y = y

    def render_lines(self, crop: Region) -> list[Strip]:
        """Paint; what is in view is laid out before, also where the news of a size has not come through."""
        if self._behind or self._log.width != self._width:
            self._wake()
        self._painting = True
        try:
            return super().render_lines(crop)
        finally:
            self._painting = False

    def render_line(self, y: int) -> Strip:
        """Paint a line of the window; outside of painting with the places that a selection is made of."""
        width = self.size.width
        spot = self._log.at(self._top + y)
        if spot is None:
            return self._painter.blank(width)
        number, selection = spot.number, self.text_selection
        span = selection.get_span(number) if selection is not None else None
        strip = self._strip(spot, width, span)
        return strip if self._painting else strip.apply_offsets(0, number)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return what is copied of a selection, and what parts it from the next widget's."""
        text = copied_selection(self._log, selection)
        return (text, "\n") if text else None

    @property
    def _top(self) -> int:
        return round(self.scroll_y)

    @property
    def _width(self) -> int:
        return max(self.scrollable_content_region.width, 1)

    def _catch_up(self) -> None:
        """Draw what is in view as it is now; only what changed is painted."""
        if self._log.width != self._width:
            self._log.resize(self._width)
            self._strips.clear()
            self.refresh()
        before = self._log.total
        changed = self._log.show(self._transcript) if self._behind else None
        self._behind = False
        if not self._following:
            self._below += max(self._log.total - before, 0)
        if self._sought is None:
            self._place()
        else:
            self._seek(self._sought)
        if changed is not None:
            y = max(self._log.line_of(changed) - self._top, 0)
            # Below the text it is blank, before and after.
            end = min(max(before, self._log.total) - self._top, self.size.height)
            if y < end:
                self.refresh(Region(0, y, self.size.width, end - y))

    def _seek(self, key: str) -> None:
        """Go to an entry, else to the end."""
        self._sought = None
        if not key or not self._log.look_for(key):
            self.follow()
            return
        self._following, self._below = False, 0
        self._place()
        if self._top >= self.max_scroll_y:
            self._stay()
        self.refresh()

    def _stay(self) -> None:
        """Show the end, and what comes there."""
        self._following, self._below = True, 0
        self._place()

    def _go(self, line: int) -> None:
        """Bring a line to the window's top, as the person wants it."""
        if self._asleep:
            return
        log, away = self._log, line - self._log.line_of(self._log.spot)
        self._following = line >= self.max_scroll_y
        if line > 0 and abs(away) <= 2 * self.size.height:
            log.move(away)  # so that no line is passed over, whatever was guessed of it
        else:
            log.look_at(line)
        self._place()
        if self._top >= self.max_scroll_y:
            self._stay()

    def _place(self, *, seen: bool = False) -> None:
        """Draw the window's lines and set extent and position of the scrolling by what they turned out to be.

        `seen`: the window shows these lines already, only their numbers may be others; nothing is painted.
        """
        if self._asleep:
            return
        self._placing = True
        try:
            height = self.size.height
            top = self._log.fill_end(height) if self._following else self._log.fill(height)
            if self._log.total <= height:
                self._following, self._below = True, 0
            extent = Size(self._width, self._log.total)
            if extent != self.virtual_size:
                # Not through the reactive: how long the text is changes nothing of the screen's layout.
                self.set_reactive(cast("Reactive[Size]", Widget.virtual_size), extent)
                if self.show_vertical_scrollbar:
                    self.vertical_scrollbar.window_virtual_size = extent.height
            if seen and top != self._top:
                self.set_scroll(None, top)
                self.vertical_scrollbar.position = top
            self.scroll_target_y = self.scroll_y = top
        finally:
            self._placing = False
        if (self._following, self._below) != self._told:
            self._told = self._following, self._below
            self.post_message(self.FollowChanged(self, following=self._following, below=self._below))
        self._ahead.begin(self._log.ahead(height))

    def _fold(self, entries: list[int], *, opened: bool) -> None:
        """Open or fold entries. What is seen stays, also at the end, unless what was opened is still being written."""
        stays = self._following and not any(grows(self._log.entries[entry]) for entry in entries)
        if stays:
            self._log.look_at(self._top)
            self._following = False
        for entry in entries:
            self._log.toggle(entry, opened=opened)
        self._place()
        if stays and self._top >= self.max_scroll_y:
            self.follow()
        self.refresh()

    def _visible_entries(self) -> range:
        first = self._log.at(self._top)
        last = self._log.at(min(self._top + self.size.height, self._log.total) - 1)
        return range(first.entry, last.entry + 1) if first is not None and last is not None else range(0)

    def _strip(self, spot: Spot, width: int, selected: tuple[int, int] | None) -> Strip:
        part = self._log.parts(spot.entry)[spot.part]
        if self._log.is_marked(spot):
            return self._painter.strip(self._log.lines(spot.entry, spot.part)[spot.line], width, under="chosen")
        kept = self._strips.get((part, spot.line)) if selected is None else None
        if kept is not None:
            self._strips.move_to_end((part, spot.line))
            return kept
        line = self._log.lines(spot.entry, spot.part)[spot.line]
        if selected is not None:
            gutter = len(line.text) - len(without_cells(line.text, line.gutter))
            start, end = selected
            return self._painter.strip(line, width, selected=(max(start, gutter), end))
        strip = self._strips[part, spot.line] = self._painter.strip(line, width)
        while len(self._strips) > KEPT_STRIPS:
            self._strips.popitem(last=False)
        return strip
