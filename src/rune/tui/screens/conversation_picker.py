"""Which conversation goes on."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from rune.surface.ages import age
from rune.surface.rows import ConversationRow
from rune.text.safe_text import SafeText
from rune.tui.fit import cut, foreign, spread, width_of
from rune.tui.header_state import short_folder
from rune.tui.lines import Line, Span
from rune.tui.screens.picker import Found, Picker, PickerRow

NONE_ANYWHERE: Final = "There is no conversation yet. Leave with esc and say something."
NO_CONVERSATION: Final = "There is no conversation in this folder yet. Leave with esc and say something."
_AGE_CELLS: Final = 11
_ID_CELLS: Final = 6  # of the end of an id: its beginning is the time
_FOLDER_CELLS: Final = 16
_LEAST_TITLE: Final = 5
_WIDE: Final = 60  # cells from which everything is said in words
_COUNTED: Final = 44  # cells from which there is room for how many messages,
_COUNTED_ANYWHERE: Final = 84  # and beside folders


class ConversationPicker(Picker):
    """Gives the id of a conversation, None when it was left. `load` may raise RuneError.

    One that another process has open may be chosen too: whether it is free is known only when it is taken.
    `now_ms` is the wall time that ages are counted from. `anywhere`: they are of several folders, which are named.
    """

    def __init__(
        self,
        load: Callable[[], Awaitable[Sequence[ConversationRow]]],
        *,
        now_ms: int,
        current: str = "",
        query: str = "",
        anywhere: bool = False,
    ) -> None:
        async def rows() -> Found:
            conversations = await load()
            table = ConversationTable(conversations, now_ms=now_ms, current=current, anywhere=anywhere)
            return Found([_row(each, table, each.folder if anywhere else "") for each in conversations])

        title = "Conversations of all folders" if anywhere else "Conversations"
        empty = NONE_ANYWHERE if anywhere else NO_CONVERSATION
        super().__init__(title, rows, empty=empty, current=current, query=query)


class ConversationTable:
    """Draws the rows of a list of conversations. Which columns there are depends on the width alone, so that those of
    all rows stand below each other.
    """

    def __init__(
        self, rows: Sequence[ConversationRow], *, now_ms: int, current: str = "", anywhere: bool = False
    ) -> None:
        self._rows = rows
        self._anywhere = anywhere
        self._now_ms = now_ms
        self._current = current
        self._twins: dict[int, frozenset[str]] = {}

    def line(self, row: ConversationRow, width: int) -> Line:
        """Return a conversation in at most `width` cells: how old, what about, whether it is a fork, who has it open,
        how long, which channel, or of which folder; the end of its id too where its title reads like another one's.
        """
        wide = width >= _WIDE
        left = Span(SafeText(f"{age(row.last_active, self._now_ms):<{_AGE_CELLS}}  "), "dim")
        right = [Span(self._last_columns(row, width), "dim")]
        shown = _title(row, max(width - width_of([left, *right]), 1))
        kept = 1 + bool(row.held_by is not None or (self._current and row.id == self._current))
        if self._current and row.id == self._current:
            right.insert(0, Span(SafeText("  open here" if wide else "  here"), "accent"))
        elif row.held_by is not None:
            words = f"  open in process {row.held_by}" if wide and not self._anywhere else f"  pid {row.held_by}"
            right.insert(0, Span(SafeText(words), "warning"))
        if row.forked_from is not None:
            right.insert(0, Span(SafeText("  fork"), "dim"))
        if shown in self._alike(width - width_of([left, right[-1]])):
            right.insert(0, Span(SafeText(f"  …{foreign(row.id[-_ID_CELLS:], _ID_CELLS)}"), "dim"))
        # Who has it open is said wherever there is room for a title; what else it is goes before that.
        while len(right) > kept and width - width_of([left, *right]) < _LEAST_TITLE:
            del right[-kept - 1]
        title = _title(row, max(width - width_of([left, *right]), 1))
        return spread([left, Span(title)], right, width)

    def _last_columns(self, row: ConversationRow, width: int) -> SafeText:
        """Return how many messages, which channel, of which folder; what there is room for."""
        if width < _WIDE:
            return SafeText(f"  {row.messages:>4,} msg" if width >= _COUNTED else "")
        if self._anywhere:
            count = f"  {row.messages:>6,} msg" if width >= _COUNTED_ANYWHERE else ""
            folder = short_folder(row.folder, str(Path.home()), _FOLDER_CELLS)
            return SafeText(f"{count}  {row.channel}  {_padded(folder)}")
        count = f"{row.messages:,} message{'' if row.messages == 1 else 's'}"
        return SafeText(f"  {count:>14}  {row.channel}")

    def _alike(self, cells: int) -> frozenset[str]:
        """Return the titles that several conversations have, as far as they are seen in so many cells."""
        if cells not in self._twins:
            counted = Counter(_title(row, max(cells, 1)) for row in self._rows)
            self._twins[cells] = frozenset(title for title, many in counted.items() if many > 1)
        return self._twins[cells]


def _row(row: ConversationRow, table: ConversationTable, folder: str) -> PickerRow:
    kinds = f"{row.channel} fork" if row.forked_from is not None else row.channel
    return PickerRow(row.id, f"{row.title} {kinds} {folder} {row.id}", partial(table.line, row))


def _padded(folder: SafeText) -> SafeText:
    return SafeText(folder + " " * max(_FOLDER_CELLS - width_of([Span(folder)]), 0))


def _title(row: ConversationRow, cells: int) -> SafeText:
    return foreign(row.title, cells) or cut(SafeText("untitled"), cells)
