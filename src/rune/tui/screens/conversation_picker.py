"""Which conversation goes on."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from rune.surface.ages import age
from rune.surface.rows import ConversationRow
from rune.text.safe_text import SafeText
from rune.tui.fit import cut, foreign, spread, width_of
from rune.tui.lines import Line, Span
from rune.tui.screens.picker import Found, Picker, PickerRow

NO_CONVERSATION: Final = "There is no conversation in this folder yet. Leave with esc and say something."
_AGE_CELLS: Final = 11
_ID_CELLS: Final = 6  # of the end of an id: its beginning is the time
_LEAST_TITLE: Final = 6
_WIDE: Final = 60  # cells from which everything is said in words


class ConversationPicker(Picker):
    """Gives the id of a conversation, None when it was left. `load` may raise RuneError.

    One that another process has open may be chosen too: whether it is free is known only when it is taken.
    `now_ms` is the wall time that ages are counted from.
    """

    def __init__(
        self, load: Callable[[], Awaitable[Sequence[ConversationRow]]], *, now_ms: int, current: str = ""
    ) -> None:
        async def rows() -> Found:
            conversations = await load()
            table = ConversationTable(conversations, now_ms=now_ms, current=current)
            return Found([_row(each, table) for each in conversations])

        super().__init__("Conversations", rows, empty=NO_CONVERSATION, current=current)


class ConversationTable:
    """Draws the rows of a list of conversations. Which columns there are depends on the width alone, so that those of
    all rows stand below each other.
    """

    def __init__(self, rows: Sequence[ConversationRow], *, now_ms: int, current: str = "") -> None:
        self._rows = rows
        self._now_ms = now_ms
        self._current = current
        self._twins: dict[int, frozenset[str]] = {}

    def line(self, row: ConversationRow, width: int) -> Line:
        """Return a conversation in at most `width` cells: how old, what about, who has it open, how long, which
        channel; the end of its id too where its title reads like another one's.
        """
        wide = width >= _WIDE
        left = Span(SafeText(f"{age(row.last_active, self._now_ms):<{_AGE_CELLS}}  "), "dim")
        count = f"{row.messages:,} message{'' if row.messages == 1 else 's'}"
        right = [Span(SafeText(f"  {count:>14}  {row.channel}" if wide else f"  {row.messages:>4}"), "dim")]
        shown = _title(row, max(width - width_of([left, *right]), 1))
        if self._current and row.id == self._current:
            right.insert(0, Span(SafeText("  open here" if wide else "  here"), "accent"))
        elif row.held_by is not None:
            words = f"  open in process {row.held_by}" if wide else f"  pid {row.held_by}"
            right.insert(0, Span(SafeText(words), "warning"))
        if shown in self._alike(width - width_of([left, right[-1]])):
            tail = Span(SafeText(f"  …{foreign(row.id[-_ID_CELLS:], _ID_CELLS)}"), "dim")
            if width - width_of([left, tail, *right]) < _LEAST_TITLE:
                del right[:-1]  # who has it open is said too when it is chosen
            right.insert(0, tail)
        title = _title(row, max(width - width_of([left, *right]), 1))
        return spread([left, Span(title)], right, width)

    def _alike(self, cells: int) -> frozenset[str]:
        """Return the titles that several conversations have, as far as they are seen in so many cells."""
        if cells not in self._twins:
            counted = Counter(_title(row, max(cells, 1)) for row in self._rows)
            self._twins[cells] = frozenset(title for title, many in counted.items() if many > 1)
        return self._twins[cells]


def _row(row: ConversationRow, table: ConversationTable) -> PickerRow:
    return PickerRow(row.id, f"{row.title} {row.channel} {row.id}", partial(table.line, row))


def _title(row: ConversationRow, cells: int) -> SafeText:
    return foreign(row.title, cells) or cut(SafeText("untitled"), cells)
