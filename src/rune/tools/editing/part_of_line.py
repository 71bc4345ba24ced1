"""A search found inside one line in spite of other blanks, quotes, or forms of letters."""

import re
import unicodedata
from collections import defaultdict
from itertools import islice
from typing import Final

from rune.tools.editing.book import PLAIN, Book, indent_of
from rune.tools.editing.exact import MOST_PLACES
from rune.tools.editing.found import Found
from rune.tools.editing.merge import in_their_words, styled
from rune.tools.line_ends import Change

_SHORTEST: Final = 4  # characters; what is shorter says too little to be taken for something else
_LONGEST: Final = 2_000


def part_of_line(book: Book, search: str, replace: str) -> list[Found]:
    """Return the places inside lines at which the search stands in spite of such differences. One line only."""
    mine, new = search.strip("\n"), replace.strip("\n")
    core = mine.strip()
    if "\n" in mine or not _SHORTEST <= len(core) <= _LONGEST:
        return []
    found = list(islice(re.finditer(_pattern(core), book.text), MOST_PLACES))
    if len(found) != 1:
        return [Found(*match.span()) for match in found]
    start, end = found[0].span()
    theirs = found[0].group()
    doubt = ""
    if _cuts_a_word(book.text, start, end):
        doubt = "what stands there goes on where the search ends"
    elif "\n" in new:
        doubt = "a part of a line was found with differences, and the replacement has several lines"
    elif indent_of(mine) != indent_of(new) or (new.strip() and _end_of(mine) != _end_of(new)):
        doubt = "search and replacement have other blanks at their ends"
    if doubt:
        return [Found(start, end, doubt=doubt)]
    text = in_their_words(theirs, core, new.strip(), styled(core, theirs))
    offset = text.find(theirs)
    if text != theirs and 0 <= offset <= start and book.text.startswith(text, start - offset):
        return [Found(start, end, there=True)]
    said = "matched part of the line in spite of other blanks, quotes or forms of letters"
    if theirs == core:
        said = "matched part of the line; the search has a line end or blanks there that the file has not"
    return [Found(start, end, (Change(start, end, text),), (said,))]


def _end_of(line: str) -> str:
    return line[len(line.rstrip()) :]


def _cuts_a_word(text: str, start: int, end: int) -> bool:
    before, after = text[max(start - 1, 0) : start], text[end : end + 1]
    return (_is_word(before) and _is_word(text[start])) or (_is_word(text[end - 1]) and _is_word(after))


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _variants() -> dict[str, str]:
    """Return for each plain character the pattern of all that are written for it."""
    known: defaultdict[str, str] = defaultdict(str)
    for code, plain in PLAIN.items():
        if len(plain) == 1 and plain != " ":
            known[plain] += chr(code)
    return {plain: f"[{re.escape(plain + others)}]" for plain, others in known.items()}


_VARIANTS: Final = _variants()


def _pattern(core: str) -> str:
    """Return a pattern in which nothing repeats but blanks between two characters, so that it takes linear time."""
    words = unicodedata.normalize("NFC", core).translate(PLAIN).split()
    return r"[^\S\n]+".join("".join(_character(character) for character in word) for word in words)


def _character(character: str) -> str:
    if character in _VARIANTS:
        return _VARIANTS[character]
    apart = unicodedata.normalize("NFD", character)
    return re.escape(character) if apart == character else f"(?:{re.escape(character)}|{re.escape(apart)})"
