"""What would instruct Rune, to be read before it is trusted: the files' texts, or what changed of them."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar, Final, Literal, cast

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from rune.config.trust import TrustStatus
from rune.host.clock import Clock
from rune.text.safe_text import SafeText, safe_text
from rune.tui.fit import fitting, spread
from rune.tui.header_state import short_folder
from rune.tui.lines import Line, Span, line
from rune.tui.painting import line_classes
from rune.tui.screens.reading import SCROLLING, KeysRow, ReadingScreen, ScrolledText
from rune.tui.widgets.choices import Choice, Choices
from rune.tui.widgets.line_rows import LineRows

InstructionsAnswer = Literal["trust", "not_now"]

_BACK: Final = Choice("back", "Back")
_NOT_NOW: Final = Choice("not_now", "Do not trust")
_TRUST: Final = Choice("trust", "Trust")
_READ: Final = (("esc", "back"), *SCROLLING)
_DECIDE: Final = (("←→", "choose"), ("enter", "answers"), *_READ)
_TITLES: Final = {"changed": "What changed since you trusted it", "trusted": "What instructs Rune"}
_TAB: Final = 8


class InstructionsScreen(ReadingScreen[InstructionsAnswer | None]):
    """Gives what the person decided, None when they only looked. Where nothing is to be decided it only shows."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,ctrl+c,f2", "dismiss", "Back")]
    CSS_PATH = "instructions.tcss"

    def __init__(self, status: TrustStatus, clock: Clock) -> None:
        super().__init__()
        self.status = status
        self._clock = clock

    def compose(self) -> ComposeResult:
        """Put the texts between what they are and what may be answered."""
        yield InstructionsTitle(self.status)
        yield ScrolledText(partial(_laid_out, self.status))
        asked = self.status.state in {"untrusted", "changed"}
        yield Choices((_BACK, _NOT_NOW, _TRUST) if asked else (_BACK,), self._clock)
        yield KeysRow(_DECIDE if asked else _READ)

    def on_mount(self) -> None:
        """Let the keyboard answer; the text scrolls all the same."""
        self.query_one(Choices).focus()

    @on(Choices.Chosen)
    def _chosen(self, event: Choices.Chosen) -> None:
        event.stop()
        self.dismiss(None if event.name == _BACK.name else cast("InstructionsAnswer", event.name))

    @on(Choices.TypedPast)
    @on(Choices.PastedPast)
    def _typed_past(self, event: Choices.TypedPast | Choices.PastedPast) -> None:
        event.stop()  # nobody writes here, and the prompt is not to be seen


class InstructionsTitle(LineRows):
    """What is shown."""

    COMPONENT_CLASSES: ClassVar[set[str]] = line_classes("strong", "warning")

    def __init__(self, status: TrustStatus) -> None:
        super().__init__()
        self._status = status

    def draw(self, width: int) -> Sequence[Line]:
        """Return the one row."""
        what = _TITLES.get(self._status.state, "What would instruct Rune")
        title = Span(SafeText(f" {what} "), "strong")
        where = Span(short_folder(self._status.folder, str(Path.home()), max(width - len(what) - 4, 1)), "dim")
        return (spread([title], [where, Span(SafeText(" "))], width),)


def instruction_lines(status: TrustStatus) -> Iterator[Line]:
    """Give the texts line by line, foreign text made safe; one line is as long as it is in its file."""
    if status.state == "changed":
        yield from _differences(status.changes)
    else:
        for file in status.instructions.everything:
            yield line(Span(safe_text(file.path, newlines=False, tabs=False), "heading"))
            yield from (line(Span(_shown(text))) for text in safe_text(file.text).split("\n"))
            yield Line()
    for left in status.left_out:
        path = safe_text(left.path, newlines=False, tabs=False)
        reason = safe_text(left.reason, newlines=False, tabs=False)
        yield line(Span(path), Span(SafeText(" is left out: "), "dim"), Span(reason, "dim"))


def wrapped(whole: Line, width: int) -> Iterator[Line]:
    """Give a line in rows of at most `width` cells, broken wherever a row is full."""
    if len(whole.spans) == 1 and cell_len(whole.spans[0].text[: width + 1]) <= width >= len(whole.spans[0].text):
        yield whole
        return
    row: list[Span] = []
    room = width
    for span in whole.spans:
        rest = str(span.text)
        while rest:
            taken = fitting(rest, room)
            if taken:
                row.append(Span(SafeText(rest[:taken]), span.style))
                room -= cell_len(rest[:taken])
                rest = rest[taken:]
            elif room == width:
                break  # not even one character has room in a row of its own
            if rest:
                yield Line(tuple(row))
                row, room = [], width
    yield Line(tuple(row))


def _laid_out(status: TrustStatus, width: int) -> list[Line]:
    return [row for whole in instruction_lines(status) for row in wrapped(whole, width)]


def _shown(text: str) -> SafeText:
    return SafeText(text.expandtabs(_TAB))


def _differences(changes: Sequence[str]) -> Iterator[Line]:
    marks = {"+": "inserted", "-": "deleted", "@": "dim", "#": "warning"}
    for at, change in enumerate(changes):
        # Only the heading of a file stands before an @@: a removed line that begins with `-- ` cannot pass for one.
        heading = any(later.startswith("@@") for later in changes[at + 1 : at + 3]) and change[:3] in {"---", "+++"}
        yield line(Span(_shown(safe_text(change, newlines=False)), "strong" if heading else marks.get(change[:1], "")))
