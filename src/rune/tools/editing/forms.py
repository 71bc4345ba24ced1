"""What an edit may have meant: what small models wrap round text when they copy it is taken off again.

A form is taken off search and replacement alike. Where it can be taken off the search only, the form says so in
`doubt`, and is refused should its search be found.
"""

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

_FENCE: Final = re.compile(r"[ \t]*(?P<fence>`{3,}|~{3,})[^`]*")
_NUMBERED: Final = re.compile(r"[ \t]*[Ll]?(?P<number>\d{1,7})(?P<mark>\t| ?[:|\u2502\u2192])(?P<rest>.*)")
_ENTITY: Final = re.compile(r"&(?:lt|gt|amp|quot|apos|nbsp|#\d{1,7}|#x[0-9a-fA-F]{1,6});")
_ESCAPE: Final = re.compile(r"\\([ntr\"'\\/])")
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "'": "'", "\\": "\\", "/": "/"}
_MARKER: Final = re.compile(
    r"[ \t]*(?P<comment>#+|//+|--|/\*+|<!--|;+|%+|\{/\*)?[ \t]*(?:\.\.\.|\u2026)[ \t]*"
    r"(?P<words>[^.\u2026\n]*?)[ \t]*(?:\.\.\.|\u2026)?[ \t]*(?:\*+/\}?|-->)?[ \t]*"
)
_OF_CODE: Final = re.compile(
    r"(?i)\b(existing|rest|remaining|remainder|unchanged|same|omitted|previous|other|code|body|lines?|above|before)\b"
)

_LONGEST_MARKER: Final = 160


@dataclass(frozen=True, slots=True)
class Form:
    """A search and a replacement. `said`: what was taken off. `whole_lines`: it may only be found as such,
    `as_indented`: with the indentation that it has.
    """

    search: str
    replace: str
    said: tuple[str, ...] = ()
    whole_lines: bool = False
    as_indented: bool = False
    doubt: str = ""


def forms(search: str, replace: str) -> list[Form]:
    """Return the edit as given, and as it is without what may have been wrapped round it."""
    found = [Form(search, replace)]
    for take_off in _TAKEN_OFF:
        found += [form for known in tuple(found) for form in take_off(known)]
    return found


def is_marker(line: str) -> bool:
    """Say whether a line may stand for lines left out: `...`, `# ...`, `// ... existing code ...`."""
    found = _marker(line)
    return found is not None and (not found["words"] or (bool(found["comment"]) and bool(_OF_CODE.search(line))))


def is_plain_marker(line: str) -> bool:
    """Say whether a line can hardly be anything else: a comment that speaks of the code that is there."""
    found = _marker(line)
    return found is not None and bool(found["comment"]) and bool(_OF_CODE.search(found["words"]))


def _marker(line: str) -> re.Match[str] | None:
    # Longer lines are none, and would take long where they are mostly blanks.
    return _MARKER.fullmatch(line) if len(line) < _LONGEST_MARKER else None


def _without_fence(form: Form) -> Iterator[Form]:
    search = _inside_fence(form.search)
    if search is None:
        return
    replace = _inside_fence(form.replace)
    doubt = form.doubt
    if replace is None and ("```" in form.replace or "~~~" in form.replace):
        doubt = "the search stands in a code fence and the replacement holds one at another place"
    inside = form.replace if replace is None else replace
    yield Form(search, inside, (*form.said, "the code fence round it was left out"), doubt=doubt)


def _inside_fence(text: str) -> str | None:
    """Return what stands between a fence in the first line and its like in the last; None when they are not there."""
    lines = text.strip().split("\n")
    opening = _FENCE.fullmatch(lines[0])
    if opening is None or len(lines) == 1 or lines[-1].strip() != opening["fence"]:
        return None
    return "\n".join(lines[1:-1])


def _without_numbers(form: Form) -> Iterator[Form]:
    for spaced in (True, False):
        search = _unnumbered(form.search, rising=True, spaced=spaced)
        if search is None or not search.strip():
            continue
        said = (*form.said, "line numbers were left out")
        replace = _unnumbered(form.replace, rising=False, spaced=spaced)
        if replace is not None:
            yield Form(search, replace, said, whole_lines=True, doubt=form.doubt)
            return  # a blank too many is then one in both
        doubt = form.doubt
        if any(_NUMBERED.fullmatch(line) for line in form.replace.split("\n")):
            doubt = "the search has line numbers, and the replacement has them in some lines only"
        yield Form(search, form.replace, said, whole_lines=True, as_indented=True, doubt=doubt)


def _unnumbered(text: str, *, rising: bool, spaced: bool) -> str | None:
    """Return the text without the number at the beginning of each line; None unless each has one and they do not
    fall. Those of a replacement need not rise either, where lines were put in. `spaced`: a blank follows the number.
    """
    lines = text.split("\n")
    found = [_NUMBERED.fullmatch(line) for line in lines]
    if any(match is None and line.strip() and not is_marker(line) for line, match in zip(lines, found, strict=True)):
        return None
    numbered = [match for match in found if match]
    numbers = [int(match["number"]) for match in numbered]
    if len({match["mark"] for match in numbered}) != 1:
        return None
    if any(after < before + rising for before, after in pairwise(numbers)):
        return None
    if spaced and not all(match["rest"].startswith(" ") or not match["rest"] for match in numbered):
        return None
    return "\n".join(match["rest"][spaced:] if match else line for line, match in zip(lines, found, strict=True))


def _unescaped_html(form: Form) -> Iterator[Form]:
    if not _ENTITY.search(form.search) or "<" in form.search or ">" in form.search:
        return
    replace, doubt = form.replace, form.doubt
    raw = "<" in replace or ">" in replace
    if _ENTITY.search(replace):
        if raw:
            doubt = "the search is escaped as HTML, and the replacement is in part"
        replace = html.unescape(replace)
    said = (*form.said, "HTML escapes were read as the characters they stand for")
    yield Form(html.unescape(form.search), replace, said, form.whole_lines, form.as_indented, doubt)


def _unescaped_newlines(form: Form) -> Iterator[Form]:
    if not _ESCAPE.search(form.search) or "\n" in form.search.strip("\n"):
        return
    search = _ESCAPE.sub(lambda found: _ESCAPED[found[1]], form.search)
    replace, doubt = form.replace, form.doubt
    if _ESCAPE.search(replace):
        # With real line ends beside it, an escape was meant as one in the code.
        if "\n" in replace.strip("\n"):
            doubt = "the search has its line ends escaped, and the replacement has real ones beside escapes"
        if _breaks_a_string(replace):
            doubt = r"it cannot be told whether a \n in the replacement is a line end or part of a string"
        replace = _ESCAPE.sub(lambda found: _ESCAPED[found[1]], replace)
    said = (*form.said, r"escapes such as \n were read as the characters they stand for")
    yield Form(search, replace, said, form.whole_lines, form.as_indented, doubt)


def _breaks_a_string(text: str) -> bool:
    """Say whether an escaped line end stands between quotes that are not escaped themselves."""
    if '\\"' in text and '"' not in text.replace('\\"', ""):
        return False  # its quotes are escaped too, so it is as JSON has it: an escape in a string has two backslashes
    unescaped = text.replace("\\\\n", "").replace("\\\\", "")
    return any(line.count('"') % 2 or line.count("'") % 2 for line in unescaped.split("\\n"))


_TAKEN_OFF: Final[tuple[Callable[[Form], Iterator[Form]], ...]] = (
    _without_fence,
    _without_numbers,
    _unescaped_html,
    _unescaped_newlines,
)
