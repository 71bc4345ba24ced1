"""A screen with a prompt, which shows above it the question that waits for the person, and what they answer."""

from typing import TYPE_CHECKING, cast

from textual import on
from textual.app import App
from textual.events import Key, Paste, ScreenResume
from textual.screen import Screen

from rune.host.clock import Clock
from rune.tui.key_runs import KeyRun
from rune.tui.tool_entries import as_of
from rune.tui.widgets.approval_bar import ApprovalBar
from rune.tui.widgets.prompt import Prompt

if TYPE_CHECKING:  # what these need is imported when they are wanted: the first picture comes before
    from rune.tui.desk import Desk
    from rune.tui.widgets.reason_line import ReasonLine


class QuestionScreen(Screen[None]):
    """Shows the question of the conversation in front. It takes the keyboard where the prompt is empty then."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.desk: Desk | None = None
        self._clock = clock
        self._reason: ReasonLine | None = None

    def show_question(self) -> None:
        """Show what waits now, or that nothing does."""
        talk = self.desk.talk if self.desk is not None else None
        asked = as_of(talk.asked, talk.permission) if talk is not None and talk.asked is not None else None
        bar, prompt = self._question, self._prompt
        if asked is None:
            if bar is not None and bar.asked is not None:
                self._drop_reason()
                if self.focused is not prompt:
                    prompt.focus()
                bar.ask(None)
            return
        if bar is None:
            bar = ApprovalBar(self._clock)
            self.mount(bar, before=prompt)
        typed = bool(prompt.whole_text)
        fresh = bar.ask(asked, typed=typed, elsewhere=self._elsewhere(asked.approval_id))
        had_keys = bar.has_focus or self._reason is not None
        if fresh or not bar.answerable:
            self._drop_reason()
        if not bar.answerable and had_keys:
            prompt.focus()
        elif fresh and not typed:
            bar.focus()

    def _elsewhere(self, approval_id: str) -> str:
        """Return where the question can be answered, where another Rune has the conversation open; else ""."""
        holder = self.desk.talk.holder if self.desk is not None else None
        if holder is None:
            return ""
        from rune.tui.hints import as_typed  # noqa: PLC0415 - only where two Runes have it open

        where = f"open in process {holder.pid}" if holder.pid else "open elsewhere"
        return f"{where}: answer it there, or {as_typed(f'`rune approve {approval_id}`')} once it is closed"

    def action_ends(self, end: int) -> None:
        """Go to the transcript's beginning (below 0) or end."""

    def keeps_letter(self, text: str) -> bool:
        """Say whether what was sent is the letter of an answer, which was meant for the question; it is told how."""
        letter = text.strip().casefold()
        if not self.is_asked or letter not in {"y", "a", "n", "e"}:
            return False
        self._prompt.set_text(text)
        self.say(f"not sent: tab, then {letter}")
        return True

    def say(self, text: str) -> None:
        """Show this for a moment."""

    def pages_question(self, pages: int) -> bool:
        """Scroll what would run, where the keyboard is at the question and there is more than is seen."""
        bar = self._question
        if bar is None or not bar.has_focus or not bar.scrolls:
            return False
        bar.page(pages)
        return True

    @property
    def is_asked(self) -> bool:
        """Whether a question is in sight that can be answered here."""
        return (bar := self._question) is not None and bar.answerable

    def action_to_question(self) -> None:
        """Go from the prompt to the question, or back."""
        if (bar := self._question) is not None:
            (self._prompt if bar.has_focus else bar).focus()

    def action_cycle_permission(self) -> None:
        """Go to the next permission mode."""
        if self.desk is not None:
            self.run_worker(self.desk.cycle_permission(), name="permission", group="permission")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Let Tab through to the prompt where nothing waits for an answer."""
        return self.is_asked if action == "to_question" else super().check_action(action, parameters)

    @property
    def _rune(self) -> App[None]:
        return cast("App[None]", self.app)  # pyright: ignore[reportUnknownMemberType]  # an app of any type there

    @property
    def _prompt(self) -> Prompt:
        return self.query_one(Prompt)

    @property
    def _question(self) -> ApprovalBar | None:
        return next(iter(self.query(ApprovalBar)), None)

    @on(ScreenResume)
    def _seen_again(self) -> None:
        if (bar := self._question) is not None:
            bar.begin()

    @on(ApprovalBar.Answered)
    def _answered(self, event: ApprovalBar.Answered) -> None:
        event.stop()
        if self.desk is None or self.desk.talk.asked is None:
            return
        if self.desk.talk.asked.approval_id == event.approval_id:
            self.desk.answer(event.decision, reason=event.reason, always=event.always)
            self.action_ends(1)
            self.show_question()

    @on(ApprovalBar.ReasonAsked)
    def _reason_asked(self, event: ApprovalBar.ReasonAsked) -> None:
        event.stop()
        from rune.tui.widgets.reason_line import ReasonLine  # noqa: PLC0415 - an input line costs a start its time

        bar = self._question
        if bar is None or bar.asked is None:
            return
        if self._reason is None:
            self._reason = ReasonLine(event.approval_id)
            self.mount(self._reason, after=bar)
            bar.explain(explains=True)
        self._reason.focus()

    @on(ApprovalBar.Left)
    def _left(self, event: ApprovalBar.Left) -> None:
        event.stop()
        bar = self._question
        if self._reason is not None and bar is not None:
            self._drop_reason()
            bar.focus()
        else:
            self._prompt.focus()

    @on(ApprovalBar.Passed)
    def _passed(self, event: ApprovalBar.Passed) -> None:
        event.stop()
        prompt, what = self._prompt, event.what
        if not isinstance(what, Key):
            prompt.focus()
        match what:
            case Key():
                prompt.post_message(_again(what))
            case KeyRun():
                prompt.post_message(KeyRun([_again(key) for key in what.keys]))
            case Paste():
                prompt.post_message(Paste(what.text))

    def _drop_reason(self) -> None:
        if self._reason is not None:
            self._reason.remove()
            self._reason = None
            if (bar := self._question) is not None:
                bar.explain(explains=False)


def _again(key: Key) -> Key:
    """Return a key press that was given to nobody yet."""
    fresh = Key(key.key, key.character)
    fresh.time = key.time
    return fresh
