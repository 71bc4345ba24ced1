"""A row of answers to one question: arrows move, Enter chooses, and nothing counts before it could be read."""

from collections.abc import Sequence
from typing import ClassVar, Final, NamedTuple

from textual.events import Click, Key, Paste
from textual.message import Message

from rune.host.clock import Clock
from rune.text.safe_text import SafeText
from rune.tui.lines import MARK, Line, Span, line
from rune.tui.painting import line_classes
from rune.tui.widgets.line_rows import LineRows

# What was typed on the way to something else must not answer a question that has just come up.
READING_SECONDS: Final = 0.3


class Choice(NamedTuple):
    """One answer: `name` for the program, `label` for the person (Rune's own words)."""

    name: str
    label: str


class Choices(LineRows, can_focus=True):
    """Answers side by side, below each other where that is too wide; the first is the one that Enter takes."""

    COMPONENT_CLASSES: ClassVar[set[str]] = line_classes("chosen")

    class Chosen(Message):
        """The person chose this answer."""

        def __init__(self, choices: "Choices", name: str) -> None:
            super().__init__()
            self.choices = choices
            self.name = name

        @property
        def control(self) -> "Choices":
            """The widget that was answered."""
            return self.choices

    class TypedPast(Message):
        """A printable key came that is no answer: it belongs to the prompt."""

        def __init__(self, key: str, character: str) -> None:
            super().__init__()
            self.key = key
            self.character = character

    class PastedPast(Message):
        """A text was pasted, which is no answer: it belongs to the prompt."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, choices: Sequence[Choice], clock: Clock, *, id: str | None = None) -> None:  # noqa: A002  # Textual's name
        super().__init__(id=id)
        self._choices = tuple(choices)
        self._clock = clock
        self._at = 0
        self._since = clock.monotonic()

    def begin(self) -> None:
        """Ask anew: the first answer is the one to be chosen, once it could be read."""
        self._at = 0
        self._since = self._clock.monotonic()
        self.redraw()

    def move(self, by: int) -> None:
        """Go to another answer; at either end it stays."""
        self._at = min(max(self._at + by, 0), len(self._choices) - 1)
        self.redraw()

    def choose(self, at: int | None = None) -> None:
        """Take the answer under the cursor, or another one; too early it does nothing."""
        if self._clock.monotonic() - self._since >= READING_SECONDS:
            self.post_message(self.Chosen(self, self._choices[self._at if at is None else at].name))

    def draw(self, width: int) -> Sequence[Line]:
        """Return the answers, with a mark before the one under the cursor."""
        labels = [Span(SafeText(f"  {choice.label}")) for choice in self._choices]
        labels[self._at] = Span(SafeText(f"{MARK} {self._choices[self._at].label}"), "chosen")
        if self._stacked(width):
            return tuple(line(Span(SafeText(" ")), label) for label in labels)
        return (line(*(span for label in labels for span in (Span(SafeText(" ")), label))),)

    def on_key(self, event: Key) -> None:
        """Move, choose, or pass on what was typed for the prompt."""
        if event.key in {"left", "right"}:
            self.move(-1 if event.key == "left" else 1)
        elif event.key == "enter":
            self.choose()
        elif event.is_printable and event.character is not None:
            # A paste without its brackets comes as keys; an Enter among them is no answer either.
            self._since = self._clock.monotonic()
            self.post_message(self.TypedPast(event.key, event.character))
        else:
            return
        event.stop()
        event.prevent_default()

    def on_paste(self, event: Paste) -> None:
        """Pass on what was pasted."""
        self._since = self._clock.monotonic()
        self.post_message(self.PastedPast(event.text))
        event.stop()

    def on_click(self, event: Click) -> None:
        """Choose the answer that was clicked."""
        at = self._under(event.x, event.y)
        if at is not None:
            self.choose(at)
        event.stop()

    def _stacked(self, width: int) -> bool:
        return sum(len(choice.label) + 3 for choice in self._choices) > width

    def _under(self, x: int, y: int) -> int | None:
        if self._stacked(self.size.width):
            return y if y < len(self._choices) else None
        start = 1
        for at, choice in enumerate(self._choices):
            if start <= x < start + len(choice.label) + 2:
                return at
            start += len(choice.label) + 3
        return None
