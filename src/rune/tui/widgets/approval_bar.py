"""A question that waits for the person, above the prompt: it takes their answer, and nothing that was not meant as one.

While it has the keyboard it keeps it: what is no answer does nothing but say which key goes to the prompt. A key
answers only when the question has been in sight for a moment, and allows only what was in sight to its last row. A
letter is marked as the answer at once and counts when no other one follows: "you" and "actually" are the beginning of
a message. What makes a rule for good needs Enter as well. What is pasted never answers.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, Final

from textual.events import Click, Key, MouseScrollDown, MouseScrollUp, Paste
from textual.geometry import Size
from textual.message import Message
from textual.timer import Timer

from rune.host.clock import Clock
from rune.records.approvals import Decision
from rune.tui.approval_lines import (
    Hint,
    body_lines,
    choice_lines,
    choices_of,
    elsewhere_lines,
    head_line,
    hint_lines,
)
from rune.tui.key_runs import KeyRun, TakesKeyRuns, act_on, more_waits
from rune.tui.lines import Line
from rune.tui.painting import line_classes
from rune.tui.tool_entries import Asked
from rune.tui.widgets.choices import READING_SECONDS
from rune.tui.widgets.line_rows import LineRows

_SHARE: Final = (3, 5)  # of the screen's rows, that it takes at most
_LEAST_ROWS: Final = 7
_OTHERS: Final = 5  # rows of a small screen that are not its own: header, prompt, footer, two of the conversation
_ENOUGH: Final = 12
_LEAST_BODY: Final = 2
_WHEEL: Final = 3
_COUNTED: Final = 1_000  # rows that are laid out only to say how many there are
# Keys of the prompt that mean the whole app: they do there what they always do, and the question keeps the keyboard.
_OF_THE_APP: Final = frozenset({"ctrl+c", "ctrl+d"})
QUIET_SECONDS: Final = 0.25  # after a letter, in which whoever writes a word has gone on with it


class ApprovalBar(LineRows, TakesKeyRuns, can_focus=True):
    """Shows an `Asked`: what would run as far as there is room (it scrolls), why it asks, and the answers."""

    COMPONENT_CLASSES: ClassVar[set[str]] = line_classes(
        *("strong", "code", "key", "warning", "chosen", "inserted", "deleted", "changed")
    )
    DEFAULT_CSS = """
    ApprovalBar {
        background: $surface;
    }
    """

    class Answered(Message):
        """The person decided. `always`: and does not want to be asked for this again; `reason`: why not."""

        def __init__(self, approval_id: str, decision: Decision, *, always: bool = False, reason: str = "") -> None:
            super().__init__()
            self.approval_id = approval_id
            self.decision: Decision = decision
            self.always = always
            self.reason = reason

    class ReasonAsked(Message):
        """The person says no, and wants to say why."""

        def __init__(self, approval_id: str) -> None:
            super().__init__()
            self.approval_id = approval_id

    class Passed(Message):
        """What was pasted, or typed behind a Tab, is for the prompt, which gets the keyboard. A key alone: it is one of
        the app, which the prompt acts on; the question keeps the keyboard.
        """

        def __init__(self, what: Key | KeyRun | Paste) -> None:
            super().__init__()
            self.what = what

    class Left(Message):
        """The person goes back to the prompt; the question waits on."""

    def __init__(
        self,
        clock: Clock,
        *,
        quiet: float = QUIET_SECONDS,
        id: str | None = None,  # noqa: A002  # Textual's name
    ) -> None:
        super().__init__(id=id)
        self._clock = clock
        self._quiet = quiet
        self._held: Key | None = None  # a letter that may be an answer
        self._timer: Timer | None = None
        self._since = clock.monotonic()
        self._asked: Asked | None = None
        self._typed = False
        self._elsewhere = ""
        self._hint: Hint = ""
        self._whole = False  # all of it was in sight
        self._at: int | None = None
        self._top = 0
        self._body: list[Line] = []
        self._rest: Iterator[Line] = iter(())
        self._body_for: int | None = None
        self._most = _LEAST_ROWS
        self._seen = 0  # rows of the body that were drawn last

    @property
    def asked(self) -> Asked | None:
        """The question that it shows."""
        return self._asked

    def ask(self, asked: Asked | None, *, typed: bool = False, elsewhere: str = "") -> bool:
        """Show this question; None: it takes no room. `typed`: something stands in the prompt. `elsewhere`: it cannot
        be answered here, and where it can. Says whether it is another question than before, or can be answered now.
        """
        fresh = asked is not None and (
            self._asked is None
            or self._asked.approval_id != asked.approval_id
            or bool(self._elsewhere and not elsewhere)
        )
        if (asked, typed, elsewhere) != (self._asked, self._typed, self._elsewhere):
            if asked != self._asked:
                self._let_go()
                self._body_for = None
            self._asked, self._typed, self._elsewhere = asked, typed, elsewhere
            self.can_focus = not elsewhere
            if fresh:
                self._at, self._top, self._hint, self._whole = None, 0, "", False
                self.begin()
            self.redraw()
        return fresh

    @property
    def answerable(self) -> bool:
        """Whether there is a question that can be answered here."""
        return self._asked is not None and not self._elsewhere

    def explain(self, *, explains: bool) -> None:
        """Say which keys there are while the person writes why not, and afterwards."""
        self._say("reason" if explains else "")

    def begin(self) -> None:
        """Take no answer for a moment: it has just come into sight."""
        self._since = self._clock.monotonic()

    @property
    def scrolls(self) -> bool:
        """Whether there is more of what would run than is seen."""
        return self._top > 0 or self._more(self._top + self._seen)

    def scroll_body(self, rows: int) -> None:
        """Show what would run from so many rows further on."""
        self._note_whole()
        top = max(self._top + rows, 0)
        if rows > 0:
            self._more(top + self._seen)
            top = min(top, max(len(self._body) - self._seen, 0))
        if top != self._top:
            self._top = top
            self.redraw()

    def page(self, pages: int) -> None:
        """Scroll by pages; a row of the last one stays."""
        self.scroll_body(pages * max(self._seen - 1, 1))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return how many rows it takes: what is above stays in sight."""
        share, of = _SHARE
        most = max(viewport.height * share // of, min(viewport.height - _OTHERS, _ENOUGH), _LEAST_ROWS)
        if most != self._most:
            self._most = most
            self._rows_for = -1
        return super().get_content_height(container, viewport, width)

    def draw(self, width: int) -> Sequence[Line]:
        """Return the rows, or none."""
        asked = self._asked
        if asked is None:
            return ()
        if self._body_for != width:
            self._body, self._rest, self._body_for = [], body_lines(asked, width), width
        if self._elsewhere:
            choices, hint = elsewhere_lines(self._elsewhere, width), ()
        else:
            live = self.has_focus or self._hint == "reason"
            choices = choice_lines(choices_of(asked), self._at, width, live=live)
            hint = hint_lines(focused=self.has_focus, typed=self._typed, width=width, hint=self._hint)
        room = self._most - 1 - len(choices)
        if room - len(hint) < _LEAST_BODY and not self._hint:
            hint = hint[: max(room - _LEAST_BODY, 0)]  # the answers and what they are about come first
        room = max(room - len(hint), 1 if self._hint else _LEAST_BODY)
        counted = max(self._top + room, _COUNTED)
        of = f"{counted:,}+" if self._more(counted) else f"{len(self._body):,}"
        self._top = min(self._top, max(len(self._body) - room, 0))
        seen = self._body[self._top : self._top + room]
        self._seen = room
        more = self._more(self._top + room)
        focused = self.has_focus and not self._elsewhere
        head = head_line(asked, self._top, len(seen), of, above=self._top > 0, more=more, focused=focused, width=width)
        return (head, *seen, *choices, *hint)

    def watch_has_focus(self, _has_focus: bool) -> None:
        """Say which keys there are now."""
        super().watch_has_focus(_has_focus)
        if not _has_focus:
            self._let_go()
            self._at = None
            self._hint = "reason" if self._hint == "reason" else ""
        self.redraw()

    async def on_key(self, event: Key) -> None:
        """Answer, or say that it is no answer."""
        event.prevent_default()
        event.stop()
        if more_waits(self) and (event.is_printable or event.key == "enter"):
            self._strays()  # so quick no one types: it was pasted, or is typed by a program
        elif self._takes(event) or await act_on(self, event.key):
            return
        elif event.key in _OF_THE_APP:
            self.post_message(self.Passed(event))
        else:
            self._strays()

    def on_key_run(self, event: KeyRun) -> None:
        """Answer nothing: it was pasted without saying so. What was typed quickly behind a Tab is for the prompt."""
        event.stop()
        self._strays()
        tab = next((place for place, key in enumerate(event.keys) if key.key == "tab"), None)
        if tab is not None:
            self._say("")
            self.post_message(self.Left())
            if rest := event.keys[tab + 1 :]:
                self.post_message(self.Passed(KeyRun(rest)))

    def on_paste(self, event: Paste) -> None:
        """Pass on what was pasted."""
        event.stop()
        self._strays()
        self._say("")
        self.post_message(self.Passed(event))

    def on_click(self, event: Click) -> None:
        """Choose nothing by a slip of the hand: the click only gets the keyboard here."""
        event.stop()

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Scroll what would run."""
        self.scroll_body(_WHEEL)
        event.stop()

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Scroll it back."""
        self.scroll_body(-_WHEEL)
        event.stop()

    def _takes(self, event: Key) -> bool:
        """Do what a key says here; False where it says nothing."""
        asked = self._asked
        if asked is None:
            return False
        acts: dict[str, Callable[[], object]] = {
            "left": lambda: self._move(-1),
            "up": lambda: self.scroll_body(-1) if self.scrolls else self._move(-1),
            "right": lambda: self._move(1),
            "down": lambda: self.scroll_body(1) if self.scrolls else self._move(1),
            "home": lambda: self.scroll_body(-self._top),
            "end": self._to_end,
            "enter": self._choose_marked,
            "escape": lambda: self.post_message(self.Left()),
        }
        if event.key in acts:
            self._let_go()
            self._say("")
            acts[event.key]()
            return True
        choices = choices_of(asked)
        at = next((place for place, choice in enumerate(choices) if choice.key == event.key), None)
        if at is None or self._held is not None:
            return False
        if self._ripe:
            self._mark(at, choices[at].name, event)
        return True

    def _mark(self, at: int, name: str, event: Key) -> None:
        """Mark the answer of a letter, which counts in a moment; for good only with Enter."""
        if name in ("allow", "always") and self._goes_on_below():
            return
        self._at, self._hint = at, "always" if name == "always" else ""
        if name != "always":
            self._held = event
        self.redraw()
        if self._held is None:
            return
        if self._quiet:
            self._timer = self.set_timer(self._quiet, self._counts)
        else:
            self._counts()

    def _goes_on_below(self) -> bool:
        """Say whether not all of it was in sight; then some more of it is, and the person is told."""
        self._note_whole()
        if self._whole:
            return False
        self.page(1)
        self._say("below")
        return True

    def _note_whole(self) -> None:
        """Know from now on that all of it was in sight, if the end is."""
        laid_out = self._body_for is not None and self._body_for == self.size.width
        self._whole = self._whole or (laid_out and not self._more(self._top + self._seen))

    def _counts(self) -> None:
        """Take the letter for an answer: nothing followed it."""
        held = self._let_go()
        if self._asked is not None and held is not None:
            self._choose(next(each.name for each in choices_of(self._asked) if each.key == held.key))

    def _let_go(self) -> Key | None:
        """Return the letter that was held back; it is no answer any more."""
        held, self._held = self._held, None
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        return held

    def _strays(self) -> None:
        """Have what was typed answer nothing, nor what comes right behind it, and say where it can be written."""
        self._let_go()
        self._note_whole()
        self._at = None
        self.begin()
        self._hint = ""  # drawn anew whatever it was
        self._say("stray")

    def _say(self, hint: Hint) -> None:
        if hint != self._hint:
            self._note_whole()  # a longer hint may push the last row out of sight
            self._hint = hint
            self.redraw()

    @property
    def _ripe(self) -> bool:
        return self._clock.monotonic() - self._since >= READING_SECONDS

    def _choose_marked(self) -> None:
        if self._asked is None or self._at is None:
            return
        name = choices_of(self._asked)[self._at].name
        if self._ripe and not (name in ("allow", "always") and self._goes_on_below()):
            self._choose(name)

    def _choose(self, name: str) -> None:
        if self._asked is None or not self._ripe or self._elsewhere:
            return
        identity = self._asked.approval_id
        match name:
            case "because":
                self.post_message(self.ReasonAsked(identity))
            case "deny":
                self.post_message(self.Answered(identity, "deny"))
            case _:
                self.post_message(self.Answered(identity, "allow", always=name == "always"))

    def _move(self, by: int) -> None:
        if self._asked is not None:
            choices = choices_of(self._asked)
            last = len(choices) - 1
            self._at = (0 if by > 0 else last) if self._at is None else min(max(self._at + by, 0), last)
            self._hint = "always" if choices[self._at].name == "always" else ""
            self.redraw()

    def _more(self, rows: int) -> bool:
        """Lay out so many rows and one more, if there are; says whether there is that one."""
        for each in self._rest:
            self._body.append(each)
            if len(self._body) > rows:
                break
        return len(self._body) > rows

    def _to_end(self) -> None:
        self._body += self._rest
        self.scroll_body(len(self._body))
