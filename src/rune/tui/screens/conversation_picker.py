"""Which conversation goes on."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from rune.surface.ages import age
from rune.surface.rows import ConversationRow
from rune.text.safe_text import SafeText
from rune.tui.fit import foreign, spread, width_of
from rune.tui.lines import Line, Span
from rune.tui.screens.picker import Found, Picker, PickerRow

NO_CONVERSATION: Final = "There is no conversation in this folder yet. Leave with esc and say something."
_AGE_CELLS: Final = 11
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
            return Found([_row(each, now_ms, current) for each in await load()])

        super().__init__("Conversations", rows, empty=NO_CONVERSATION, current=current)


def _row(row: ConversationRow, now_ms: int, current: str) -> PickerRow:
    here = bool(current) and row.id == current
    find = f"{row.title} {row.channel} {row.id}"

    def draw(width: int) -> Line:
        return conversation_line(row, width, now_ms=now_ms, here=here)

    return PickerRow(row.id, find, draw)


def conversation_line(row: ConversationRow, width: int, *, now_ms: int, here: bool) -> Line:
    """Return a conversation in at most `width` cells: how old, what about, who has it open, how long, which channel.

    Which columns there are depends on the width alone, so that those of all rows stand below each other.
    """
    wide = width >= _WIDE
    left = Span(SafeText(f"{age(row.last_active, now_ms):<{_AGE_CELLS}}  "), "dim")
    count = f"{row.messages:,} message{'' if row.messages == 1 else 's'}"
    right = [Span(SafeText(f"  {count:>14}  {row.channel}" if wide else f"  {row.messages:>4}"), "dim")]
    if here:
        right.insert(0, Span(SafeText("  open here" if wide else "  here"), "accent"))
    elif row.held_by is not None:
        words = f"  open in process {row.held_by}" if wide else f"  pid {row.held_by}"
        right.insert(0, Span(SafeText(words), "warning"))
    title = foreign(row.title, max(width - width_of([left, *right]), 1)) or SafeText("untitled")
    return spread([left, Span(title)], right, width)
