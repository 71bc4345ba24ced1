"""Where Markdown may be cut, so that its parts are parsed, drawn and kept one by one, also while it grows.

One pass over the lines, no parse. A block holds one thing or several (where only the parser could tell), never a
part of one, with these exceptions, which bound what one more word costs: code, tables, quotes, lists and
paragraphs that go on and on are cut into parts, and each part's kind holds what it needs of those before it.

Link definitions (`[label]: address`) are text like any other: what they define could be anywhere.
"""

import copy

from rune.tui.markdown.kinds import PROSE, Block, Code, Inside, Kind, Prose, Rest, Rows
from rune.tui.markdown.scan import Scan

__all__ = [
    "PROSE",
    "Block",
    "Code",
    "Growing",
    "Inside",
    "Kind",
    "Prose",
    "Rest",
    "Rows",
    "split",
    "stable_end",
]


def split(source: str) -> tuple[Block, ...]:
    """Return the blocks of a whole text: they cover it without gaps."""
    growing = Growing()
    growing.grow(source, ended=True)
    return (*growing.settled, *growing.open)


def stable_end(source: str) -> int:
    """Return up to where the blocks of a growing text no longer change, whatever is appended."""
    growing = Growing()
    growing.grow(source)
    return growing.settled[-1].end if growing.settled else 0


class Growing:
    """The blocks of a text that grows at its end; growing it costs what was added, not what there is."""

    def __init__(self) -> None:
        self.settled: list[Block] = []  # what nothing appended changes; only ever becomes more, until a new text
        self.open: tuple[Block, ...] = ()  # the rest, as it is drawn until more comes
        self._source = ""
        self._scan = Scan(self.settled)

    def grow(self, source: str, *, ended: bool = False) -> int:
        """Take the text so far, all of it; `ended`: nothing more comes. Return how many of the settled blocks
        from before still hold: all of them, or none if the text is another one.
        """
        known = len(self.settled)
        if not source.startswith(self._source):
            self.settled.clear()
            self._scan = Scan(self.settled)
            known = 0
        self._source = source
        self._scan.read(source, ended=ended)
        # The last line may become anything yet; it is taken for what it looks like now, by a scan that is dropped.
        tail: list[Block] = []
        trial = copy.copy(self._scan)
        trial.out = tail
        trial.end(source, ended=ended)
        self.open = tuple(tail)
        return known
