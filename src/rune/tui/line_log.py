"""A transcript as numbered lines: which entry stands where, laid out only where somebody looks.

An entry nobody has looked at has a guessed height. What is looked at is cut into parts, and a part is drawn when it
comes into the window or near it; the newest few thousand drawn lines are kept. The line at the window's top is held
by *what* it is (a `Spot`), not by its number, so that a height which turns out otherwise moves nothing that is seen.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

from rune.tui.drawing import Drawn, Part, draw, foldable, guess, guess_entry, lines_of
from rune.tui.line_index import LineIndex
from rune.tui.lines import Line
from rune.tui.transcript_state import Entry, Transcript

KEPT_LINES: Final = 6_000
KEPT_PARTS: Final = 64  # at least: what a window shows is never thrown out, however long one of its parts is
AHEAD_LINES: Final = 1_000  # drawn above and below the window while nothing else is to do

_BITS = 24


class Spot(NamedTuple):
    """A line by what it is: an entry, a part of it, a line of that part, each counted from 0."""

    entry: int = 0
    part: int = 0
    line: int = 0

    @property
    def number(self) -> int:
        """The spot as one number, in the order of the text: it stays the same when lines above come or go."""
        return (self.entry << _BITS | self.part) << _BITS | self.line

    @classmethod
    def of(cls, number: int) -> "Spot":
        """Return the spot that has this number."""
        rest, line = number >> _BITS, number & (1 << _BITS) - 1
        return cls(rest >> _BITS, rest & (1 << _BITS) - 1, line)


class _Sheet:
    """One entry cut into parts, with their heights: guessed, until a part is drawn."""

    def __init__(self, drawn: Drawn, width: int) -> None:
        self.drawn = drawn
        self.heights = LineIndex()
        self.measure_anew(width)

    def measure_anew(self, width: int) -> None:
        """Guess all heights."""
        self.heights = LineIndex(guess(part, width) for part in self.drawn.parts)

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.drawn.parts

    def change(self, drawn: Drawn, width: int) -> int:
        """Take the entry's new parts; returns the first that is not as it was."""
        old, self.drawn = self.drawn.parts, drawn
        same = _common(old, drawn.parts)
        self.heights.truncate(same)
        for part in drawn.parts[same:]:
            self.heights.append(guess(part, width))
        return same


