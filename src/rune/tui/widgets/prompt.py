"""What a person types into: it knows a paste from typing and a typed command from text, and keeps what was sent.

Its key presses are told apart before they are acted on: `Bursts` says what came too fast to be typed.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import ClassVar, Protocol

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.timer import Timer
from textual.widgets import TextArea
from textual.widgets.text_area import Edit, EditResult, Location

from rune.records.messages import Channel
from rune.surface.prompt_history import Sent
from rune.tui.key_runs import KeyRun, TakesKeyRuns, act_on, more_waits
from rune.tui.past_prompts import PastPrompts
from rune.tui.pasting import ENTER, TAB, Burst, Bursts, normalised
from rune.tui.pieces import begins_command, command_mark, is_plain
from rune.tui.terminal_keys import teach_alt_enter, typed_character
from rune.tui.widgets.safe_text_area import SafeTextArea

PLACEHOLDER = "message, /command, !shell"
# A look that comes so late says nothing of what there is: it is taken once more, but not for ever.
_LATE_SECONDS = 0.03
_LOOKS = 5


class Overlay(Protocol):
    """What stands over a prompt and has the first word on some of its keys."""

    def takes_key(self, key: str) -> bool:
        """Act on `up`, `down`, `enter`, `tab` or `escape`; False when it means nothing here."""
        ...

    def follow(self) -> None:
        """Notice that the text or the cursor is another one."""
        ...


class Prompt(SafeTextArea, TakesKeyRuns, inherit_bindings=False):
    """The text area at the bottom of the screen."""

    # What is not here (PageUp, Ctrl+Home, Ctrl+L ...) goes on to the screen. Ctrl+Z is undo: it must not suspend by
    # a slip of the hand. Ctrl+Y copies an answer, so redo has other keys.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(keys, action, show=False)
        for keys, action in (
            ("up", "older"),
            ("down", "newer"),
            ("left", "cursor_left"),
            ("right", "cursor_right"),
            ("ctrl+left,alt+left,alt+b", "cursor_word_left"),
            ("ctrl+right,alt+right,alt+f", "cursor_word_right"),
            ("home,ctrl+a", "cursor_line_start"),
            ("end,ctrl+e", "cursor_line_end"),
            ("shift+left", "cursor_left(True)"),
            ("shift+right", "cursor_right(True)"),
            ("shift+up", "cursor_up(True)"),
            ("shift+down", "cursor_down(True)"),
            ("shift+home", "cursor_line_start(True)"),
            ("shift+end", "cursor_line_end(True)"),
            ("ctrl+shift+left", "cursor_word_left(True)"),
            ("ctrl+shift+right", "cursor_word_right(True)"),
            ("f7", "select_all"),
            ("backspace,ctrl+h", "delete_left"),
            ("delete", "delete_right"),
            ("ctrl+w,ctrl+backspace,alt+backspace", "delete_word_left"),
            ("alt+delete,alt+d", "delete_word_right"),
            ("ctrl+u", "delete_to_start_of_line"),
            ("ctrl+k", "delete_to_end_of_line_or_delete_line"),
            ("ctrl+x", "cut"),
            ("ctrl+v", "paste"),
            ("ctrl+z,ctrl+underscore", "undo"),
            ("ctrl+shift+z,alt+z", "redo"),
            ("ctrl+c", "clear_or_interrupt"),
            ("ctrl+d", "delete_right_or_quit"),
            ("ctrl+r", "search_history"),
            ("escape", "escape"),
        )
    ]

    # Nobody compares or prints them: each method that dataclass writes is compiled at every start.
    @dataclass(eq=False, repr=False)
    class _Told(Message):
        prompt: "Prompt"

        @property
        def control(self) -> "Prompt":
            """The prompt."""
            return self.prompt

    @dataclass(eq=False, repr=False)
    class Submitted(_Told):
        """The person sent `text`. `command`: it begins with a `/` or `!` that was typed as the first key of an empty
        prompt; without it the text is a message, whatever it begins with. `pasted`: some of it was pasted. `place`:
        that of the prompt then. An empty text is sent too: Enter alone may mean something.
        """

        text: str
        command: bool
        pasted: bool
        place: Channel | None = None

    class Edited(_Told):
        """The text is another one."""

    class HistorySearchAsked(_Told):
        """The person wants to search what was sent before."""

    class InterruptAsked(_Told):
        """Ctrl+C on an empty prompt."""

    class QuitAsked(_Told):
        """Ctrl+D on an empty prompt."""

    class EscapePressed(_Told):
        """Esc, and nothing of the prompt's own was open."""

    helper: Overlay | None = None
    place: Channel | None = None  # where it speaks
    _untouched = False  # nothing was typed since the text was put there as a whole

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name for it
        super().__init__(placeholder=PLACEHOLDER, id=id)
        self._past = PastPrompts()
        self._bursts = Bursts()
        self._burst_start: Location = (0, 0)
        self._paste: tuple[str, Location, Location] | None = None  # the last that came as keys, from where to where
        self._late = 0
        self._timer: Timer | None = None
        self._pasted = False
        teach_alt_enter()

    @property
    def whole_text(self) -> str:
        """All of it, what was pasted included; keys that came too fast to be shown yet as well."""
        if not (held := self._bursts.held):
            return self.text
        # It is not put in for that: more may be on its way.
        start, end = sorted(self.selection)
        before = self._reads(self.document.start, start)
        return before + held + self._reads(end, self.document.end)

    @property
    def is_command(self) -> bool:
        """Whether it begins with a `/` or `!` that was typed first."""
        return begins_command(self.document.get_line(0))

    @property
    def command_line(self) -> str | None:
        """The slash command up to the cursor; None where there is none, or more than typed characters in it, and where
        it was not typed but put there (out of the history, say), until it is changed.
        """
        if self._untouched:
            return None
        row, column = self.cursor_location
        line = self.document.get_line(0)[:column]
        if row > 0 or not self.selection.is_empty or not begins_command(line) or not is_plain(line):
            return None
        shown = self._shown(0)[:column]
        return shown if shown.startswith("/") else None

    def set_text(self, text: str, *, as_command: bool = False) -> None:
        """Have this text instead of what was being typed, with the cursor at its end. It is no command unless that
        is said (and it begins as one), and nothing of it is shown as pasted unless it is very large.
        """
        self._bursts.end()
        self.load_text(text)
        if as_command:
            self._load(_as_command(self.document.text))
        self._past.forget()
        self._pasted = False

    def use_history(self, entries: Iterable[Sent]) -> None:
        """Offer these, oldest first, by Up and Down."""
        self._past.use(entries)

    def complete(self, start: int, text: str) -> None:
        """Put `text` where the command's line has what stands from `start` (characters) to the cursor."""
        mark = command_mark(text[:1]) if start == 0 else ""
        written = mark + text[len(mark) :]
        end = self.cursor_location
        self._put_typed(written, (0, start), end)

    async def on_key(self, event: events.Key) -> None:
        """Put what is typed into the text, unless it comes as a paste does."""
        # The text area's own way would insert Enter.
        event.prevent_default()
        if self._take(event, more=more_waits(self)) or await act_on(self, event.key):
            event.stop()

    def on_key_run(self, event: KeyRun) -> None:
        """Do the same for many keys."""
        last = len(event.keys) - 1
        for place, key in enumerate(event.keys):
            self._take(key, more=place < last or more_waits(self))

    def _take(self, event: events.Key, *, more: bool) -> bool:
        """Do what a key says; False when it says nothing here. `more`: another key was read behind it already."""
        at = event.time
        if self._bursts.is_over(at):
            self._settle()
        key = ENTER if event.key == "enter" else typed_character(event)
        if event.key == "tab" and self._bursts.flows(at):
            key = TAB
        if key is None:
            self._settle()
            return self._helped(event.key)
        shown_before = self._bursts.shows
        quick = key == ENTER and self._bursts.is_quick(at)
        if self._bursts.takes(key, at, more=more):
            self._wait_for_more()
        elif key == ENTER:
            self._enter(by_hand=not quick)
        else:
            if not shown_before:
                self._burst_start = min(self.selection)
            self._type(key)
        return True

    def on_paste(self, event: events.Paste) -> None:
        """Take what the terminal says was pasted; the text area's part comes after this."""
        self._settle()
        self._pasted = self._pasted or bool(event.text)

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Tell that the text is another one."""
        event.stop()
        if not self.document.text:
            self._pasted = False
        if self.helper is not None:
            self.helper.follow()
        self.post_message(self.Edited(self))

    def on_text_area_selection_changed(self, event: TextArea.SelectionChanged) -> None:
        """Tell who helps that the cursor moved."""
        event.stop()
        if self.helper is not None:
            self.helper.follow()

    def action_older(self) -> None:
        """Go up a row, or to what was sent before."""
        if not self._steps(-1):
            self.action_cursor_up()

    def action_newer(self) -> None:
        """Go down a row, or to what was sent after, and at last back to what was being typed."""
        if not self._steps(1):
            self.action_cursor_down()

    def action_clear_or_interrupt(self) -> None:
        """Copy what is selected; else clear the text (undo brings it back); else tell."""
        if not self.selection.is_empty:
            self.action_copy()
            self.move_cursor(self.cursor_location)
        elif self.document.text:
            self.clear()
            self._past.forget()
        else:
            self.post_message(self.InterruptAsked(self))

    def action_delete_right_or_quit(self) -> None:
        """Delete the character under the cursor; with no text at all tell."""
        if self.document.text:
            self.action_delete_right()
        else:
            self.post_message(self.QuitAsked(self))

    def action_search_history(self) -> None:
        """Tell."""
        self.post_message(self.HistorySearchAsked(self))

    def action_escape(self) -> None:
        """Tell."""
        self.post_message(self.EscapePressed(self))

    def _type(self, char: str) -> None:
        if not self.document.text and (mark := command_mark(char)):
            self._put_typed(mark, (0, 0), (0, 0))
        else:
            self.replace(char, *self.selection, maintain_selection_offset=False)

    def _put_typed(self, written: str, start: Location, end: Location) -> None:
        self._put(written, Edit(written, start, end, maintain_selection_offset=False))

    def _load(self, written: str) -> None:
        super()._load(written)
        self._untouched = True

    def _put(self, written: str, edit: Edit) -> EditResult:
        self._untouched = False
        return super()._put(written, edit)

    def _enter(self, *, by_hand: bool) -> None:
        # A program that types a whole line means that line, whatever was offered meanwhile.
        if not by_hand or not self._helped("enter"):
            self._send()

    def _helped(self, key: str) -> bool:
        return self.helper is not None and self.helper.takes_key(key)

    def _send(self) -> None:
        text, command = self.text, self.is_command
        self.post_message(self.Submitted(self, text, command, self._pasted, self.place))
        if text.strip():
            self._past.add(Sent(text, command))
        self.load_text("")
        self._pasted = False

    def _steps(self, by: int) -> bool:
        """Go on in the history, if that is what an arrow means here; say whether it was."""
        rows = self.wrapped_document
        end = self.document.end
        _, row = rows.location_to_offset(self.cursor_location)
        # An entry that was only looked at is left by one key, however many lines it has.
        looked_at = self._past.browsing and self.cursor_location == end and not self.history.undo_stack
        at_edge = row == (0 if by < 0 else rows.height - 1)
        if not looked_at and (self.document.line_count > 1 or not at_edge):
            return False
        found = self._past.step(by, self.document.text)
        if found is None:
            return at_edge or looked_at
        if isinstance(found, Sent):
            written = self._form_of(found.text)
            found = _as_command(written) if found.command else written
        self._load(found)
        return True

    def _begin_anew(self) -> None:
        super()._begin_anew()
        self._past.forget()

    def _wait_for_more(self) -> None:
        if self._timer is None:
            patience = self._bursts.patience
            look = partial(self._look_again, self._bursts.last, monotonic() + patience)
            self._timer = self.set_timer(patience, look)

    def _look_again(self, last: float, due: float) -> None:
        # Keys that came meanwhile may still be on their way: first the app's queue, then this one's.
        self._in_app.call_later(self.call_later, self._settle_unless_more, last, due)

    def _settle_unless_more(self, last: float, due: float) -> None:
        self._timer = None
        if not self._bursts.holds:
            return
        # Where this thread had no time the one that reads had none either.
        self._late = self._late + 1 if monotonic() - due > _LATE_SECONDS else 0
        if self._bursts.last > last or more_waits(self) or 0 < self._late < _LOOKS:
            self._wait_for_more()
        else:
            self._settle()

    def _settle(self) -> None:
        """Put in what was held back, and do what the key at its end says."""
        burst = self._bursts.end()
        self._late = 0
        if burst is None:
            return
        if burst.pasted:
            self._paste_burst(burst)
        elif burst.held:
            self.replace(burst.held, *self.selection, maintain_selection_offset=False)
        if burst.key == ENTER:
            self._enter(by_hand=not burst.text)
        elif burst.key == TAB:
            self._helped("tab")

    def _paste_burst(self, burst: Burst) -> None:
        text, (start, end) = burst.held, self.selection
        if start == end and self._burst_start <= end and self._reads(self._burst_start, end) == burst.shown:
            text, start = burst.text, self._burst_start
        begins = min(start, end)
        if burst.goes_on and self._paste is not None:
            before, from_there, to_there = self._paste
            if to_there == begins and self._reads(from_there, to_there) == before:
                text, start, begins = before + normalised(text), from_there, from_there
        self.paste(text, start, end)
        self._paste = (normalised(text), begins, self.cursor_location)
        self._pasted = True

    def _reads(self, start: Location, end: Location) -> str:
        return self._pieces.original(self.get_text_range(start, end))


def _as_command(written: str) -> str:
    return (command_mark(written[:1]) or written[:1]) + written[1:]
