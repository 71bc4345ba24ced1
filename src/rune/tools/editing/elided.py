"""A search in which a line such as `...` or `# ... existing code ...` stands for lines that stay as they are."""

from typing import Final

from rune.tools.editing.book import Book, key
from rune.tools.editing.forms import is_marker
from rune.tools.editing.found import Found
from rune.tools.editing.merge import Block, block
from rune.tools.editing.whole_lines import ROUND_IT, extent, placed
from rune.tools.line_ends import Change

_MOST_RUNS: Final = 20  # places of one part that are looked at
_MOST_WAYS: Final = 2


def elided(book: Book, search: str, replace: str) -> list[Found]:
    """Return the ways in which the parts between the markers follow each other in the text."""
    parts, new = _parts(search), _parts(replace)
    if len(parts) == 1:
        return []
    uneven = len(new) != len(parts)
    if not uneven and parts[0].strip() == new[0].strip() == "":
        parts, new = parts[1:], new[1:]
    if not uneven and len(parts) > 1 and parts[-1].strip() == new[-1].strip() == "":
        parts, new = parts[:-1], new[:-1]
    blocks = [block(part) for part in parts]
    if not all(found.solid for found in blocks):
        return []
    ways = _ways(book, [[key(line) for line in found.solid] for found in blocks])
    counts = [len(found.solid) for found in blocks]
    places = [(extent(book, way[0], 1)[0], extent(book, way[-1], counts[-1])[1]) for way in ways]
    if len(ways) != 1:
        return [Found(*place) for place in places]
    if uneven:
        doubt = "search and replacement must have the same lines '...', each for what stays as it is"
        return [Found(*places[0], doubt=doubt)]
    return [_placed(book, places[0], ways[0], list(zip(blocks, new, strict=True)))]


def _placed(book: Book, place: tuple[int, int], way: tuple[int, ...], parts: list[tuple[Block, str]]) -> Found:
    changes: list[Change] = []
    said = ["the lines that '...' stands for were kept as they are"]
    for first, (wanted, text) in zip(way, parts, strict=True):
        into = block(text)
        if not into.solid:
            return Found(*place, doubt="one part of the replacement, between its lines '...', is empty")
        found = placed(book, first, wanted, into, text)
        if found.doubt or found.there:
            return Found(*place, doubt=found.doubt, there=found.there)
        changes += found.changes
        said += [line for line in found.said if line not in {*said, ROUND_IT}]
    return Found(*place, tuple(changes), tuple(said))


def _parts(text: str) -> list[str]:
    parts: list[list[str]] = [[]]
    for line in text.split("\n"):
        if is_marker(line):
            parts.append([])
        else:
            parts[-1].append(line)
    return ["\n".join(lines) for lines in parts]


def _ways(book: Book, parts: list[list[str]]) -> list[tuple[int, ...]]:
    """Return the ways to place all parts one after another, two at most. What lies between two may not be indented
    less than the second begins: it would belong to something else.
    """
    ways: list[tuple[int, ...]] = [(first,) for first in book.runs(parts[0], _MOST_RUNS)]
    for number, keys in enumerate(parts[1:]):
        nexts = book.runs(keys, _MOST_RUNS)
        ways = [(*way, following) for way in ways for following in _reached(book, way[-1] + len(parts[number]), nexts)]
        if len(ways) > _MOST_RUNS:
            ways = ways[:_MOST_RUNS]
    return ways[:_MOST_WAYS]


def _reached(book: Book, at: int, nexts: list[int]) -> list[int]:
    reached: list[int] = []
    lowest: int | None = None
    for following in nexts:
        if following < at:
            continue
        between = book.depths[at:following]
        if between:
            lowest = min(between) if lowest is None else min(lowest, *between)
        at = following
        if lowest is None or lowest >= book.depths[following]:
            reached.append(following)
    return reached
