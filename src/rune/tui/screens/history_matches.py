"""The list of what a search in the history means. Apart, because its library is loaded only when one searches."""

from collections.abc import Sequence
from typing import Final, cast

from textual import on
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input, OptionList
from textual_autocomplete import AutoComplete, DropdownItem, TargetState

from rune.surface.prompt_history import Sent
from rune.tui.fit import flowing
from rune.tui.lines import MARK
from rune.tui.ranking import ranked

# Narrowing these takes a few milliseconds, so that no key waits.
ENTRIES: Final = 1_000
MATCHES: Final = 50
_SEARCHED: Final = 200
_SHOWN_CELLS: Final = 120
_LINE_END: Final = " \N{RETURN SYMBOL} "


class HistoryMatches(AutoComplete):
    """The entries that match what was typed; Enter or Tab ends the search with the one that is chosen."""

    def __init__(self, line: Input, entries: Sequence[Sent]) -> None:
        super().__init__(line, candidates=None)
        self._entries = list(dict.fromkeys(reversed(entries)))[:ENTRIES]
        self._searched = [sent.text[:_SEARCHED] for sent in self._entries]
        self._query: str | None = None
        self._found: list[Sent] = []
        self._rows: list[str] = []
        self._marked = -1

    @property
    def most(self) -> int:
        """How many rows it has at most."""
        return min(len(self._entries), MATCHES)

    def finds(self, query: str) -> bool:
        """Say whether anything is meant by what was typed."""
        self._search(query)
        return bool(self._found)

    def get_candidates(self, target_state: TargetState) -> list[DropdownItem]:
        """Return nothing: all there is to find is found by `get_matches`."""
        del target_state
        return []

    def get_matches(
        self, target_state: TargetState, candidates: list[DropdownItem], search_string: str
    ) -> list[DropdownItem]:
        """Return what every typed word is found in, the likeliest and then the newest first."""
        del target_state, candidates
        self._search(search_string)
        self._marked = -1
        return [DropdownItem(Content(f"  {row}")) for row in self._rows]

    def should_show_dropdown(self, search_string: str) -> bool:
        """Say yes wherever there is something to show, before anything is typed as well."""
        del search_string
        return self.option_list.option_count > 0

    def apply_completion(self, value: str, state: TargetState) -> None:
        """End the search with what is under the cursor; two texts may look alike in one line."""
        del value, state
        screen = cast("Screen[Sent | None]", self.screen)
        screen.dismiss(self._found[self.option_list.highlighted or 0])

    def get_search_string(self, target_state: TargetState) -> str:
        """Return all that was typed, wherever the cursor is."""
        return target_state.text

    @on(OptionList.OptionHighlighted)
    def _mark(self, event: OptionList.OptionHighlighted) -> None:
        """Put the mark before the row under the cursor: that it is another colour is not enough."""
        event.stop()
        options = self.option_list
        for place, mark in ((self._marked, " "), (options.highlighted, MARK)):
            if place is not None and 0 <= place < options.option_count:
                options.replace_option_prompt_at_index(place, Content(f"{mark} {self._rows[place]}"))
        self._marked = -1 if options.highlighted is None else options.highlighted

    def _align_to_target(self) -> None:
        """Stay in the frame: the library would have it at the cursor."""

    def _search(self, query: str) -> None:
        # It is asked more than once for each key.
        if query != self._query:
            self._query = query
            self._found = [self._entries[place] for place in ranked(query, self._searched)[:MATCHES]]
            self._rows = [_row(sent.text) for sent in self._found]


def _row(text: str) -> str:
    return flowing(text[: _SHOWN_CELLS * 8].strip().replace("\n", _LINE_END), _SHOWN_CELLS)
