"""The screen on which a person talks with Rune: wires its widgets to the desk."""

from collections.abc import Awaitable
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.timer import Timer

from rune.host.clock import Clock
from rune.records.messages import Channel
from rune.surface.commands.completion import Candidates
from rune.tui.app_start import CHANNELS
from rune.tui.bridge import TalkChanged, TurnEnded
from rune.tui.greeting import greeted
from rune.tui.screens.chat_bars import ChatBars, Seen, above_the_prompt
from rune.tui.screens.chat_keys import CHAT_KEYS
from rune.tui.screens.question_screen import QuestionScreen
from rune.tui.transcript_state import Transcript, newest_answer
from rune.tui.widgets.completion import CompletionPopup
from rune.tui.widgets.footer import Footer
from rune.tui.widgets.header import Header
from rune.tui.widgets.notice_bar import NoticeBar
from rune.tui.widgets.prompt import Prompt
from rune.tui.widgets.transcript import TranscriptView
from rune.tui.widgets.trust_bar import TrustBar

if TYPE_CHECKING:  # what these need is imported when they are wanted: the first picture comes before
    from rune.tui.desk import Desk

DRAFT_SECONDS: Final = 0.4


class ChatScreen(QuestionScreen):
    """Header, transcript of the channel in front, what waits, the prompt, footer."""

    AUTO_FOCUS = "Prompt"
    BINDINGS: ClassVar[list[BindingType]] = [*CHAT_KEYS]

    class LeaveAsked(Message):
        """The person wants to leave."""

    def __init__(self, folder: str, channel: Channel, clock: Clock) -> None:
        super().__init__(clock)
        self.channel: Channel = channel
        self._folder = folder
        self._early: list[Prompt.Submitted] = []
        self._draft_timer: Timer | None = None
        self._stashed: dict[Channel, str] = dict.fromkeys(CHANNELS, "")
        self._stashed_command: dict[Channel, bool] = {}
        self._unread: set[Channel] = set()
        self._unsent: dict[Channel, tuple[str, ...]] = {}
        self._bars = ChatBars(self, self._seen, self.show_question)
        self._views = {each: TranscriptView(id=f"transcript-{each}") for each in CHANNELS}
        for view in self._views.values():
            view.can_focus = False  # the keyboard is the prompt's: a click to get the terminal's focus must not take it

    def compose(self) -> ComposeResult:
        """Put them below each other."""
        yield Header()
        # The other channel's is mounted when it is first looked at.
        yield self._views[self.channel]
        yield from above_the_prompt()
        yield Prompt()
        yield Footer()
        yield CompletionPopup(self._candidates)

    def on_mount(self) -> None:
        """Show what is known already."""
        self._prompt.place = self.channel
        self._bars.show()

    @property
    def transcript(self) -> Transcript:
        """What is shown of the channel in front."""
        return self.desk.talk.transcript if self.desk is not None else Transcript()

    def show_opening(self, text: str) -> None:
        """Say how far the opening is; once it is done, for a moment, how far the views are that are made anew."""
        if self.desk is None:
            self._bars.show_progress(text, lasting=True)
        else:
            self._bars.show_progress(text)

    def unsent(self) -> tuple[str, ...]:
        """Return everything that was typed and not sent."""
        early = [event.text for event in self._early]
        return tuple(text for text in [*early, *self.prompts().values()] if text.strip())

    def prompts(self) -> dict[Channel, str]:
        """Return what stands in the prompt of each channel."""
        return {**self._stashed, self.channel: self._prompt.whole_text}

    def hand_over(self, desk: "Desk") -> None:
        """Leave to a desk what was sent before it was there, to be kept."""
        for event in self._early:
            desk.outbox.keep(event.text, pasted=event.pasted)
        self._early = []

    async def attach(self, desk: "Desk") -> None:
        """Go on with what can answer. What was typed before is done now."""
        history = await desk.history()
        # From here on without a pause: what was sent before must not be overtaken by what is sent now.
        self.desk = desk
        self._bars.show_progress("", lasting=True)
        if desk.channel != self.channel:
            self._go_to(desk.channel)
        for channel, talk in desk.talks.items():
            self._views[channel].show(greeted(talk))
        self._prompt.use_history(history)
        self.query_one(NoticeBar).offer(desk.offered)
        early, self._early = self._early, []
        for event in early[::-1] if desk.notice else early:  # what comes back to the prompt comes before what is there
            self._submitted(event)
        self._bars.show()
        self.run_worker(self._look_around(desk), name="look around")

    async def _look_around(self, desk: "Desk") -> None:
        """Find out what takes a moment and is only shown: which model will answer, whether to ask for trust."""
        await self._ask_for_trust()
        await desk.look_for_model()
        self._bars.show_header()

    @on(Prompt.Submitted)
    def _submitted(self, event: Prompt.Submitted) -> None:
        event.stop()
        if self.desk is None:
            self._early.append(event)
            self._bars.show_waiting()
            return
        if not event.text.strip():
            self.desk.outbox.go_on()
            return
        if self._bars.puts_back(event.text, command=event.command) or self.keeps_letter(event.text):
            return
        self.run_worker(self.desk.remember(event.text, command=event.command), name="history")
        if event.command and event.text.startswith("!"):
            self._views[event.place or self.channel].follow()
            self.desk.own.start(self.desk.talks[event.place or self.channel], event.text[1:])
        elif event.command and self.desk.surface.commands.is_command(event.text):
            self.run_worker(self._command(event.text), name="command")
        else:  # `/etc/hosts is odd` is a message
            sent_in = event.place or self.channel  # a key that changes the channel may have come right behind Enter
            if not self.desk.talks[sent_in].busy:  # what waits shows below the transcript, wherever one reads in that
                self._views[sent_in].follow()
            self.desk.say(event.text, pasted=event.pasted, channel=sent_in)
        self._schedule_draft()

    async def _command(self, line: str) -> None:
        if self.desk is None:
            return
        at = ""
        match line.split():
            case ["/model"]:
                await self._pick_model()
                return
            case ["/trust"]:
                await self._decide_trust()
                return
            case ["/resume"] | ["/sessions" | "/search", *_]:
                from rune.tui.screens import dialogs

                picked = await dialogs.pick_conversation(self._rune, self.desk, line, self._clock)
                self._bars.show()  # looking for them may have found that nothing can be written any more
                if picked is None:
                    return
                line, at = f"/resume {picked.conversation_id}", picked.message_id
            case _:
                pass
        await self._led(self.desk, self.desk.command(line), at)

    async def _led(self, desk: "Desk", doing: Awaitable[object], at: str = "") -> None:
        """Show where a command led: at that message if there is one, else at the end."""
        done = await doing
        self._go_to(desk.channel)
        self._views[self.channel].show(greeted(desk.talk), at=at if done is not None else "")
        self._bars.show()

    @on(Prompt.Edited)
    def _edited(self, event: Prompt.Edited) -> None:
        event.stop()
        self._views[self.channel].unmark()
        self._bars.show_shell()
        self.show_question()
        self._schedule_draft()

    @on(Prompt.EscapePressed)
    def _escape(self, event: Prompt.EscapePressed) -> None:
        event.stop()
        if self.desk is None:
            return
        if (text := self.desk.outbox.take_back()) is not None:
            typed = self._prompt.whole_text
            self._prompt.set_text(f"{text}\n{typed}" if typed else text)
        elif not self.desk.talk.read_on() and not self.desk.own.stop() and not self.desk.outbox.cancel():
            self.desk.errands.stop()

    @on(Prompt.InterruptAsked)
    def _interrupt(self, event: Prompt.InterruptAsked) -> None:
        event.stop()
        if selected := self.get_selected_text():
            self._copy(selected)
        elif self.desk is not None and (self.desk.own.stop() or self.desk.outbox.cancel()):
            return
        elif not self._bars.asks_again():
            self.post_message(self.LeaveAsked())

    @on(Prompt.QuitAsked)
    def _quit(self, event: Prompt.QuitAsked) -> None:
        event.stop()
        self.post_message(self.LeaveAsked())

    @on(Prompt.HistorySearchAsked)
    def _history_search_asked(self, event: Prompt.HistorySearchAsked) -> None:
        event.stop()
        self.run_worker(self._search_history(), name="dialog")

    async def _search_history(self) -> None:
        from rune.tui.screens import dialogs

        if self.desk is not None and (found := await dialogs.search_history(self._rune, self.desk)) is not None:
            self._prompt.set_text(found.text, as_command=found.command)

    async def _candidates(self, line: str) -> Candidates:
        return await self.desk.candidates(line) if self.desk is not None else Candidates()

    @on(TalkChanged)
    def _talk_changed(self, event: TalkChanged) -> None:
        event.stop()
        talk = event.talk
        self._views[talk.channel].show(greeted(talk))
        if talk.channel == self.channel:
            self._bars.heed()
        if self.desk is None:
            return
        unsent = self.desk.outboxes[talk.channel].unsent
        if unsent != self._unsent.get(talk.channel):
            self._unsent[talk.channel] = unsent
            self._schedule_draft()

    @on(TurnEnded)
    async def _turn_ended(self, event: TurnEnded) -> None:
        event.stop()
        if event.talk.channel != self.channel:
            self._unread.add(event.talk.channel)
        await event.talk.measure()
        self._schedule_draft()
        self._bars.show()

    @on(TranscriptView.FollowChanged)
    def _follow_changed(self, event: TranscriptView.FollowChanged) -> None:
        event.stop()
        self._bars.show_footer()

    @on(TranscriptView.CopyAsked)
    def _copy_asked(self, event: TranscriptView.CopyAsked) -> None:
        event.stop()
        self._copy(event.text)

    async def _ask_for_trust(self) -> None:
        """Show whether files here wait for a word of the person's."""
        if self.desk is not None and (status := await self.desk.trust.status()) is not None:
            self.query_one(TrustBar).ask(status if self.desk.trust.is_asked(status) else None)

    async def _decide_trust(self) -> None:
        from rune.tui.screens import dialogs

        if self.desk is not None:
            await dialogs.decide_trust(self._rune, self.desk, self._clock)
            await self._ask_for_trust()

    def _seen(self) -> Seen:
        early = [event.text for event in self._early]
        return Seen(self.desk, self._folder, self.channel, self._views[self.channel], early, self._unread)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Let a key through to the prompt where its action has nothing to do."""
        if action == "offered":
            offered = self.desk is not None and bool(self.desk.offered)
            return offered and (parameters != ("take",) or not self._prompt.text)
        if action == "fork":
            return self.desk is not None and self.desk.talk.held_elsewhere
        if action == "stop_errand":
            return self.desk is not None and self.desk.errands.running is not None
        return super().check_action(action, parameters)

    def action_offered(self, what: Literal["take", "drop"]) -> None:
        """Put what an ended Rune left unsent into the prompt, or forget it."""
        if self.desk is None:
            return
        if what == "take":
            self._prompt.set_text(self.desk.take_offered())
        else:
            self.desk.offered = ()
            self._schedule_draft()
        self.query_one(NoticeBar).offer(self.desk.offered)

    def action_fork(self) -> None:
        """Go on in a fork of what another Rune has open."""
        if self.desk is not None:
            self.run_worker(self._led(self.desk, self.desk.fork_held()), name="command")

    def action_stop_errand(self) -> None:
        """Stop the fetching or measuring of a model."""
        if self.desk is not None:
            self.desk.errands.stop()

    def action_dialog(self, name: str) -> None:
        """Show the help, choose a model, or look at the files that would instruct, and decide."""
        dialogs = {"help": self._help, "models": self._pick_model, "trust": self._decide_trust}
        self.run_worker(dialogs[name](), name="dialog")

    async def _pick_model(self) -> None:
        from rune.tui.screens import dialogs

        if self.desk is not None and (said := await dialogs.pick_model(self._rune, self.desk, self._clock)):
            self._bars.say(said)
        self._bars.show()

    def action_fold(self, what: Literal["words", "tools"]) -> None:
        """Open or fold what is in view: thinking and long texts, or what tools did."""
        self._views[self.channel].toggle(what)

    def action_copy(self) -> None:
        """Copy what is selected, else the newest answer."""
        if selected := self.get_selected_text():
            self._copy(selected)
        elif (answer := newest_answer(self.transcript)) is not None:
            self._copy(answer)
        else:
            self._bars.say("there is no answer to copy yet")

    def action_copy_code(self) -> None:
        """Copy the lowest code block in view, else the nearest above."""
        self._views[self.channel].action_copy_code()

    async def _help(self) -> None:
        from rune.tui.screens import dialogs

        if self.desk is not None:
            await dialogs.show_help(self._rune, self.desk)

    def action_channel(self, channel: Channel) -> None:
        """Bring a channel to the front."""
        self._go_to(channel)

    def action_page(self, pages: int) -> None:
        """Scroll the transcript by pages, or what waits for an answer."""
        if not self.pages_question(pages):
            self._views[self.channel].page(pages)

    def action_ends(self, end: int) -> None:
        """Go to the transcript's beginning (below 0) or end."""
        view = self._views[self.channel]
        view.to_top() if end < 0 else view.follow()

    def _go_to(self, channel: Channel) -> None:
        if channel == self.channel:
            return
        self._stashed[self.channel] = self._prompt.whole_text
        self._stashed_command[self.channel] = self._prompt.is_command
        self.channel = self._prompt.place = channel
        self._unread.discard(channel)
        if not self._views[channel].is_attached:
            self.mount(self._views[channel], after=self.query_one(Header))
        for each, view in self._views.items():
            view.display = each == channel
        self._prompt.set_text(self._stashed[channel], as_command=self._stashed_command.get(channel, False))
        if self.desk is not None:
            self.desk.channel = channel
        self._bars.show()

    def say(self, text: str) -> None:
        """Let the footer say this for a moment."""
        self._bars.say(text)

    def _copy(self, text: str) -> None:
        self._rune.copy_to_clipboard(text)
        lines = text.count("\n") + 1
        self._bars.say("copied" if lines == 1 else f"copied {lines:,} lines")

    def _schedule_draft(self) -> None:
        if self._draft_timer is None and self.desk is not None:
            self._draft_timer = self.set_timer(DRAFT_SECONDS, self._save_draft)

    def _save_draft(self) -> None:
        self._draft_timer = None
        if self.desk is not None:
            self.run_worker(partial(self.desk.save_draft, self.prompts()), name="draft")
