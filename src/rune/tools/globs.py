"""Patterns for names of files, as `.gitignore` has them: `*.py` at any depth, `src/**/*.ts` from the folder on.

`pathspec` reads them (docs/decisions/gitignore.md); here it is said what they are matched against.
"""

import re
from collections.abc import Callable, Iterator
from itertools import count, pairwise
from pathlib import Path
from typing import Final

import msgspec

from rune.errors import InvalidArgumentsError

_ANY_FOLDER: Final = "(?P<ps_d>/)"  # how pathspec writes `*/`: it finds the first slash of a path, not the last
# What pathspec makes of a pattern, part by part.
_PART: Final = re.compile(
    r"(?P<tail>\(\?:\(\?P<ps_d>/\)\|\$\)|\(\?P<ps_d>/\))|(?P<first>\(\?:\.\+/\)\?)|(?P<deep>\(\?:/\.\+\)\?)|"
    r"(?P<whole>\[\^/\]\+)|(?P<star>\[\^/\]\*)|(?P<slash>/)|(?P<class>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<one>\\.|.)",
    re.DOTALL,
)
_FIRST: Final = "(?:.+/)?"
_DEEP: Final = "(?:/.+)?"
_STAR: Final = "[^/]*"
_MOST_PATTERNS: Final = 256
_MOST_CHARACTERS: Final = 1_000


class NamePattern(msgspec.Struct, frozen=True):
    """One pattern; `negated`: it began with `!`."""

    regex: re.Pattern[str]
    negated: bool

    def fits(self, path: str) -> bool:
        """Say whether it is about this very path; one about a folder above it, which was entered, is not. The path of a
        folder ends with a slash.
        """
        found = self.regex.search(path)
        if found is None:
            return False
        if "ps_d" not in self.regex.groupindex:  # `*`, or `x/**`: that is all that is in a folder, and not the folder
            return found.end() < len(path) or not self.regex.pattern.endswith("/")
        if found["ps_d"] is None or found.end() == len(path):
            return True
        return path.endswith("/") and self.regex.pattern == _ANY_FOLDER


def name_pattern(text: str) -> NamePattern | None:
    """Read a line of a `.gitignore`; None for a comment or an empty line. Raises ValueError for what is no pattern."""
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern  # noqa: PLC0415 - 25 ms that a start can spare

    # Of `x/**/` the library makes a pattern for x and all below it; git means each folder below.
    regex, include = GitIgnoreSpecPattern.pattern_to_regex(f"{text}*/" if text.endswith("/**/") else text)
    if regex is None or include is None:
        return None
    try:
        return NamePattern(re.compile(_never_back(regex)), not include)
    except re.error as error:
        raise ValueError(str(error)) from error


class Globs(msgspec.Struct, frozen=True):
    """One pattern as it was given, and those that its `{a,b}` stand for."""

    text: str
    texts: tuple[str, ...]
    patterns: tuple[NamePattern, ...]

    @property
    def names(self) -> bool:
        """Whether no folder is part of it."""
        return not any("/" in text for text in self.texts)

    @property
    def finds_folders(self) -> bool:
        """Whether a folder may be meant, and not only all that there is."""
        return any(text.rpartition("/")[2].strip("*") or text.endswith("/") for text in self.texts)

    def fit(self, path: str, *, folder: bool = False) -> bool:
        """Say whether a path relative to where the pattern starts is meant."""
        whole = f"{path}/" if folder else path
        return any(pattern.fits(whole) for pattern in self.patterns)


def globs(pattern: str, *, start: Path) -> Globs:
    """Read a pattern; `start` is the real folder from which it looks. Raises InvalidArgumentsError."""
    text = pattern.removeprefix(f"{start}/").removeprefix("./")
    if not text.strip("/"):
        raise InvalidArgumentsError("the pattern is empty", hint="All files: **")
    if text.startswith("/") or ".." in text.split("/"):
        raise InvalidArgumentsError(
            f"{pattern!r} does not start in {start}", hint="Give the folder as path, and a pattern from there."
        )
    if len(text) > _MOST_CHARACTERS:
        raise InvalidArgumentsError(f"the pattern is longer than {_MOST_CHARACTERS:,} characters")
    texts: dict[str, None] = {}
    for each in _expanded(text):
        if len(texts) == _MOST_PATTERNS:
            raise InvalidArgumentsError(f"the pattern stands for more than {_MOST_PATTERNS} others")
        texts[each] = None
    return Globs(text, tuple(texts), tuple(found for each in texts if (found := _pattern(each)) is not None))


def _never_back(regex: str) -> str:
    """Return an expression of pathspec's that fits the same, in a time that does not explode: `*a*a*a*a*b` and
    `a/**/a/**/b` try all ways to share a name out, for ever, and no thread of the process runs meanwhile.

    What stands between two stars has a fixed length, so the first place where it fits is as good as any later one, and
    is never left again (it is looked ahead for, and then repeated). So with the folders between two `**`.
    """
    groups = count()

    def held(inner: str) -> str:
        name = f"q{next(groups)}"
        return f"(?=(?P<{name}>{inner}))(?P={name})"

    *texts, last = _blocks(regex, held)
    for place, text in enumerate(texts):
        # The beginning and a `**` before it are part of a block; it ends where a folder's name does.
        if place:
            texts[place] = held(f"(?:/.+?)??{text}(?=/)")
        elif text.startswith(f"^{_FIRST}"):
            texts[place] = "^" + held(f"(?:.+?/)??{text[len(_FIRST) + 1 :]}(?=/)")
    return "".join([*texts, *([_DEEP] if texts else []), last])


def _blocks(regex: str, held: Callable[[str], str]) -> list[str]:
    """Return what stands between one `**` and the next, with all stars of a name but its last one held."""
    blocks: list[list[str]] = [[]]
    fixed: list[str] = []  # since the last star of this folder's name; its first is the star
    for found in _PART.finditer(regex):
        kind, text = found.lastgroup, found.group()
        if kind == "class":
            kind, text = "one", f"(?!/){text}"  # `[!a]` is no slash to git
        if kind == "one" and fixed:
            fixed.append(text)
            continue
        if kind == "star" and len(fixed) > 1:
            blocks[-1].append(held(f"{_STAR}?{''.join(fixed[1:])}"))
        elif kind != "star":
            blocks[-1] += fixed
        fixed = [text] if kind == "star" else []
        if kind == "deep":
            blocks.append([])
        elif kind != "star":
            blocks[-1].append(text)
    blocks[-1] += fixed
    return ["".join(block) for block in blocks]


def _pattern(text: str) -> NamePattern | None:
    # Neither a comment nor a negation, and a blank at the end is part of it.
    escaped = f"\\{text}" if text[:1] in {"!", "#"} else text
    try:
        return name_pattern(f"{escaped[:-1]}\\ " if escaped.endswith(" ") else escaped)
    except ValueError as error:
        raise InvalidArgumentsError(f"{text!r} is no pattern: {error}") from error


def _expanded(text: str) -> Iterator[str]:
    """Give what a pattern with `{a,b}` stands for; braces without a comma or an end are what they are."""
    depth, commas, opened = 0, list[int](), -1
    for place, character in enumerate(text):
        if character == "{":
            opened, commas = (place, []) if depth == 0 else (opened, commas)
            depth += 1
        elif character == "," and depth == 1:
            commas.append(place)
        elif character == "}" and depth:
            depth -= 1
            if depth == 0 and commas:
                edges = [opened, *commas, place]
                for left, right in pairwise(edges):
                    yield from _expanded(text[:opened] + text[left + 1 : right] + text[place + 1 :])
                return
    yield text
