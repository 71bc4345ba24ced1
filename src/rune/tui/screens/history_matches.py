"""The list of what a search in the history means. Apart, because its library is loaded only when one searches."""

from collections.abc import Sequence
from typing import Final, cast

from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input
from textual_autocomplete import AutoComplete, DropdownItem, TargetState

from rune.surface.prompt_history import Sent
from rune.text.safe_text import safe_text
from rune.tui.fit import flowing
from rune.tui.ranking import ranked

# Narrowing these takes a few milliseconds, so that no key waits.
ENTRIES: Final = 1_000
MATCHES: Final = 50
_SEARCHED: Final = 200
_SHOWN_CELLS: Final = 120
_LONGEST_QUERY: Final = 200


class HistoryInput(Input):
    """A line into which nothing comes that a terminal would act on, pasted or typed."""

    def replace(self, text: str, start: int, end: int) -> None:
        """Put safe text in place of what stands between two positions."""
        super().replace(safe_text(text[:_LONGEST_QUERY], newlines=False, tabs=False), start, end)


class HistoryMatches(AutoComplete):
    """The entries that match what was typed; Enter or Tab ends the search with the one that is chosen."""

    def __init__(self, line: HistoryInput, entries: Sequence[Sent]) -> None:
        super().__init__(line, candidates=None)
        self._entries = list(dict.fromkeys(reversed(entries)))[:ENTRIES]
        self._searched = [sent.text[:_SEARCHED] for sent in self._entries]
        self._query: str | None = None
        self._found: list[Sent] = []
        self._items: list[DropdownItem] = []

    def get_candidates(self, target_state: TargetState) -> list[DropdownItem]:
        """Return nothing: all there is to find is found by `get_matches`."""
        del target_state
        return []

    def get_matches(
        self, target_state: TargetState, candidates: list[DropdownItem], search_string: str
    ) -> list[DropdownItem]:
        """Return what every typed word is found in, the likeliest and then the newest first."""
        del target_state, candidates
        # It is asked twice for each key.
        if search_string != self._query:
            self._query = search_string
            self._found = [self._entries[place] for place in ranked(search_string, self._searched)[:MATCHES]]
            self._items = [DropdownItem(Content(flowing(sent.text, _SHOWN_CELLS))) for sent in self._found]
        return self._items

    def should_show_dropdown(self, search_string: str) -> bool:
        """Say yes wherever there is something to show, before anything is typed as well."""
        del search_string
        return self.option_list.option_count > 0

    def apply_completion(self, value: str, state: TargetState) -> None:
        """End the search with what is under the cursor; two texts may look alike in one line."""
        del value, state
        screen = cast("Screen[Sent | None]", self.screen)
        screen.dismiss(self._found[self.option_list.highlighted or 0])
