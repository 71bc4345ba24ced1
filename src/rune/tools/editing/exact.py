"""A search that stands in the text character by character. It is replaced as it is, but where a small model is known
to have left out what belongs to its lines: the first line's indentation, or the last line's end.
"""

from typing import Final

from rune.tools.editing.book import Book, indent_of
from rune.tools.editing.forms import is_plain_marker
from rune.tools.editing.found import Found
from rune.tools.line_ends import Change

MOST_PLACES: Final = 6
"""More places are not looked for: two are too many already."""

_OPENS: Final = (":", "{", "(", "[", ",", "=", "\\", " then", " do", "=>", "->")


def exact(book: Book, search: str, replace: str) -> list[Found]:
    """Return the places at which the search stands, overlapping ones too; `changes` only when it is the one."""
    text = book.text
    starts: list[int] = []
    at = text.find(search)
    while at >= 0 and len(starts) < MOST_PLACES:
        starts.append(at)
        at = text.find(search, at + 1)
    if len(starts) != 1:
        return [Found(start, start + len(search)) for start in starts]
    return [_replaced(book, starts[0], search, replace)]


def marker_in(search: str, replace: str) -> str:
    """Return why a replacement cannot be written because it says "the code that is there" instead of that code."""
    known = {line.strip() for line in search.split("\n")}
    for line in replace.split("\n"):
        if is_plain_marker(line) and line.strip() not in known:
            return (
                f"the replacement holds {line.strip()!r}, which would be written into the file as it is; write the "
                "lines themselves, or give search and replacement the same line '...' for what stays"
            )
    return ""


def _replaced(book: Book, start: int, search: str, replace: str) -> Found:
    end = start + len(search)
    if _stands_there(book.text, start, search, replace):
        return Found(start, end, there=True)
    doubt = marker_in(search, replace) or _unclear_indent(book, start, search, replace)
    if doubt:
        return Found(start, end, doubt=doubt)
    said: list[str] = []
    before = _before(book, start)
    from_start = start
    if _is_blank(before) and _several(search) and indent_of(replace) == before and not indent_of(search):
        from_start = start - len(before)
        said.append("the search's first line had lost its indentation")
    new = _with_line_end(book.text, end, search, replace) if _is_blank_or_empty(before) else replace
    if new != replace:
        said.append("the replacement was given the line end that the search has")
    return Found(from_start, end, (Change(from_start, end, new),), tuple(said))


def _stands_there(text: str, start: int, search: str, replace: str) -> bool:
    """Say whether the replacement, which holds the search, stands round it already."""
    offset = replace.find(search)
    while offset >= 0 and replace != search:
        if start >= offset and text.startswith(replace, start - offset):
            return True
        offset = replace.find(search, offset + 1)
    return False


def _unclear_indent(book: Book, start: int, search: str, replace: str) -> str:
    before = _before(book, start)
    if not _is_blank(before) or indent_of(search) or not _ends_line(book.text, start + len(search), search):
        return ""
    if _several(search):
        # Its further lines stand in the file as they are: it was only cut at the beginning.
        if indent_of(replace) in {"", before}:
            return ""
        return "the search's first line is not indented, and the replacement's is, otherwise than the file"
    if indent_of(replace):
        return "the search is not indented, and the replacement is; give both with the indentation of the file"
    lines = [line for line in replace.split("\n") if line.strip()]
    if len(lines) > 1:
        opens = lines[0].rstrip().endswith(_OPENS)
        further = [indent_of(line) for line in lines[1:]]
        if any(not indent.startswith(before) for indent in further) or (opens and before in further[:1]):
            return (
                "the search is not indented, so it cannot be told how far the further lines of the replacement shall "
                "be; give both with the indentation of the file"
            )
    return ""


def _with_line_end(text: str, end: int, search: str, replace: str) -> str:
    if search.endswith("\n"):
        # A replacement that ends in a blank may mean to join lines, unless the line that it replaces did as well.
        joins = replace[-1:].isspace() and not search[-2:-1].isspace()
        return replace if not replace or joins or replace.endswith("\n") else f"{replace}\n"
    at_end = end == len(text) or text[end] == "\n"
    if at_end and replace.endswith("\n") and replace.strip("\n") and replace.rstrip("\n") != search:
        return replace[:-1]
    return replace


def _before(book: Book, start: int) -> str:
    return book.text[book.starts[book.line_of(start)] : start]


def _is_blank(before: str) -> bool:
    return bool(before) and not before.strip(" \t")


def _is_blank_or_empty(before: str) -> bool:
    return not before.strip(" \t")


def _several(text: str) -> bool:
    return "\n" in text.rstrip("\n")


def _ends_line(text: str, end: int, search: str) -> bool:
    return end == len(text) or text[end] == "\n" or search.endswith("\n")
