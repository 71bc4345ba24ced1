"""A search found as lines that say the same but are set otherwise: indentation, blanks, blank lines, quotes."""

from itertools import pairwise

from rune.tools.editing.book import Book, indent_of, key
from rune.tools.editing.exact import MOST_PLACES, marker_in
from rune.tools.editing.found import Found
from rune.tools.editing.merge import Block, Doubt, block, merge
from rune.tools.line_ends import Change

OTHER_INDENTATION = "other indentation"
ROUND_IT = "matched in spite of blank lines or a line end round it"


def whole_lines(book: Book, search: str, replace: str) -> list[Found]:
    """Return the places at which the lines of the search stand in spite of such differences."""
    wanted, new = block(search), block(replace)
    runs = book.runs([key(line) for line in wanted.solid], MOST_PLACES)
    if len(runs) > 1:
        # One that differs in nothing but blanks at the ends of lines is meant before those that are set otherwise.
        close = [first for first in runs if _is_close(book, first, wanted)]
        runs = close or runs
    if len(runs) != 1:
        return [Found(*extent(book, first, len(wanted.solid))) for first in runs]
    doubt = marker_in(search, replace)
    start, end = extent(book, runs[0], len(wanted.solid))
    return [Found(start, end, doubt=doubt) if doubt else placed(book, runs[0], wanted, new, replace)]


def extent(book: Book, first: int, count: int) -> tuple[int, int]:
    """Return where so many solid lines begin and end, without the last one's end."""
    last = book.solid[first + count - 1]
    return book.starts[book.solid[first]], book.starts[last] + len(book.lines[last])


def placed(book: Book, first: int, wanted: Block, new: Block, replace: str) -> Found:
    """Return what it means to put `new` in the place of the solid lines from `first` on."""
    start, end = extent(book, first, len(wanted.solid))
    if _stands_there(book, first, wanted, new):
        return Found(start, end, there=True)
    merged = merge(book, first, wanted, new)
    if isinstance(merged, Doubt):
        return Found(start, end, doubt=merged.why)
    named = differences(book, first, wanted)
    said = [f"matched in spite of {named}" if named else ROUND_IT]
    if merged.reindented:
        said.append("the replacement was indented as the file is")
    if not new.solid:
        return Found(start, end, (_without(book, first, wanted, replace),), tuple(said))
    text = "\n".join(merged.lines)
    more_before, more_after = new.gaps[0] - wanted.gaps[0], new.tail - wanted.tail
    before, after = _blanks_round(book, first, len(wanted.solid))
    if (more_before < 0 and before < wanted.gaps[0]) or (more_after < 0 and after < wanted.tail):
        return Found(start, end, doubt="the blank lines round it are not those of the file")
    text = "\n" * more_before + text + "\n" * more_after
    number, last = book.line_of(start), book.line_of(end)
    change_start = book.starts[number + min(more_before, 0)]
    gone = last - min(more_after, 0)
    change_end = book.starts[gone] + len(book.lines[gone])
    return Found(start, end, (Change(change_start, change_end, text),), tuple(said))


def differences(book: Book, first: int, wanted: Block) -> str:
    """Name how the lines of the search differ from those of the file; "" when only what is round them does."""
    numbers = book.solid[first : first + len(wanted.solid)]
    pairs = [(mine, book.lines[number]) for mine, number in zip(wanted.solid, numbers, strict=True)]
    named: list[str] = []
    if any(indent_of(mine) != indent_of(theirs) for mine, theirs in pairs):
        named.append(OTHER_INDENTATION)
    if any(mine.rstrip() == mine and theirs.rstrip() != theirs for mine, theirs in pairs) or any(
        mine.rstrip() != mine and theirs.rstrip() == theirs for mine, theirs in pairs
    ):
        named.append("blanks at line ends")
    if any(mine.strip() != theirs.strip() for mine, theirs in pairs):
        named.append("other blanks, quotes or forms of letters")
    gaps = [after - before - 1 for before, after in pairwise(numbers)]
    if gaps != wanted.gaps[1:]:
        named.append("other blank lines")
    return " and ".join(named)


def _stands_there(book: Book, first: int, wanted: Block, new: Block) -> bool:
    """Say whether the replacement, which holds the search and more, stands round it already."""
    old_keys, new_keys = [key(line) for line in wanted.solid], [key(line) for line in new.solid]
    more = len(new_keys) - len(old_keys)
    return more > 0 and any(
        new_keys[offset : offset + len(old_keys)] == old_keys
        and first >= offset
        and book.keys[first - offset : first - offset + len(new_keys)] == new_keys
        for offset in range(more + 1)
    )


def _is_close(book: Book, first: int, wanted: Block) -> bool:
    numbers = book.solid[first : first + len(wanted.solid)]
    gaps = [after - before - 1 for before, after in pairwise(numbers)]
    return gaps == wanted.gaps[1:] and all(
        mine.rstrip() == book.lines[number].rstrip() for mine, number in zip(wanted.solid, numbers, strict=True)
    )


def _blanks_round(book: Book, first: int, count: int) -> tuple[int, int]:
    """Return how many blank lines stand before and after, those at the end of the text without the empty one that is
    only behind its last line end.
    """
    last = first + count - 1
    before = book.solid[first] - (book.solid[first - 1] + 1 if first else 0)
    lines = len(book.lines) - (not book.lines[-1])
    following = book.solid[last + 1] if last + 1 < len(book.solid) else max(lines, book.solid[last] + 1)
    return before, following - book.solid[last] - 1


def _without(book: Book, first: int, wanted: Block, replace: str) -> Change:
    """Take lines out: with their ends when the search has its last one's, as an exact search would."""
    start, end = extent(book, first, len(wanted.solid))
    if replace or not wanted.ended:
        ends = replace.count("\n") - wanted.ended
        return Change(start, end, "\n" * max(ends, 0))
    last = book.line_of(end) + min(wanted.tail, _blanks_round(book, first, len(wanted.solid))[1])
    return Change(start, min(book.starts[last + 1], len(book.text)), "")
