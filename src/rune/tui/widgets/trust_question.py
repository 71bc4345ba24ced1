"""Asks whether a folder's files may instruct Rune (terminal.md, Trust), and never takes the keyboard by itself."""

from collections.abc import Sequence
from typing import ClassVar, Final, Literal, cast

from textual import on
from textual.app import ComposeResult
from textual.events import Key
from textual.message import Message
from textual.widget import Widget

from rune.config.trust import TrustStatus
from rune.host.clock import Clock
from rune.text.safe_text import SafeText
from rune.tui.fit import cut, cut_line, foreign, width_of
from rune.tui.lines import Line, Span, line
from rune.tui.painting import line_classes
from rune.tui.widgets.choices import Choice, Choices
from rune.tui.widgets.line_rows import LineRows

TrustAnswer = Literal["not_now", "look", "trust"]

_CHOICES: Final = (Choice("not_now", "Not now"), Choice("look", "Look at them"), Choice("trust", "Trust them"))
_NAMED: Final = 3
_LEAST_NAME: Final = 8
_WORDS: Final = {
    "untrusted": (
        ("Files here would instruct Rune: ", "Instructs Rune if trusted: ", "Untrusted: "),
        ("They are not read unless you trust them.", "Not read unless trusted."),
    ),
    "changed": (
        ("Files that you trusted have changed: ", "Changed since trusted: ", "Changed: "),
        ("None of them is read until you trust them again.", "Not read until trusted again."),
    ),
}


class TrustQuestion(Widget):
    """Two rows of words and a row of answers; not there while nothing is asked.

    `ask` takes the keyboard only when told to; a click answers at any time, a key once the answers have the focus.
    """

    DEFAULT_CSS = """
    TrustQuestion {
        height: auto;
        layout: vertical;
        background: $panel;
        display: none;
    }
    """

    class Answered(Message):
        """The person answered; `status` is what they were shown, and only that may be trusted."""

        def __init__(self, question: "TrustQuestion", choice: TrustAnswer, status: TrustStatus) -> None:
            super().__init__()
            self.question = question
            self.choice: TrustAnswer = choice
            self.status = status

        @property
        def control(self) -> "TrustQuestion":
            """The question that was answered."""
            return self.question

    TypedPast = Choices.TypedPast
    PastedPast = Choices.PastedPast

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._status: TrustStatus | None = None
        self._words = _Words()
        self._choices = Choices(_CHOICES, clock)

    def compose(self) -> ComposeResult:
        """Put the words above the answers."""
        yield self._words
        yield self._choices

    def ask(self, status: TrustStatus, *, focus: bool = False) -> None:
        """Ask about this folder; where there is nothing to ask, ask no longer."""
        if status.state not in _WORDS:
            self.dismiss()
            return
        self._status = status
        self._words.show(status)
        self.display = True
        self._choices.begin()
        if focus:
            self._choices.focus()

    def dismiss(self) -> None:
        """Ask no longer."""
        self._status = None
        self.display = False

    @property
    def asking(self) -> bool:
        """Whether a question is open."""
        return self._status is not None

    def take_focus(self) -> None:
        """Give the keyboard to the answers."""
        self._choices.focus()

    @on(Choices.Chosen)
    def _chosen(self, event: Choices.Chosen) -> None:
        event.stop()
        if self._status is not None:
            self.post_message(self.Answered(self, cast("TrustAnswer", event.name), self._status))

    def on_key(self, event: Key) -> None:
        """Up and down move too; Esc is the first answer."""
        if event.key in {"up", "down"}:
            self._choices.move(-1 if event.key == "up" else 1)
        elif event.key == "escape":
            self._choices.choose(0)
        else:
            return
        event.stop()


class _Words(LineRows):
    """What is asked."""

    COMPONENT_CLASSES: ClassVar[set[str]] = line_classes("strong")

    _status: TrustStatus | None = None

    def show(self, status: TrustStatus) -> None:
        self._status = status
        self.redraw()

    def draw(self, width: int) -> Sequence[Line]:
        return trust_lines(self._status, width) if self._status is not None else ()


def trust_lines(status: TrustStatus, width: int) -> tuple[Line, ...]:
    """Return the question in two rows: which files, and what holds until it is answered; none where none is open."""
    words = _WORDS.get(status.state)
    if words is None:
        return ()
    paths = changed_paths(status)
    firsts, seconds = words
    first = next((SafeText(f" {text}") for text in firsts if len(text) + 20 <= width), SafeText(f" {firsts[-1]}"))
    second = next((SafeText(f" {text}") for text in seconds if len(text) + 1 <= width), SafeText(f" {seconds[-1]}"))
    return (
        cut_line(line(Span(first, "strong"), *_names(paths, width - len(first))), width),
        cut_line(line(Span(second, "dim")), width),
    )


def changed_paths(status: TrustStatus) -> tuple[str, ...]:
    """Return the paths that a question is about: all that would instruct, or those that are not as trusted."""
    if status.state != "changed":
        return tuple(file.path for file in status.instructions.everything)
    # No line of a file begins with @@ in a diff, so what stands before one is a true heading.
    changes = status.changes
    paths = [
        heading.removeprefix("--- trusted/")
        for heading, _, hunk in zip(changes, changes[1:], changes[2:], strict=False)
        if heading.startswith("--- trusted/") and hunk.startswith("@@")
    ]
    return tuple(paths) or tuple(file.path for file in status.instructions.everything)


def _names(paths: Sequence[str], cells: int) -> tuple[Span, ...]:
    """Name as many files as fit, one at least, and say how many there are beside them."""
    for many in range(min(_NAMED, len(paths)), 0, -1):
        named = ", ".join(foreign(path, 60) for path in paths[:many])
        rest = f" and {len(paths) - many} more" if len(paths) > many else ""
        spans = (Span(SafeText(named)), Span(SafeText(rest), "dim"))
        if width_of(spans) <= cells or many == 1:
            return Span(cut(SafeText(named), max(cells - len(rest), _LEAST_NAME))), spans[1]
    return ()
