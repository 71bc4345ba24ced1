"""What stands around the transcript of the chat screen: header, what waits, footer."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from textual.app import ComposeResult
from textual.screen import Screen
from textual.timer import Timer

from rune.records.messages import Channel
from rune.tui.footer_state import FooterState
from rune.tui.glance import header_state, model_name
from rune.tui.widgets.errand_bar import ErrandBar
from rune.tui.widgets.footer import Footer
from rune.tui.widgets.header import Header
from rune.tui.widgets.held_bar import HeldBar
from rune.tui.widgets.notice_bar import NoticeBar
from rune.tui.widgets.prompt import Prompt
from rune.tui.widgets.shell_row import ShellRow
from rune.tui.widgets.transcript import TranscriptView
from rune.tui.widgets.trust_bar import TrustBar
from rune.tui.widgets.waiting import WaitingMessages
from rune.version import __version__

if TYPE_CHECKING:  # what a desk needs is imported after the app's first picture
    from rune.tui.desk import Desk

AGAIN: Final = "ctrl+c again leaves"
HINT_SECONDS: Final = 2.0
TICK_SECONDS: Final = 0.25


class Seen(NamedTuple):
    """What the bars speak of. `early` was sent before there was a desk; `unread` channels have news."""

    desk: "Desk | None"
    folder: str
    channel: Channel
    view: TranscriptView
    early: Sequence[str]
    unread: Collection[Channel]


def above_the_prompt() -> ComposeResult:
    """Give what stands between the transcript and the prompt; what has nothing to say takes no room."""
    yield TrustBar()
    yield HeldBar()
    yield NoticeBar()
    yield ErrandBar()
    yield WaitingMessages()
    yield ShellRow()


class ChatBars:
    """Gives the bars of `screen` what they show, which `look` tells.

    While a turn runs the footer is shown anew four times a second: figures that change with every token can be
    read by nobody.
    """

    def __init__(self, screen: Screen[None], look: Callable[[], Seen], question: Callable[[], None]) -> None:
        self._hint = ""
        self._progress = ""
        self._asked_until = float("-inf")
        self._screen = screen
        self._look = look
        self._show_question = question
        self._hint_timer: Timer | None = None
        self._progress_timer: Timer | None = None
        self._tick: Timer | None = None
        self._told: object = None

    def say(self, text: str) -> None:
        """Let the footer say this for a moment."""
        self._hint = text
        if self._hint_timer is not None:
            self._hint_timer.stop()
        self._hint_timer = self._screen.set_timer(HINT_SECONDS, self._forget)
        self.show_footer()

    def show_progress(self, text: str, *, lasting: bool = False) -> None:
        """Let the footer say how far something is, when nothing else is to be said: for a moment, or until this is
        called again.
        """
        self._progress = text
        if self._progress_timer is not None:
            self._progress_timer.stop()
        self._progress_timer = None if lasting else self._screen.set_timer(HINT_SECONDS, self._forget_progress)
        self.show_footer()

    def asks_again(self) -> bool:
        """Ask for one more key to leave; False when that was done a moment ago, whatever has been said since."""
        now = asyncio.get_running_loop().time()
        if now <= self._asked_until:
            return False
        self._asked_until = now + HINT_SECONDS
        self.say(AGAIN)
        return True

    def puts_back(self, text: str, *, command: bool) -> bool:
        """Put what cannot be sent, as nothing can be written, before what was typed since; False where it can be."""
        desk = self._look().desk
        if desk is None or not desk.refuses(text, command=command):
            return False
        prompt = self._screen.query_one(Prompt)
        typed = prompt.whole_text
        prompt.set_text(f"{text}\n{typed}" if typed else text, as_command=command and not typed)
        self.say("not sent: nothing can be written, only read")
        return True

    def show(self) -> None:
        """Show all of them as things are now."""
        self.show_notice()
        self.show_held()
        self.show_header()
        self.show_errand()
        self.show_waiting()
        self._show_question()
        self.show_shell()
        self.show_footer()

    def show_shell(self) -> None:
        """Show that what is typed is for a shell, as long as that is so."""
        prompt = self._screen.query_one(Prompt)
        self._screen.query_one(ShellRow).show(shell=prompt.is_command and prompt.text.startswith("!"))

    def show_errand(self) -> None:
        """Show how far a model is that is fetched or measured, and the key that stops it now."""
        desk = self._look().desk
        if desk is not None:
            line = desk.errands.line if desk.errands.running is not None else None
            free = not (desk.talk.busy or desk.outbox.waiting)
            self._screen.query_one(ErrandBar).show(line, "esc" if free else "f8")

    def show_header(self) -> None:
        """Show the header as things are now."""
        seen = self._look()
        state = header_state(seen.desk, seen.folder, seen.channel, seen.unread)
        self._screen.query_one(Header).show(state)

    def show_notice(self) -> None:
        """Show that nothing can be written, if that is so."""
        desk = self._look().desk
        if desk is not None:
            self._screen.query_one(NoticeBar).warn(desk.notice)

    def show_held(self) -> None:
        """Show that another Rune has the conversation open, as long as that is so."""
        desk = self._look().desk
        if desk is not None:
            talk = desk.talk
            waits = bool(desk.outbox.waiting)
            self._screen.query_one(HeldBar).offer(talk.holder, waits=waits, brief=not (talk.offers_fork or waits))

    def show_waiting(self) -> None:
        """Show what waits to be sent."""
        seen = self._look()
        texts = list(seen.early)
        if seen.desk is not None:
            texts += [message.text for message in seen.desk.outbox.waiting]
        # What another Rune has open cannot be sent: its own row says what can be done.
        held = seen.desk is not None and seen.desk.outbox.held and not seen.desk.talk.held_elsewhere
        self._screen.query_one(WaitingMessages).show(texts, held=held)

    def show_footer(self) -> None:
        """Show the footer as things are now."""
        seen = self._look()
        talk = seen.desk.talk if seen.desk is not None else None
        errand = seen.desk is not None and seen.desk.errands.running is not None
        own = seen.desk is not None and seen.desk.own.running is not None
        self._keep_time(running=errand or own or (talk is not None and talk.busy))
        pace = talk.transcript.pace if talk is not None else None
        state = FooterState(
            pace=pace,
            now=asyncio.get_running_loop().time(),
            waiting=len(seen.early) if seen.desk is None else len(seen.desk.outbox.waiting),
            following=seen.view.following,
            below=seen.view.below,
            hint=self._hint or (self._progress if pace is None or pace.phase == "sending" else ""),
            version=__version__,
            model=model_name(seen.desk),
            own=own,
        )
        self._screen.query_one(Footer).show(state)

    def heed(self) -> None:
        """Show the footer and what waits where something other than a figure is different."""
        desk = self._look().desk
        talk = desk.talk if desk is not None else None
        pace = talk.transcript.pace if talk is not None else None
        told = (
            pace and (pace.turn_id, pace.phase),
            talk and (talk.model, talk.thinking, talk.holder, talk.offers_fork, talk.title),
            talk and (talk.permission, talk.asked),
            desk and (desk.outbox.waiting, desk.notice, desk.errands.running, desk.own.running),
        )
        if told != self._told:
            self._told = told
            self.show()

    def _keep_time(self, *, running: bool) -> None:
        if running and self._tick is None:
            self._tick = self._screen.set_interval(TICK_SECONDS, self._ticked)
        elif not running and self._tick is not None:
            self._tick.stop()
            self._tick = None

    def _ticked(self) -> None:
        if (desk := self._look().desk) is not None:
            desk.tick(asyncio.get_running_loop().time())
        self.show_footer()
        self.show_errand()

    def _forget(self) -> None:
        self._hint, self._hint_timer = "", None
        self.show_footer()

    def _forget_progress(self) -> None:
        self._progress, self._progress_timer = "", None
        self.show_footer()
