"""Searching what was sent before: one line to type in, and below it what is meant, the newest first."""

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from rune.surface.prompt_history import Sent


class HistorySearch(ModalScreen[Sent | None]):
    """Gives what was chosen of `entries` (oldest first), None when it was left."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", priority=True),
        Binding("ctrl+c", "leave", "Leave", show=False, priority=True),
    ]
    CSS_PATH = "history_search.tcss"

    def __init__(self, entries: Sequence[Sent]) -> None:
        super().__init__()
        self._entries = tuple(entries)

    def compose(self) -> ComposeResult:
        """Put the list over the line that it belongs to."""
        # 20 ms of a start that only who searches pays.
        from rune.tui.screens.history_matches import HistoryInput, HistoryMatches  # noqa: PLC0415  # only for who searches

        line = HistoryInput(placeholder="search what was sent", compact=True, select_on_focus=False)
        with Vertical(id="history-search"):
            yield Static("enter takes it into the prompt, esc leaves", markup=False, id="history-keys")
            yield line
        self._matches = HistoryMatches(line, self._entries)
        yield self._matches

    def on_mount(self) -> None:
        """Begin to search, with everything there is."""
        self.query_one(Input).focus()
        if self._entries:
            self.call_after_refresh(self._matches.action_show)

    @on(Input.Submitted)
    def _nothing_chosen(self, event: Input.Submitted) -> None:
        # Enter with nothing that matches: what was typed stays, so that it can be mended.
        event.stop()

    def action_leave(self) -> None:
        """Choose nothing."""
        self.dismiss(None)
