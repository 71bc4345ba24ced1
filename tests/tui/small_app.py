"""The smallest app that shows a widget as Rune's app would: its style sheet and its themes, nothing else."""

from collections.abc import Sequence
from typing import Final

from textual.app import App, ComposeResult
from textual.message import Message
from textual.pilot import Pilot
from textual.widget import Widget

import rune.tui
from rune.text.safe_text import safe_text
from rune.tui.themes import DEFAULT_THEME, THEMES

SHEET: Final = f"{rune.tui.__path__[0]}/rune.tcss"
SIZES: Final = ((40, 15), (80, 24))

HOSTILE: Final = (
    "[b]x[/b][/x]",
    "[@click=app.quit()]x[/]",
    "\x1b]52;c;aGk=\x07",
    "\x1b[2J\x1b[31m",
    "a\x9b31m\x9d0;t\x07",
    "\u202eabc\u2066\u200b",
    "漢字" * 60,
    "\U0001f468\u200d\U0001f469\u200d\U0001f467" * 40,
    "e" + "\u0301" * 60,
    "a\nb\rc\td",
    "\ud800\U000e0041\u2028",
    "x" * 5000,
)


class SmallApp(App[None]):
    """Shows some widgets and keeps what they told."""

    CSS_PATH = SHEET

    def __init__(
        self, *widgets: Widget, theme: str = DEFAULT_THEME, listens: Sequence[type[Message]] = (), ansi: bool = False
    ) -> None:
        super().__init__(ansi_color=ansi or None)
        self.widgets = widgets
        self.told: list[Message] = []
        self.pasted: list[str] = []
        self._first_theme = theme
        self._listens = tuple(listens)
        for each in THEMES:
            self.register_theme(each)

    def compose(self) -> ComposeResult:
        yield from self.widgets

    def on_mount(self) -> None:
        self.theme = self._first_theme

    async def _on_message(self, message: Message) -> None:
        if isinstance(message, self._listens):
            self.told.append(message)
        await super()._on_message(message)

    def said(self, kind: type[Message]) -> list[Message]:
        return [message for message in self.told if isinstance(message, kind)]


async def settled(app: App[None], pilot: Pilot[None]) -> None:
    """Let everything that works in the background end, and what it brought be painted."""
    await pilot.pause()
    await app.workers.wait_for_complete()  # pyright: ignore[reportUnknownMemberType]  # tests look inside
    await pilot.pause()


def screen_rows(app: App[None]) -> list[str]:
    """Return what stands on the screen, a row each."""
    # There is no public way to read the screen as text; this is what is painted.
    strips = app.screen._compositor.render_strips()  # pyright: ignore[reportPrivateUsage]  # tests look inside
    return [strip.text.rstrip() for strip in strips]


def screen_text(app: App[None]) -> str:
    """Return what stands on the screen, as one text."""
    return "\n".join(screen_rows(app))


def is_safe(text: str) -> bool:
    """Say whether a terminal would act on nothing in it."""
    return safe_text(text, tabs=False) == text
