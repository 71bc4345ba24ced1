"""Going back and forth in what was sent, without losing what is being typed. Knows no widget."""

from collections.abc import Iterable

from rune.surface.prompt_history import Sent


class PastPrompts:
    """Entries oldest first; behind the newest is the place of what is being typed.

    What is changed in a place is kept, and shown again on coming back, until something is sent: `forget`.
    """

    def __init__(self) -> None:
        self._entries: list[Sent] = []
        self._own: list[Sent] = []
        self._at = 0
        self._kept: dict[int, str] = {}

    @property
    def browsing(self) -> bool:
        """Whether an entry is in front, not what is being typed."""
        return self._at < len(self._entries)

    def use(self, entries: Iterable[Sent]) -> None:
        """Have these entries from now on, and behind them what was added since and is not among them."""
        known = list(entries)
        self._entries = known + [sent for sent in self._own if sent not in known]
        self.forget()

    def add(self, sent: Sent) -> None:
        """Add what was sent just now; the same twice in a row is there once."""
        self._own.append(sent)
        if not self._entries or self._entries[-1] != sent:
            self._entries.append(sent)
        self.forget()

    def forget(self) -> None:
        """Be behind the newest entry, with nothing kept."""
        self._kept.clear()
        self._at = len(self._entries)

    def step(self, by: int, shown: str) -> Sent | str | None:
        """Go `by` places on, keeping `shown`, which is in front now. Returns the entry there, or what was kept of it
        in the form in which it was given; None when there is no such place.
        """
        place = self._at + by
        if not 0 <= place <= len(self._entries):
            return None
        self._kept[self._at] = shown
        self._at = place
        if place == len(self._entries):
            return self._kept.get(place, "")
        return self._kept.get(place, self._entries[place])
