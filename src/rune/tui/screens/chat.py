"""The screen on which a person talks with Rune: wires its widgets to the desk."""

from typing import TYPE_CHECKING, ClassVar, Final, cast

from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Key, Paste
from textual.message import Message
from textual.screen import Screen
from textual.timer import Timer

from rune.host.clock import SystemClock
from rune.records.messages import Channel
from rune.surface.commands.completion import Candidates
from rune.surface.prompt_history import Sent
from rune.tui.app_start import CHANNELS
from rune.tui.bridge import TalkChanged, TurnEnded
from rune.tui.glance import model_name
from rune.tui.screens.chat_bars import ChatBars, Seen
from rune.tui.screens.trust_dock import TrustDock
from rune.tui.transcript_state import Transcript
from rune.tui.widgets.completion import CompletionPopup
from rune.tui.widgets.footer import Footer
from rune.tui.widgets.header import Header
from rune.tui.widgets.notice_bar import NoticeBar
from rune.tui.widgets.prompt import Prompt
from rune.tui.widgets.transcript import TranscriptView
from rune.tui.widgets.waiting import WaitingMessages

if TYPE_CHECKING:  # what these need is imported when they are wanted: the first picture comes before
    from rune.tui.desk import Desk
    from rune.tui.talk import Waiting

AGAIN: Final = "ctrl+c again leaves"
DRAFT_SECONDS: Final = 0.4


