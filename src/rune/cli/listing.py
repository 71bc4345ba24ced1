"""The table of `rune sessions list`: whole into a file or a pipe, on a terminal as wide as that is."""

from collections.abc import Collection, Sequence
from typing import Final

from rune.store.conversations import Conversation
from rune.surface.ages import age
from rune.surface.results import table
from rune.surface.tool_text import WAITS
from rune.text.cells import cell_len
from rune.text.fitting import foreign

_NAMES: Final = ("last", "messages", "model", "title")
_ID_CHARACTERS: Final = 6  # of the end of an id: its beginning is the time
_GAP: Final = 2
# A title says enough with so many cells; before it has fewer the other columns make room, the first of these first.
_TITLE: Final = 24
_MODEL: Final = 16
_WIDEST: Final = 500
_LEFT_OUT: Final = ("model", "messages")


def listing(found: Sequence[Conversation], now_ms: int, columns: int | None, waiting: Collection[str] = ()) -> str:
    """Return a line a conversation below a heading, each of at most `columns` cells; None: as long as they are.
    `waiting` are the ids of those in which a question waits for the person.
    """
    if columns is None:
        return table([_row(each, each.record.id, now_ms, waiting) for each in found], ("conversation", *_NAMES))
    names = ["conversation", *_NAMES]
    rows: list[list[str]] = [
        [foreign(cell, _WIDEST) for cell in _row(each, each.record.id, now_ms, waiting)] for each in found
    ]
    if _room(rows, names, columns) < _TITLE:
        names[0] = "id"
        for row, each in zip(rows, found, strict=True):
            row[0], row[3] = f"…{each.record.id[-_ID_CHARACTERS:]}", foreign(row[3], _MODEL)
    for name in _LEFT_OUT:
        if _room(rows, names, columns) < _TITLE:
            place = names.index(name)
            for row in (names, *rows):
                del row[place]
    room = _room(rows, names, columns)
    for row, each in zip(rows, found, strict=True):
        marks = _marks(each, waiting)
        row[-1] = foreign(foreign(_title(each), max(room - len(marks), 1)) + marks, room)
    return table([tuple(row) for row in rows], tuple(names))


def _row(each: Conversation, shown_id: str, now_ms: int, waiting: Collection[str]) -> tuple[str, ...]:
    when = age(each.last_active, now_ms)
    return shown_id, when, f"{each.messages:,}", each.record.model or "-", _title(each) + _marks(each, waiting)


def _title(each: Conversation) -> str:
    return each.record.title or "(empty)"


def _marks(each: Conversation, waiting: Collection[str]) -> str:
    origin = each.record.forked_from
    fork = f"  (fork of …{origin[-_ID_CHARACTERS:]})" if origin is not None else ""
    waits = f"  ({WAITS})" if each.record.id in waiting else ""
    return waits + fork + ("  (hidden)" if each.hidden else "")


def _room(rows: Sequence[Sequence[str]], names: Sequence[str], columns: int) -> int:
    """Return how many cells are left for the last column."""
    fixed = range(len(names) - 1)
    return max(columns - sum(max(cell_len(line[column]) for line in (names, *rows)) + _GAP for column in fixed), 0)
