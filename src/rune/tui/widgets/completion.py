"""How a slash command could go on: a few rows over the prompt, which keeps the keyboard."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar, Final

from rich.cells import cell_len
from textual.events import Click
from textual.geometry import Offset, Size
from textual.timer import Timer

from rune.errors import RuneError
from rune.records.ids import is_id
from rune.surface.commands.completion import Candidates, Completion
from rune.text.safe_text import SafeText
from rune.tui.fit import foreign, spread
from rune.tui.lines import MARK, Line, Span, line
from rune.tui.painting import line_classes
from rune.tui.ranking import ranked
from rune.tui.widgets.layout import when_laid_out
from rune.tui.widgets.line_rows import LineRows
from rune.tui.widgets.prompt import Prompt

Source = Callable[[str], Awaitable[Candidates]]

ROWS: Final = 8
OPTIONS: Final = 200
DEBOUNCE_SECONDS: Final = 0.03
# So many candidates are narrowed at once, which takes a millisecond; more of them slice by slice, between keys.
SLICE: Final = 500
_NAME_SHARE: Final = 0.6
_ENOUGH_OF_AN_ID: Final = 4  # less ends several by chance


class CompletionPopup(LineRows):
    """Asks `source` for what could follow the command up to the cursor, and shows what of it was begun to be typed.

    It looks for its prompt on its own screen. Up and Down choose, Tab takes, and goes on to what a command may be
    followed by. Enter takes what was begun to be typed (not what only its note speaks of) or gone to, unless it stands
    there already (of an id its end will do), else it sends: no argument comes into a command that was finished without
    one. Esc closes it until another word is begun.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = line_classes("command", "chosen")

    DEFAULT_CSS = """
    CompletionPopup {
        overlay: screen;
        width: 100%;
        background: $surface;
    }
    """

    def __init__(self, source: Source, *, id: str | None = None) -> None:  # noqa: A002  # Textual's name
        super().__init__(id=id)
        self._source = source
        self._line: str | None = None
        self._known: tuple[str, Candidates] | None = None  # what stood before the word, and how it could go on
        self._shut_for: str | None = None
        self._shown_for: str | None = None
        self._options: Sequence[Completion] = ()
        self._at = -1
        self._moved = False
        self._top = 0
        self._timer: Timer | None = None

    def on_mount(self) -> None:
        """Offer help to the prompt."""
        self._prompt = self.screen.query_one(Prompt)
        self._prompt.helper = self
        when_laid_out(self, self._place)

    @property
    def options(self) -> Sequence[Completion]:
        """What it offers now, the likeliest first."""
        return self._options

    @property
    def chosen(self) -> Completion | None:
        """What Tab would take."""
        return self._options[self._at] if 0 <= self._at < len(self._options) else None

    def follow(self) -> None:
        """Look at what stands before the cursor now."""
        line = self._prompt.command_line
        if line == self._line:
            return
        self._line = line
        if line is None:
            self._shut_for = self._known = None
            self._show((), None)
            return
        self._narrow(line)
        if self._timer is None:
            self._timer = self.set_timer(DEBOUNCE_SECONDS, self._ask)

    def takes_key(self, key: str) -> bool:
        """Act on a key of the prompt; False when it means nothing here."""
        self.follow()  # the prompt's word of what was typed just now may still be on its way
        if not self._options:
            return False
        match key:
            case "up" | "down":
                self._move(-1 if key == "up" else 1)
            case "tab":
                self._take(self.chosen or self._options[0], go_on=True)
            case "enter":
                return self._takes_enter()
            case "escape":
                self._shut_for = self._before_word(self._line or "")
                self._show((), None)
            case _:
                return False
        return True

    def draw(self, width: int) -> Sequence[Line]:
        """Return the rows around the chosen one."""
        rows = self._options[self._top : self._top + self._most()]
        widest = max((cell_len(foreign(row.text, width)) for row in rows), default=0)
        cells = max(1, min(widest, int(width * _NAME_SHARE)))
        return [self._row(place, cells, width) for place, _ in enumerate(rows, self._top)]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return how many rows it takes."""
        return min(super().get_content_height(container, viewport, width), self._most())

    def on_click(self, event: Click) -> None:
        """Take the row that was clicked."""
        event.stop()
        place = self._top + event.y
        if place < len(self._options):
            self._take(self._options[place], go_on=True)

    def _row(self, place: int, cells: int, width: int) -> Line:
        option, chosen = self._options[place], place == self._at
        name = foreign(option.text, cells)
        padded = SafeText(name + " " * (cells - cell_len(name)))
        count = f" {place + 1}/{len(self._options)} " if chosen and len(self._options) > ROWS else " "
        if chosen and not self._enter_would_take:
            count = f" tab{count}"
        room = max(0, width - cells - 4 - len(count))
        left = (
            Span(SafeText(f"{MARK} " if chosen else "  ")),
            Span(padded, "command"),
            Span(SafeText("  ")),
            Span(foreign(option.note, room), "dim"),
        )
        whole = spread(left, (Span(SafeText(count), "dim"),), width)
        return line(*(Span(text, f"{style} chosen") for text, style in whole.spans)) if chosen else whole

    def _most(self) -> int:
        """Return how many rows there is room for above the prompt."""
        return max(1, min(ROWS, self._prompt.region.y))

    def _move(self, by: int) -> None:
        self._moved = True
        self._at = (self._at + by) % len(self._options)
        self._reveal()

    def _reveal(self) -> None:
        most = self._most()
        self._top = max(0, min(self._top, self._at, len(self._options) - most), self._at - most + 1)
        self.redraw()
        self._place()

    @property
    def _enter_would_take(self) -> bool:
        """Whether Enter would take the choice: not what was not asked for, and not what stands there already."""
        line, option = self._line, self.chosen
        if line is None or option is None or self._shown_for != line:
            return False
        word = self._word(line)
        if self._moved:
            return option.text != word
        # What fits by its note alone is worth a look, and is not what was begun to be typed.
        return (
            bool(word)
            and bool(ranked(word, [option.text]))
            and not any(_is_named(option.text, word) for option in self._options)
        )

    def _takes_enter(self) -> bool:
        option = self.chosen
        if option is None or not self._enter_would_take:
            self._show((), None)
            return False
        self._take(option)
        return True

    def _take(self, option: Completion, *, go_on: bool = False) -> None:
        if self._line is None or self._known is None or self._shown_for != self._line:
            return
        start = self._known[1].start
        self._prompt.complete(start, option.text)
        # What was taken is there: nothing is to be offered for it until more is typed.
        self._line = self._prompt.command_line
        self._show((), None)
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        if go_on and start == 0 and self._line is not None:
            self.run_worker(self._offer_argument(self._line), name="argument", group="completion", exclusive=True)

    async def _offer_argument(self, command: str) -> None:
        """Begin the next word of a command that there is one for, unless something else is being done meanwhile."""
        try:
            candidates = await self._source(f"{command} ")
        except RuneError:
            return
        prompt = self._prompt
        at_end = prompt.cursor_location == prompt.document.end
        follows = bool(candidates.options) and candidates.start == len(command) + 1
        if not follows or not at_end or prompt.command_line != command:
            return
        prompt.complete(len(command), " ")
        self._line = prompt.command_line
        self._known = f"{command} "[: candidates.start], candidates
        self._narrow(f"{command} ")

    def _before_word(self, line: str) -> str:
        return line[: self._known[1].start] if self._known is not None else line

    def _word(self, line: str) -> str:
        return line[len(self._before_word(line)) :]

    def _ask(self) -> None:
        self._timer = None
        if self._line is not None:
            self.run_worker(self._fetch(self._line), name="completion", group="completion", exclusive=True)

    async def _fetch(self, asked: str) -> None:
        try:
            candidates = await self._source(asked)
        except RuneError:  # a subsystem is ill: its command will say so, and can be typed without help
            candidates = Candidates()
        if asked != self._line:
            return
        before = asked[: candidates.start]
        if before != self._shut_for:
            self._shut_for = None
        self._known = before, candidates
        if len(candidates.options) <= SLICE:
            self._narrow(asked)
        else:
            await self._narrow_slowly(asked, candidates)

    def _narrow(self, line: str) -> None:
        """Show what is known already of the word that is being typed; nothing when another one was begun."""
        if self._known is None or not line.startswith(self._known[0]) or self._shut_for == self._known[0]:
            self._show((), None)
            return
        before, candidates = self._known
        if len(candidates.options) <= SLICE:
            self._show(_narrowed(line[len(before) :], candidates.options), line)
        elif self._timer is None:
            self._timer = self.set_timer(DEBOUNCE_SECONDS, self._ask)

    async def _narrow_slowly(self, asked: str, candidates: Candidates) -> None:
        word = asked[candidates.start :]
        found: list[Completion] = []
        for start in range(0, len(candidates.options), SLICE):
            found += _narrowed(word, candidates.options[start : start + SLICE])
            await asyncio.sleep(0)
            if asked != self._line or self._shut_for is not None:
                return
        self._show(_narrowed(word, found), asked)

    def _show(self, options: Sequence[Completion], line: str | None) -> None:
        self._options, self._shown_for = options[:OPTIONS], line
        self._at = 0 if options else -1
        self._moved = False
        self._top = 0
        self.redraw()
        self._place()

    def _place(self, _: object = None) -> None:
        """Lie on the rows just above the prompt."""
        where = Offset(self._prompt.region.x, self._prompt.region.y - min(len(self._options), self._most()))
        if self.display and self.absolute_offset != where:
            self.absolute_offset = where
            self.refresh(layout=True)


def _is_named(text: str, word: str) -> bool:
    """Say whether a word names an option as it stands: in full, or by the end of an id, as lists show it."""
    return word == text or (is_id(text) and len(word) >= _ENOUGH_OF_AN_ID and text.endswith(word))


def _narrowed(word: str, options: Sequence[Completion]) -> Sequence[Completion]:
    """Return the options that a word could mean, the likeliest first; by their notes only where no name fits."""
    found = [options[place] for place in ranked(word, [option.text for option in options])]
    return found or [options[place] for place in ranked(word, [option.note for option in options])]
