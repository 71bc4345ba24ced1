"""Right edits of real source texts with their results, out of a seed: some lines, and the same with a word changed, a
line put in or taken out.
"""

import random
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rune.tools.edits import Edit

SOURCES = Path(__file__).parent.parent / "data" / "garbled_edits"
WORD = re.compile(r"[A-Za-z]{3,}")


@dataclass(frozen=True)
class Case:
    """`expected` is the file afterwards, or None when the edits must be refused."""

    kind: str
    source: str
    text: str
    edits: tuple[Edit, ...]
    expected: str | None


@dataclass(frozen=True)
class Right:
    """A right edit of the lines `first` to `last` (from 0, both in it)."""

    text: str
    first: int
    last: int
    old: list[str]
    new: list[str]

    @property
    def result(self) -> str:
        lines = self.text.split("\n")
        return "\n".join([*lines[: self.first], *self.new, *lines[self.last + 1 :]])

    def of(self, change: Callable[[list[str]], list[str]]) -> Edit:
        return Edit("\n".join(change(self.old)), "\n".join(change(self.new)))

    def of_text(self, change: Callable[[str], str]) -> Edit:
        return Edit(change("\n".join(self.old)), change("\n".join(self.new)))


def seeded(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - a campaign that can be repeated, nothing secret


def sources() -> dict[str, str]:
    return {path.stem: path.read_text("utf-8") for path in sorted(SOURCES.glob("*.txt"))}


@cache
def said(text: str) -> list[str]:
    """Return what the lines of a text say, however they are set."""
    plain = unicodedata.normalize("NFC", text).translate(str.maketrans("\u2018\u2019\u201c\u201d", "''\"\""))
    return [" ".join(line.split()) for line in plain.split("\n") if line.strip()]


def places(text: str, lines: list[str]) -> int:
    """Count the places at which lines stand, however they are set."""
    every, wanted = said(text), said("\n".join(lines))
    return sum(every[at : at + len(wanted)] == wanted for at in range(len(every)))


def right_edits(
    text: str, rng: random.Random, least: int = 1, most: int = 7, fits: Callable[[Right], bool] = lambda _: True
) -> Iterator[Right]:
    """Give right edits of one place each, without end."""
    lines = text.rstrip("\n").split("\n")
    for _ in range(4_000):
        first = rng.randrange(len(lines))
        last = first + rng.randint(least, most) - 1
        if last >= len(lines):
            continue
        old = lines[first : last + 1]
        if not old[0].strip() or not old[-1].strip() or places(text, old) != 1:
            continue
        new = mutated(old, rng)
        right = Right(text, first, last, old, new)
        if new != old and places(text, new) == 0 and fits(right):
            yield right


def mutated(old: list[str], rng: random.Random) -> list[str]:
    new = list(old)
    how = rng.choice(("word", "word", "word", "insert", "append", "delete", "two"))
    solid = [number for number, line in enumerate(old) if WORD.search(line)]
    if not solid:
        return new
    at = rng.choice(solid)
    if how == "delete" and len(solid) > 2 and at not in {0, len(old) - 1}:
        del new[at]
    elif how == "insert":
        new.insert(at, renamed(old[at], rng))
    elif how == "append":
        new.append(renamed(old[solid[-1]], rng))
    else:
        new[at] = renamed(old[at], rng)
        if how == "two":
            new[solid[-1]] = renamed(old[solid[-1]], rng)
    return new


def renamed(line: str, rng: random.Random) -> str:
    word = rng.choice(WORD.findall(line))
    return line.replace(word, rng.choice(("fresh", "other", "renewed")) + word.title(), 1)
