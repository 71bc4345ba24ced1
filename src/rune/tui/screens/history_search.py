"""Searching what was sent before: one line to type in, and below it what is meant, the newest first."""

from collections.abc import Sequence
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from rune.surface.prompt_history import Sent
from rune.tui.screens.picker import PickerLine, PickerNotes
from rune.tui.widgets.filter_input import FilterInput

_FIXED_ROWS: Final = 2  # title and filter
_MOST_ROWS: Final = 40


class HistorySearch(ModalScreen[Sent | None]):
    """Gives what was chosen of `entries` (oldest first), None when it was left."""

    BINDINGS: ClassVar[list[Binding]] = [
        Binding("escape", "leave", "Leave", priority=True),
        Binding("ctrl+c", "leave", "Leave", show=False),
    ]
    CSS_PATH = "history_search.tcss"

    def __init__(self, entries: Sequence[Sent]) -> None:
        super().__init__()
        self._entries = tuple(entries)

    def compose(self) -> ComposeResult:
        """Put the line above the list that belongs to it."""
        # 20 ms of a start that only who searches pays.
        from rune.tui.screens.history_matches import HistoryMatches  # noqa: PLC0415  # only for who searches

        line = FilterInput(placeholder="search what was sent", compact=True, select_on_focus=False)
        self._matches = HistoryMatches(line, self._entries)
        with Vertical(id="history-search"):
            yield PickerLine("Sent before")
            yield line
            yield self._matches
            yield PickerNotes()

    def on_mount(self) -> None:
        """Begin to search, with everything there is."""
        self.query_one(Input).focus()
        box = self.query_one("#history-search")
        # Narrowing does not change it: nothing moves while one types.
        rows = min(max(self._matches.most, 1), _MOST_ROWS)
        box.styles.height = box.gutter.height + _FIXED_ROWS + rows
        if self._entries:
            self.call_after_refresh(self._matches.action_show)
        else:
            self.query_one(PickerNotes).show([("nothing was sent here yet", "dim")])

    @on(Input.Changed)
    def _narrowed(self, event: Input.Changed) -> None:
        event.stop()
        if self._entries:
            nothing = f"nothing here matches \u201c{event.value}\u201d"
            self.query_one(PickerNotes).show([] if self._matches.finds(event.value) else [(nothing, "dim")])

    @on(Input.Submitted)
    def _nothing_chosen(self, event: Input.Submitted) -> None:
        # Enter with nothing that matches: what was typed stays, so that it can be mended.
        event.stop()

    def action_leave(self) -> None:
        """Choose nothing."""
        self.dismiss(None)
