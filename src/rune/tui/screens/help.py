"""What F1 shows: a text over the conversation, which stays as it is."""

from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from rune.text.safe_text import SafeText
from rune.tui.fit import foreign, spread
from rune.tui.hanging import hanging
from rune.tui.lines import Line, Span
from rune.tui.painting import line_classes
from rune.tui.screens.reading import SCROLLING, KeysRow, ReadingScreen, ScrolledText
from rune.tui.widgets.line_rows import LineRows

_KEYS: Final = (("esc", "leaves"), *SCROLLING)


class HelpScreen(ReadingScreen[None]):
    """Shows a text until the person leaves; its columns stay columns where it is narrow."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,ctrl+c,f1,q,enter", "leave", "Leave", priority=True)]
    CSS_PATH = "help.tcss"

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title = title
        self._text = text

    def compose(self) -> ComposeResult:
        """Put the text between its title and the keys."""
        with Vertical(id="help"):
            yield HelpTitle(self._title)
            yield ScrolledText(partial(hanging, self._text))
            yield KeysRow(_KEYS)

    def action_leave(self) -> None:
        """Go back to the conversation."""
        self.dismiss(None)


class HelpTitle(LineRows):
    """What is shown."""

    COMPONENT_CLASSES: ClassVar[set[str]] = line_classes("strong")

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title

    def draw(self, width: int) -> Sequence[Line]:
        """Return the one row."""
        return (spread([Span(SafeText(" ")), Span(foreign(self._title, max(width - 2, 1)), "strong")], [], width),)
