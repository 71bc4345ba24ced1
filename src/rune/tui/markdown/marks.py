"""What the start of one line says in Markdown: fences, items, quotes, headings, rules, tables.

The answers are those of the parser that draws the text (markdown-it, HTML off, no link definitions).
"""

import re
from typing import Final, NamedTuple

# A line that stands four or more columns in is code, never a mark.
CODE_INDENT: Final = 4

_HEADING = re.compile(r"#{1,6}(?:[ \t]|$)")
_RULE = re.compile(r"(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")
_UNDERLINE = re.compile(r"(?:-+|=+)[ \t]*$")
_ITEM = re.compile(r"([-+*])(?=[ \t]|$)|([0-9]{1,9})([.)])(?=[ \t]|$)")
_FENCE = re.compile(r"(`{3,})([^`]*)$|(~{3,})(.*)$")
_BEFORE_INNER_FENCE = re.compile(r"(?:[ \t>]*(?:[-+*]|[0-9]{1,9}[.)])(?=[ \t]))*[ \t>]*(?=```|~~~)")
_DELIMITERS = re.compile(r"(?:[|:]|-(?![ \t]))[|:\- \t][|:\- \t]*$")
_DELIMITER = re.compile(r":?-+:?$")
_PIPE = re.compile(r"(?<!\\)\|")


class Fence(NamedTuple):
    """An opened fence: its character and length, the column it stands in, and what is said of the language."""

    char: str
    length: int
    column: int
    info: str

    def closed_by(self, rest: str, column: int) -> bool:
        """Say whether a line of this `rest`, which begins in this column, ends it."""
        marks = rest.rstrip(" \t")
        return len(marks) >= self.length and marks == self.char * len(marks) and column < self.column + CODE_INDENT


class Item(NamedTuple):
    """The mark of a list item: what lists it may belong to, its number, where its text begins."""

    marker: str
    number: int | None
    content: int  # the column
    empty: bool


def indent(line: str) -> tuple[int, str]:
    """Return how many columns a line is indented by, and the line without that."""
    rest = line.lstrip(" \t")
    lead = line[: len(line) - len(rest)]
    return columns(lead), rest


def columns(text: str, column: int = 0) -> int:
    """Return the column after `text`, tabs going to the next multiple of four."""
    if "\t" not in text:
        return column + len(text)
    for char in text:
        column += 4 - column % 4 if char == "\t" else 1
    return column


def dedented(line: str, by: int) -> str:
    """Return `line` without its first `by` columns of white space, or as many as it has."""
    rest = line.lstrip(" \t")
    column = 0
    for position, char in enumerate(line[: len(line) - len(rest)]):
        if column >= by:
            return " " * (column - by) + line[position:]
        column = columns(char, column)
    return " " * (column - by) + rest


def fence(rest: str, column: int) -> Fence | None:
    """Return the fence that a line opens; `rest` is the line without its indent."""
    if rest[:3] not in ("```", "~~~") or (found := _FENCE.match(rest)) is None:
        return None
    marks, info = found.group(1) or found.group(3), found.group(2) or found.group(4) or ""
    return Fence(marks[0], len(marks), column, info.strip()[:80])


def inner_fence(line: str) -> Fence | None:
    """Return the fence that a line within an item opens, behind whatever marks of items and quotes."""
    if ("```" not in line and "~~~" not in line) or (found := _BEFORE_INNER_FENCE.match(line)) is None:
        return None
    return fence(line[found.end() :], columns(line[: found.end()]))


def item(rest: str, column: int) -> Item | None:
    """Return the mark of the item that a line begins."""
    if (found := _ITEM.match(rest)) is None:
        return None
    after = rest[found.end() :]
    text = after.lstrip(" \t")
    begins = column + found.end()
    content = columns(after[: len(after) - len(text)], begins)
    # Five and more are one, and an indented block; so is a line with nothing after its mark.
    if not text or content - begins > CODE_INDENT:
        content = begins + 1
    number = found.group(2)
    return Item(found.group(1) or found.group(3), None if number is None else int(number), content, not text)


def is_heading(rest: str) -> bool:
    """Say whether a line is a heading with number signs."""
    return rest[0] == "#" and _HEADING.match(rest) is not None


def is_rule(rest: str) -> bool:
    """Say whether a line is a thematic break."""
    return rest[0] in "*-_" and _RULE.match(rest) is not None


def is_underline(rest: str) -> bool:
    """Say whether a line makes a heading of the paragraph above it."""
    return rest[0] in "-=" and _UNDERLINE.match(rest) is not None


def interrupts(rest: str, column: int, *, paragraph: bool) -> bool:
    """Say whether a line surely begins something new right after text. `paragraph`: after one at the top
    level, where only an item with text, and of a numbered list only the first, may do so.
    """
    if column >= CODE_INDENT or rest[0].isalpha():
        return False
    if rest[0] == ">" or is_heading(rest) or is_rule(rest) or fence(rest, column) is not None:
        return True
    found = item(rest, column)
    return found is not None and not (paragraph and (found.empty or found.number not in (None, 1)))


def begins_table(head: str, below: str) -> bool:
    """Say whether two lines, the first of them not indented as code, are the top of a table."""
    if "|" not in head or indent(head)[0] >= CODE_INDENT:
        return False
    column, rest = indent(below)
    if column >= CODE_INDENT or _DELIMITERS.match(rest) is None:
        return False
    cells = [cell.strip(" \t") for cell in rest.split("|")]
    inner = [cell for position, cell in enumerate(cells) if cell or 0 < position < len(cells) - 1]
    if not all(_DELIMITER.match(cell) for cell in inner):
        return False
    heads = _PIPE.split(head.strip())
    if heads and not heads[0]:
        del heads[0]
    if heads and not heads[-1]:
        del heads[-1]
    return 0 < len(heads) == len(inner)
