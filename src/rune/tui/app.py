"""RuneApp: opens what it is given, shows one screen, leaves in order. It decides nothing."""

import asyncio
import base64
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

import msgspec
from textual import on
from textual.events import Event, Key, Paste

from rune.errors import RuneError
from rune.host.clock import Clock, SystemClock
from rune.text.storable import storable
from rune.tui.app_start import AppStart
from rune.tui.bridge import TalkChanged, TurnEnded
from rune.tui.clipboard import give_to_tmux
from rune.tui.key_runs import KeyRun, KeyRunApp
from rune.tui.screens.chat import ChatScreen
from rune.tui.themes import DEFAULT_THEME, PLAIN_THEME, THEMES, wants_no_colour

if TYPE_CHECKING:  # what these need is imported after the first picture
    from rune.surface.surface import Surface
    from rune.tui.desk import Desk
    from rune.tui.talk import Talk

# What the app is opened with: it gets a function, callable on any thread, that tells how far it is.
Opening = Callable[[Callable[[str], None]], Awaitable["Surface"]]

THEME_NAMES: Final = tuple(theme.name for theme in THEMES)


class RuneApp(KeyRunApp, inherit_bindings=False):
    """The terminal app. `failure` is what kept it from opening; `goodbye` what to print once it has gone."""

    # The first screen's is read with the app's: one that came with its screen would have all of it parsed anew.
    CSS_PATH = ["rune.tcss", "screens/chat.tcss"]  # noqa: RUF012  # Textual's type for it
    TITLE = "Rune"
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, opening: Opening, *, start: AppStart, clock: Clock | None = None) -> None:
        plain = wants_no_colour(os.environ)
        if not plain:
            os.environ.pop("NO_COLOR", None)  # empty it asks for nothing, and Textual takes it for a wish all the same
        super().__init__(ansi_color=True if plain else None)
        self.failure: Exception | None = None
        self.goodbye: tuple[str, ...] = ()
        self.chat = ChatScreen(start.folder, start.channel, clock or SystemClock())
        self._opening = opening
        self._start = start
        self._desk: Desk | None = None
        self._early: list[Event] | None = []
        self._leaving = False
        for theme in THEMES:
            self.register_theme(theme)
        self._plain = plain
        # Not as a change, which would have every style looked up again.
        self.set_reactive(RuneApp.theme, PLAIN_THEME if plain else DEFAULT_THEME)
        self.stylesheet.set_variables(self.get_css_variables())

    def get_default_screen(self) -> ChatScreen:
        """Return the only screen that is always there."""
        return self.chat

    def on_mount(self) -> None:
        """Begin when the first picture was painted: what takes time comes after it."""
        self.chat.call_after_refresh(self._begin)

    async def on_event(self, event: Event) -> None:
        """Keep what is typed before there is a prompt to type into."""
        if self._early is not None and isinstance(event, Key | Paste | KeyRun) and not event.is_forwarded:
            self._early.append(event)
        else:
            await super().on_event(event)

    async def _begin(self) -> None:
        early, self._early = self._early or [], None
        for event in early:
            await super().on_event(event)
        # Once these keys are to be seen: what is imported then keeps the interpreter busy for a while.
        self.chat.call_after_refresh(self._start_opening)

    def _start_opening(self) -> None:
        self.run_worker(self._open(), name="opening")

    async def _open(self) -> None:
        from rune.tui.desk import Desk

        try:
            surface = self._with_commands(await self._opening(self._told))
            self._desk = desk = Desk(surface, self._start, changed=self._changed, ended=self._ended)
            await desk.begin()
        except Exception as error:  # noqa: BLE001  # whatever it is: the screen goes, and the command line says what
            self.failure = error
            self.goodbye = tuple(f"not sent: {text}" for text in self.chat.unsent())
            self.exit(return_code=1)
            return
        await self._restore_theme(surface)
        await self.chat.attach(desk)

    def _told(self, text: str) -> None:
        self.call_later(self.chat.show_opening, text)

    def _changed(self, talk: "Talk") -> None:
        self.chat.post_message(TalkChanged(talk))

    def _ended(self, talk: "Talk") -> None:
        self.chat.post_message(TurnEnded(talk))

    def _with_commands(self, surface: "Surface") -> "Surface":
        from rune.tui.commands import CopyCommand, ExitCommand, KeysCommand, ThemeCommand

        commands = surface.commands.extended(
            [
                CopyCommand(lambda: self.chat.transcript, self.copy_to_clipboard),
                ThemeCommand(lambda: THEME_NAMES, lambda: self.theme, self._choose_theme),
                KeysCommand(),
                ExitCommand(self.leave),
            ]
        )
        return msgspec.structs.replace(surface, commands=commands)

    async def _restore_theme(self, surface: "Surface") -> None:
        name = await asyncio.to_thread(lambda: surface.preferences.theme)
        if name in THEME_NAMES and not self._plain:
            self.theme = name

    def _choose_theme(self, name: str) -> None:
        self.theme = name
        self.run_worker(self._keep_theme(name), name="theme")

    async def _keep_theme(self, name: str) -> None:
        if (desk := self._desk) is None:
            return
        try:
            await asyncio.to_thread(setattr, desk.surface.preferences, "theme", name)
        except RuneError as error:
            desk.talk.tell(f"the theme holds for now and is not kept: {error.message}", error.hint, tier=1)

    def copy_to_clipboard(self, text: str) -> None:
        """Give text to the person's clipboard: through the terminal (OSC 52), and through tmux where that runs."""
        self._clipboard = text
        if self._driver is not None:
            coded = base64.b64encode(storable(text).encode()).decode()
            self._driver.write(f"\x1b]52;c;{coded}\a")
        self.run_worker(asyncio.to_thread(give_to_tmux, storable(text)), name="tmux")

    @on(ChatScreen.LeaveAsked)
    def leave(self) -> None:
        """Keep what is unsent and go; a turn that runs is stopped and stored by who owns it."""
        if not self._leaving:
            self._leaving = True
            self.run_worker(self._leave(), name="leaving")

    async def _leave(self) -> None:
        lost = self.chat.unsent()
        if self._desk is not None:
            self.goodbye = self._desk.goodbye()
            self.chat.hand_over(self._desk)
            lost = await self._desk.close(self.chat.prompts())
        self.goodbye += tuple(f"not sent: {text}" for text in lost)
        self.exit()
