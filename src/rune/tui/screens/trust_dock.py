"""The place of the question whether a folder's files may instruct: it is made when it is asked, which is seldom."""

from typing import TYPE_CHECKING

from textual.message import Message
from textual.widget import Widget

from rune.host.clock import SystemClock

if TYPE_CHECKING:
    from rune.config.trust import TrustStatus
    from rune.tui.widgets.choices import Choices
    from rune.tui.widgets.trust_question import TrustQuestion


class TrustDock(Widget):
    """Asks, lets the person look at the files, and tells what came of it."""

    DEFAULT_CSS = """
    TrustDock {
        height: auto;
        display: none;
    }
    """

    class Decided(Message):
        """The person decided. `trusted` None: not now; else exactly what they were shown."""

        def __init__(self, trusted: "TrustStatus | None") -> None:
            super().__init__()
            self.trusted = trusted

    class TypedPast(Message):
        """The person typed or pasted something that is no answer: it belongs to the prompt."""

        def __init__(self, *, key: str = "", character: str = "", pasted: str | None = None) -> None:
            super().__init__()
            self.key = key
            self.character = character
            self.pasted = pasted

    def __init__(self) -> None:
        super().__init__()
        self._clock = SystemClock()
        self._question: TrustQuestion | None = None

    async def ask(self, status: "TrustStatus", *, focus: bool) -> None:
        """Ask about a folder that is untrusted or has changed; `focus`: give the keyboard to the answers."""
        if self._question is None:
            from rune.tui.widgets.trust_question import TrustQuestion  # noqa: PLC0415  # most starts ask nothing

            self._question = TrustQuestion(self._clock)
            await self.mount(self._question)
        self.display = True
        self._question.ask(status, focus=focus)

    async def on_trust_question_answered(self, event: "TrustQuestion.Answered") -> None:
        """Do what was answered."""
        event.stop()
        if event.choice == "look":
            self.run_worker(self._look(event.status), name="look")
        else:
            self._decide(event.choice, event.status)

    def on_choices_typed_past(self, event: "Choices.TypedPast") -> None:
        """Pass a key on."""
        event.stop()
        self.post_message(self.TypedPast(key=event.key, character=event.character))

    def on_choices_pasted_past(self, event: "Choices.PastedPast") -> None:
        """Pass a paste on."""
        event.stop()
        self.post_message(self.TypedPast(pasted=event.text))

    async def _look(self, status: "TrustStatus") -> None:
        from rune.tui.screens.instructions import InstructionsScreen  # noqa: PLC0415  # only for who looks

        choice = await self.app.push_screen_wait(InstructionsScreen(status, self._clock))  # pyright: ignore[reportUnknownMemberType]  # of any type there
        if choice is not None:
            self._decide(choice, status)

    def _decide(self, choice: str, status: "TrustStatus") -> None:
        self.display = False
        self.post_message(self.Decided(status if choice == "trust" else None))
