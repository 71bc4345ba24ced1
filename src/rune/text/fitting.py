"""Makes safe text fit into the cells of a terminal: what is too wide is cut once, with … where its end is missing."""

from typing import Final

from rune.text.cells import cell_len
from rune.text.safe_text import SafeText, safe_text

ELLIPSIS: Final = SafeText("…")
# A cell holds at most a base with six marks; what is longer than this many characters a cell is cut before it is read.
CHARS_A_CELL: Final = 8
JOINERS: Final = "\u200c\u200d\ufe0e\ufe0f"


def foreign(text: str, cells: int) -> SafeText:
    """Return foreign text (a name, a path, a title) safe, in one line and in at most `cells` cells."""
    limit = (max(cells, 0) + 1) * CHARS_A_CELL
    safe = safe_text(text[:limit], newlines=False, tabs=False)
    return cut(SafeText(safe + ELLIPSIS) if len(text) > limit else safe, cells)


def cut(text: SafeText, cells: int) -> SafeText:
    """Return `text` in at most `cells` cells, with … where its end is missing."""
    if len(text) <= cells * CHARS_A_CELL and cell_len(text) <= cells:
        return text
    return SafeText(head(text, cells - 1) + ELLIPSIS) if cells > 0 else SafeText("")


def fitting(text: str, cells: int) -> int:
    """Return how many characters from the beginning of a text fit into so many cells."""
    begins = text[: max(cells, 0)]
    if begins.isascii():
        return len(begins)
    end = taken = 0
    for char in text:
        taken += cell_len(char)
        if taken > cells:
            break
        end += 1
    # Characters that join may be wider together than one by one.
    while end and cell_len(text[:end]) > cells:
        end -= 1
    return end


def head(text: str, cells: int) -> str:
    """Return what of the beginning of a text fits into so many cells, no joiner at its end."""
    return text[: fitting(text, cells)].rstrip(JOINERS)