class ChatScreen(Screen[None]):
    """Header, transcript of the channel in front, what waits, the prompt, footer."""

    AUTO_FOCUS = "Prompt"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "take_offered", "Take back", priority=True, show=False),
        Binding("ctrl+l", "models", "Models", priority=True),
        Binding("ctrl+t", "thinking", "Thinking", priority=True),
        Binding("ctrl+y", "copy", "Copy answer", priority=True),
        Binding("f1", "help", "Help", priority=True),
        Binding("f2", "trust", "Trust", priority=True),
        Binding("ctrl+1,f3", "channel('task')", "Task", priority=True),
        Binding("ctrl+2,f4", "channel('chat')", "Chat", priority=True),
        Binding("pageup", "page(-1)", "Page up", priority=True),
        Binding("pagedown", "page(1)", "Page down", priority=True),
        Binding("ctrl+home", "ends(-1)", "Top", priority=True),
        Binding("ctrl+end", "ends(1)", "Bottom", priority=True),
    ]

    class LeaveAsked(Message):
        """The person wants to leave."""

    def __init__(self, folder: str, channel: Channel) -> None:
        super().__init__()
        self.desk: Desk | None = None
        self.channel: Channel = channel
        self._folder = folder
        self._early: list[Prompt.Submitted] = []
        self._draft_timer: Timer | None = None
        self._stashed: dict[Channel, str] = dict.fromkeys(CHANNELS, "")
        self._unread: set[Channel] = set()
        self._waited: dict[Channel, tuple[Waiting, ...]] = {}
        self._bars = ChatBars(self, self._seen)
        self._views = {each: TranscriptView(id=f"transcript-{each}") for each in CHANNELS}
        self._clock = SystemClock()

    def compose(self) -> ComposeResult:
        """Put them below each other."""
        yield Header()
        # The other channel's is mounted when it is first looked at.
        yield self._views[self.channel]
        yield TrustDock()
        yield NoticeBar()
        yield WaitingMessages()
        yield Prompt()
        yield Footer()
        yield CompletionPopup(self._candidates)

    def on_mount(self) -> None:
        """Show what is known already."""
        self._bars.show()

    @property
    def transcript(self) -> Transcript:
        """What is shown of the channel in front."""
        return self.desk.talk.transcript if self.desk is not None else Transcript()

    def show_opening(self, text: str) -> None:
        """Say how far the opening is."""
        if self.desk is None:
            self._bars.hint = text
            self._bars.show_footer()

    def unsent(self) -> tuple[str, ...]:
        """Return everything that was typed and not sent."""
        early = [event.text for event in self._early]
        return tuple(text for text in [*early, *self.prompts().values()] if text.strip())

    def prompts(self) -> dict[Channel, str]:
        """Return what stands in the prompt of each channel."""
        return {**self._stashed, self.channel: self._prompt.whole_text}

    async def attach(self, desk: "Desk") -> None:
        """Go on with what can answer. What was typed before is done now."""
        self.desk = desk
        self._bars.hint = ""
        if desk.channel != self.channel:
            self._go_to(desk.channel)
        for channel, talk in desk.talks.items():
            self._views[channel].show(talk.transcript)
        self._prompt.use_history(await desk.history())
        self.query_one(NoticeBar).offer(desk.offered)
        for event in self._early:
            self._submitted(event)
        self._early.clear()
        self._bars.show()
        self.run_worker(self._look_around(desk), name="look around")

    async def _look_around(self, desk: "Desk") -> None:
        """Find out what takes a moment and is only shown: which model will answer, whether to ask for trust."""
        await self._ask_for_trust(focus=not self._prompt.whole_text)
        await desk.look_for_model()
        self._bars.show_header()

    # What the prompt tells.

    @on(Prompt.Submitted)
    def _submitted(self, event: Prompt.Submitted) -> None:
        event.stop()
        if self.desk is None:
            self._early.append(event)
            self._bars.show_waiting()
            return
        if not event.text.strip():
            self.desk.talk.go_on()
            return
        self.run_worker(self.desk.remember(event.text, command=event.command), name="history")
        # `/etc/hosts is odd` is a message, and so is `!important`: no shell is there yet to run it.
        if event.command and self.desk.surface.commands.is_command(event.text):
            self.run_worker(self._command(event.text), name="command")
        else:
            self.desk.say(event.text, pasted=event.pasted)
            self._views[self.channel].follow()
        self._schedule_draft()

    async def _command(self, line: str) -> None:
        if self.desk is None:
            return
        match line.strip():
            case "/model":
                self.action_models()
            case "/resume":
                self._pick_conversation(self.desk)
            case "/trust":
                await self._ask_for_trust(focus=True, say=True)
            case _:
                await self.desk.command(line)
                self._go_to(self.desk.channel)
                self._views[self.channel].follow()
                self._bars.show()

    @on(Prompt.Edited)
    def _edited(self, event: Prompt.Edited) -> None:
        event.stop()
        self._schedule_draft()

    @on(Prompt.EscapePressed)
    def _escape(self, event: Prompt.EscapePressed) -> None:
        event.stop()
        if self.desk is None:
            return
        if (text := self.desk.talk.take_back()) is not None:
            typed = self._prompt.whole_text
            self._prompt.set_text(f"{text}\n{typed}" if typed else text)
        else:
            self.desk.talk.cancel()

    @on(Prompt.InterruptAsked)
    def _interrupt(self, event: Prompt.InterruptAsked) -> None:
        event.stop()
        if self._bars.hint == AGAIN:
            self.post_message(self.LeaveAsked())
        else:
            self._bars.say(AGAIN)

    @on(Prompt.QuitAsked)
    def _quit(self, event: Prompt.QuitAsked) -> None:
        event.stop()
        self.post_message(self.LeaveAsked())

    @on(Prompt.HistorySearchAsked)
    async def _search_history(self, event: Prompt.HistorySearchAsked) -> None:
        event.stop()
        if self.desk is not None:
            from rune.tui.screens.history_search import HistorySearch

            entries = await self.desk.history()
            self._rune.push_screen(HistorySearch(entries), self._found_in_history)

    def _found_in_history(self, found: Sent | None) -> None:
        if found is not None:
            self._prompt.set_text(found.text, as_command=found.command)

    async def _candidates(self, line: str) -> Candidates:
        return await self.desk.candidates(line) if self.desk is not None else Candidates()

    # What the others tell.

    @on(TalkChanged)
    def _talk_changed(self, event: TalkChanged) -> None:
        event.stop()
        talk = event.talk
        self._views[talk.channel].show(talk.transcript)
        if talk.channel == self.channel:
            self._bars.heed()
        if talk.waiting != self._waited.get(talk.channel):
            self._waited[talk.channel] = talk.waiting
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

    @on(TrustDock.TypedPast)
    def _typed_past(self, event: TrustDock.TypedPast) -> None:
        event.stop()
        prompt = self._prompt.focus()
        # As if it had been typed there: whether a slash was typed or pasted makes a difference.
        key = Key(event.key, event.character) if event.pasted is None else Paste(event.pasted)
        prompt.post_message(key)

    @on(TrustDock.Decided)
    async def _trust_decided(self, event: TrustDock.Decided) -> None:
        event.stop()
        self._prompt.focus()
        if event.trusted is not None and self.desk is not None:
            await self.desk.grant(event.trusted)

    async def _ask_for_trust(self, *, focus: bool, say: bool = False) -> None:
        if self.desk is None or (status := await self.desk.trust()) is None:
            return
        if status.state in ("untrusted", "changed"):
            await self.query_one(TrustDock).ask(status, focus=focus)
        elif say:
            await self.desk.command("/trust")

    def _seen(self) -> Seen:
        early = [event.text for event in self._early]
        return Seen(self.desk, self._folder, self.channel, self._views[self.channel], early, self._unread)

    # Keys of the screen.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Let a key through to the prompt where its action has nothing to do."""
        if action == "take_offered":
            return self.desk is not None and bool(self.desk.offered) and not self._prompt.text
        return super().check_action(action, parameters)

    def action_take_offered(self) -> None:
        """Put what an ended Rune left unsent into the prompt."""
        if self.desk is not None:
            self._prompt.set_text(self.desk.take_offered())
            self.query_one(NoticeBar).offer(())

    def action_models(self) -> None:
        """Choose a model."""
        if (desk := self.desk) is not None:
            from rune.tui.screens.model_picker import ModelPicker

            self._rune.push_screen(ModelPicker(desk.models, current=model_name(desk)), self._model_chosen)

    def _model_chosen(self, name: str | None) -> None:
        if name is not None:
            self.run_worker(self._command(f"/model {name}"), name="command")

    def _pick_conversation(self, desk: "Desk") -> None:
        from rune.tui.screens.conversation_picker import ConversationPicker

        now_ms, current = self._clock.now_ms(), desk.talk.conversation_id or ""
        picker = ConversationPicker(desk.conversations, now_ms=now_ms, current=current)
        self._rune.push_screen(picker, self._conversation_chosen)

    def _conversation_chosen(self, identity: str | None) -> None:
        if identity is not None:
            self.run_worker(self._command(f"/resume {identity}"), name="command")

    def action_thinking(self) -> None:
        """Open or fold the thinking in view."""
        self._views[self.channel].toggle_thinking()

    def action_copy(self) -> None:
        """Copy what is selected, else the newest answer."""
        selected = self.get_selected_text()
        if selected:
            self._copy(selected)
        else:
            self.run_worker(self._command("/copy"), name="command")

    def action_help(self) -> None:
        """Show the keys and the commands."""
        self.run_worker(self._help(), name="command")

    async def _help(self) -> None:
        await self._command("/keys")
        await self._command("/help")

    def action_trust(self) -> None:
        """Give the keyboard to the question that is open, or look how things stand."""
        self.run_worker(self._command("/trust"), name="command")

    def action_channel(self, channel: Channel) -> None:
        """Bring a channel to the front."""
        self._go_to(channel)

    def action_page(self, pages: int) -> None:
        """Scroll the transcript by pages."""
        self._views[self.channel].page(pages)

    def action_ends(self, end: int) -> None:
        """Go to the transcript's beginning (below 0) or end."""
        view = self._views[self.channel]
        view.to_top() if end < 0 else view.follow()

    # What is shown.

    @property
    def _rune(self) -> App[None]:
        return cast("App[None]", self.app)  # pyright: ignore[reportUnknownMemberType]  # an app of any type there

    @property
    def _prompt(self) -> Prompt:
        return self.query_one(Prompt)

    def _go_to(self, channel: Channel) -> None:
        if channel == self.channel:
            return
        self._stashed[self.channel] = self._prompt.whole_text
        self.channel = channel
        self._unread.discard(channel)
        if not self._views[channel].is_attached:
            self.mount(self._views[channel], after=self.query_one(Header))
        for each, view in self._views.items():
            view.display = each == channel
        self._prompt.set_text(self._stashed[channel], as_command=self._stashed[channel].startswith("/"))
        if self.desk is not None:
            self.desk.channel = channel
        self._bars.show()

    def _copy(self, text: str) -> None:
        self._rune.copy_to_clipboard(text)
        self._bars.say("copied")

    def _schedule_draft(self) -> None:
        if self._draft_timer is None and self.desk is not None:
            self._draft_timer = self.set_timer(DRAFT_SECONDS, self._save_draft)

    def _save_draft(self) -> None:
        self._draft_timer = None
        if self.desk is not None:
            self.run_worker(self.desk.save_draft(self.prompts()), name="draft")