class LineLog:
    """The lines of a transcript at one width. `lines_drawn` counts every line that was ever laid out."""

    def __init__(self, width: int = 80) -> None:
        self.width = width
        self.lines_drawn = 0
        self.spot = Spot()  # the line at the top of the window
        self.marked = ""  # the key of the entry whose first line is marked
        self._settled: tuple[Entry, ...] = ()
        self._entries: list[Entry] = []
        self._sheets: list[_Sheet | None] = []
        self._heights = LineIndex()
        self._opened: set[str] = set()
        self._kept: OrderedDict[Part, tuple[Line, ...]] = OrderedDict()
        self._kept_lines = 0

    @property
    def total(self) -> int:
        """How many lines there are, as far as that is known."""
        return self._heights.total

    @property
    def kept_lines(self) -> int:
        """How many drawn lines are kept."""
        return self._kept_lines

    @property
    def entries(self) -> Sequence[Entry]:
        """What is shown, in order."""
        return self._entries

    def show(self, transcript: Transcript) -> Spot | None:
        """Take a transcript; returns where the first change is, None when there is none.

        Where the settled entries are the same object, only the live ones are looked at.
        """
        settled, was = transcript.settled, self._settled
        same = len(settled) if settled is was else _common(self._entries, settled)
        self._settled = settled
        entries = (*settled[same:], *transcript.live)
        if same == 0 and (not self._entries or not entries or self._entries[0].key != entries[0].key):
            return self._replace(entries)
        first: Spot | None = None
        another = False  # what stands before an entry decides how it begins
        for number, entry in enumerate(entries, same):
            new = number >= len(self._entries) or self._entries[number].key != entry.key
            changed = self._put(number, entry, again=another)
            first, another = first or changed, new
        if same + len(entries) < len(self._entries):
            first = first or Spot(same + len(entries))
            self._truncate(same + len(entries))
        return first

    def resize(self, width: int) -> None:
        """Lay everything out anew for another width; what stands at the window's top stays there, as near as may be."""
        entry, part, at = self.spot
        sheet = self._sheets[entry] if entry < len(self._sheets) else None
        height = sheet.heights[part] if sheet is not None and part < len(sheet.heights) else 0
        self.width = width
        self._measure_anew()
        if sheet is not None and height:
            height_now = self.lines(entry, part)
            self.spot = Spot(entry, part, min(at * len(height_now) // height, max(len(height_now) - 1, 0)))

    def toggle(self, entry: int, *, opened: bool | None = None) -> None:
        """Open what is folded, fold what is open, or make it as `opened` says."""
        key = self._entries[entry].key
        opened = key not in self._opened if opened is None else opened
        self._opened = self._opened | {key} if opened else self._opened - {key}
        if self._sheets[entry] is not None:
            self._put(entry, self._entries[entry], again=True)

    def opened(self, entry: int) -> bool:
        """Say whether an entry was opened."""
        return self._entries[entry].key in self._opened

    def parts(self, entry: int) -> tuple[Part, ...]:
        """Return an entry's parts; cuts it where that was not done."""
        return self._sheet(entry).parts

    def lines(self, entry: int, part: int) -> tuple[Line, ...]:
        """Return the lines of a part; draws it where it is not kept."""
        sheet = self._sheet(entry)
        which = sheet.parts[part]
        kept = self._kept.get(which)
        if kept is None:
            kept = lines_of(which, self.width)
            self.lines_drawn += len(kept)
            self._kept[which] = kept
            self._kept_lines += len(kept)
            while self._kept_lines > KEPT_LINES and len(self._kept) > KEPT_PARTS:
                self._kept_lines -= len(self._kept.popitem(last=False)[1])
            sheet.heights.set(part, len(kept))
            self._heights.set(entry, sheet.heights.total)
        else:
            self._kept.move_to_end(which)
        return kept

    def at(self, line: int) -> Spot | None:
        """Return what stands at a line; None beyond the last."""
        if not 0 <= line < self.total:
            return None
        entry, line = self._heights.find(line)
        sheet = self._sheet(entry)
        if line >= sheet.heights.total:
            return None
        return Spot(entry, *sheet.heights.find(line))

    def line_of(self, spot: Spot) -> int:
        """Return the line at which something stands, or stood before it went."""
        entry, part, at = spot
        if entry >= len(self._entries):
            return self.total
        top, sheet = self._heights.top(entry), self._sheets[entry]
        if sheet is None:
            return top
        if part >= len(sheet.heights):
            return top + sheet.heights.total
        return top + sheet.heights.top(part) + min(at, max(sheet.heights[part] - 1, 0))

    def look_at(self, line: int) -> None:
        """Make what stands at a line, as far as that is known, the window's first."""
        if self.total == 0:
            self.spot = Spot()
            return
        entry, at = self._heights.find(max(0, min(line, self.total - 1)))
        heights = self._sheet(entry).heights
        part, at = heights.find(min(at, heights.total - 1)) if heights.total else (0, 0)
        drawn = len(self.lines(entry, part)) if heights.total else 0
        self.spot = Spot(entry, part, max(min(at, drawn - 1), 0))

    def look_for(self, key: str) -> bool:
        """Make the first line of the entry with that key the window's first, unfolded and marked; False for none."""
        entry = next((number for number, each in enumerate(self._entries) if each.key == key), None)
        if entry is None:
            return False
        if foldable(self._entries[entry]):
            self.toggle(entry, opened=True)
        self.spot = Spot(entry, 0, self._above(entry))
        self.marked = key
        return True

    def is_marked(self, spot: Spot) -> bool:
        """Say whether a line is the marked one."""
        if not self.marked or self._entries[spot.entry].key != self.marked:
            return False
        return spot[1:] == (0, self._above(spot.entry))

    def _above(self, entry: int) -> int:
        return self.parts(entry)[0].above if self.parts(entry) else 0

    def move(self, lines: int) -> None:
        """Make the line so many below the window's first (above, below 0) its first, all between them being drawn."""
        entry, part, at = self.spot
        left = at + lines
        if left >= 0:
            for spot in self._down(entry, part):
                height = len(self.lines(*spot))
                self.spot = Spot(*spot, min(left, max(height - 1, 0)))
                if left < height:
                    return
                left -= height
            return
        for spot in self._up(entry, part):
            left += len(self.lines(*spot))
            if left >= 0:
                self.spot = Spot(*spot, left)
                return
        self.spot = Spot()

    def fill(self, height: int) -> int:
        """Draw a window of so many lines from its first on; returns the number of that line."""
        left = height + self.spot.line
        for entry, part in self._down(self.spot.entry, self.spot.part):
            left -= len(self.lines(entry, part))
            if left <= 0:
                return self.line_of(self.spot)
        return self.fill_end(height)

    def fill_end(self, height: int) -> int:
        """Draw the last so many lines and make the first of them the window's; returns its number."""
        left = height
        for entry, part in self._up(len(self._entries) - 1, None):
            left -= len(self.lines(entry, part))
            if left <= 0:
                break
        top = max(self.total - height, 0)
        self.spot = self.at(top) or Spot()
        return top

    def ahead(self, height: int) -> Iterator[bool]:
        """Draw what lies round a window of so many lines, nearest first: a part, or a look at one, at each step.

        Says whether it drew. Ends where AHEAD_LINES are drawn on both sides, or nothing is left.
        """
        down, up = self._down(self.spot.entry, self.spot.part), self._up(self.spot.entry, self.spot.part)
        below, above = AHEAD_LINES + height + self.spot.line, AHEAD_LINES
        while below > 0 or above > 0:
            for side in (down, up):
                room = below if side is down else above
                spot = next(side, None) if room > 0 else None
                drew = self.lines_drawn
                lines = len(self.lines(*spot)) if spot is not None else room
                if side is down:
                    below -= max(lines, 0)
                else:
                    above -= max(lines, 0)
                yield self.lines_drawn != drew

    def _put(self, number: int, entry: Entry, *, again: bool = False) -> Spot | None:
        """Set an entry; returns the first line that changed."""
        before = self._entries[number - 1] if number else None
        if number == len(self._entries):
            self._entries.append(entry)
            self._sheets.append(None)
            self._heights.append(guess_entry(entry, before, self.width))
            return Spot(number)
        old, sheet = self._entries[number], self._sheets[number]
        if old is entry and not again:
            return None
        self._entries[number] = entry
        if sheet is None or old.key != entry.key:
            self._forget(sheet)
            self._sheets[number] = None
            self._heights.set(number, guess_entry(entry, before, self.width))
            return Spot(number)
        was = sheet.parts
        drawn = draw(entry, before, opened=entry.key in self._opened, known=sheet.drawn)
        same = sheet.change(drawn, self.width)
        shown = self._kept.get(was[same], ()) if same < len(was) else ()
        for part in was[same:]:
            self._drop(part)
        self._heights.set(number, sheet.heights.total)
        if same == max(len(was), len(drawn.parts)):
            return None
        # Of a paragraph that grows only the last line is another one: what was drawn before tells which.
        now = self.lines(number, same) if shown and same < len(drawn.parts) else ()
        alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(shown, now, strict=False)))
        return Spot(number, same, alike)

    def _sheet(self, entry: int) -> _Sheet:
        sheet = self._sheets[entry]
        if sheet is None:
            this, before = self._entries[entry], self._entries[entry - 1] if entry else None
            sheet = _Sheet(draw(this, before, opened=this.key in self._opened), self.width)
            self._sheets[entry] = sheet
            self._heights.set(entry, sheet.heights.total)
        return sheet

    def _down(self, entry: int, part: int) -> Iterator[tuple[int, int]]:
        """Yield a part and all after it."""
        while entry < len(self._entries):
            for number in range(part, len(self.parts(entry))):
                yield entry, number
            entry, part = entry + 1, 0

    def _up(self, entry: int, part: int | None) -> Iterator[tuple[int, int]]:
        """Yield all parts before one, the nearest first; None: the whole entry too."""
        while entry >= 0:
            for number in range((len(self.parts(entry)) if part is None else part) - 1, -1, -1):
                yield entry, number
            entry, part = entry - 1, None

    def _replace(self, entries: Sequence[Entry]) -> Spot | None:
        nothing = not entries and not self._entries
        self._entries = list(entries)
        self._sheets = [None] * len(entries)
        self.spot = Spot()
        self._measure_anew()
        return None if nothing else self.spot

    def _truncate(self, length: int) -> None:
        for sheet in self._sheets[length:]:
            self._forget(sheet)
        del self._entries[length:], self._sheets[length:]
        self._heights.truncate(length)

    def _forget(self, sheet: _Sheet | None) -> None:
        for part in sheet.parts if sheet is not None else ():
            self._drop(part)

    def _drop(self, part: Part) -> None:
        self._kept_lines -= len(self._kept.pop(part, ()))

    def _measure_anew(self) -> None:
        self._kept.clear()
        self._kept_lines = 0
        before: Entry | None = None
        heights: list[int] = []
        for number, entry in enumerate(self._entries):
            sheet = self._sheets[number]
            if sheet is None:
                heights.append(guess_entry(entry, before, self.width))
            else:
                sheet.measure_anew(self.width)
                heights.append(sheet.heights.total)
            before = entry
        self._heights = LineIndex(heights)


def _common(one: Sequence[object], other: Sequence[object]) -> int:
    """Return how many items at the beginning of both are the same objects."""
    for number, (left, right) in enumerate(zip(one, other, strict=False)):
        if left is not right:
            return number
    return min(len(one), len(other))
