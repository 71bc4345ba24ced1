"""The smallest app around a prompt, and what it was told."""

from textual import on
from textual.app import ComposeResult
from textual.events import Key, Paste
from textual.geometry import Region
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from rune.surface.commands.completion import Candidates
from rune.tui.key_runs import KeyRunApp
from rune.tui.widgets.prompt import Prompt


class PromptApp(KeyRunApp):
    """A prompt at the bottom of an empty screen. `told` is what it told, but for edits."""

    CSS = "Static { height: 1fr; }"
    ENABLE_COMMAND_PALETTE = False

    def __init__(self) -> None:
        super().__init__()
        self.told: list[Message] = []
        self.keys: list[str] = []

    def compose(self) -> ComposeResult:
        yield Static("above", markup=False)
        yield Prompt()

    @property
    def prompt(self) -> Prompt:
        return self.query_one(Prompt)

    @property
    def sent(self) -> list[tuple[str, bool]]:
        return [(event.text, event.command) for event in self.told if isinstance(event, Prompt.Submitted)]

    @on(Prompt.Submitted)
    @on(Prompt.HistorySearchAsked)
    @on(Prompt.InterruptAsked)
    @on(Prompt.QuitAsked)
    @on(Prompt.EscapePressed)
    def _note(self, event: Message) -> None:
        self.told.append(event)

    def on_key(self, event: Key) -> None:
        self.keys.append(event.key)


def paste(prompt: Widget, text: str) -> None:
    prompt.post_message(Paste(text))


def burst(prompt: Widget, keys: str, *, start: float = 1000.0, gap: float = 0.0002) -> None:
    """Have the keys come as a terminal without bracketed paste sends them, `gap` seconds apart."""
    names = {"\r": "enter", "\n": "ctrl+j", "\t": "tab"}
    for place, char in enumerate(keys):
        key = Key(names.get(char, char), char)
        key.time = start + place * gap
        prompt.post_message(key)


def shown(prompt: Widget) -> list[str]:
    """Return the rows as they are drawn, without white space at their ends."""
    return [strip.text.rstrip() for strip in prompt.render_lines(Region(0, 0, *prompt.size))]


async def no_candidates(line: str) -> Candidates:
    del line
    return Candidates()
