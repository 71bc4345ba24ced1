"""Which lines of two texts are the same, in time that grows with their length: difflib alone may take its square."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Run:
    """`size` lines from `old` on in one text are those from `new` on in the other."""

    old: int
    new: int
    size: int


def same_lines(old: Sequence[str], new: Sequence[str]) -> list[Run]:
    """Return runs of equal lines, in order in both texts and not touching.

    Lines that stand once in each text are paired, as many as stand in one order, and each pair grows over the equal
    lines round it. The common beginning and end always belong to it; of what repeats between, some may be missed.
    """
    head = _common(old, new, 0, 0, min(len(old), len(new)))
    tail = _common_back(old, new, len(old), len(new), min(len(old), len(new)) - head)
    runs = [Run(0, 0, head)] if head else []
    at_old, at_new = head, head
    end_old, end_new = len(old) - tail, len(new) - tail
    for place_old, place_new in _anchors(old[head:end_old], new[head:end_new]):
        i, j = place_old + head, place_new + head
        if i < at_old or j < at_new:
            continue  # inside a run that grew over it
        back = _common_back(old, new, i, j, min(i - at_old, j - at_new))
        size = back + _common(old, new, i, j, min(end_old - i, end_new - j))
        runs.append(Run(i - back, j - back, size))
        at_old, at_new = i - back + size, j - back + size
    if tail:
        runs.append(Run(end_old, end_new, tail))
    return _joined(runs)


def _joined(runs: list[Run]) -> list[Run]:
    joined: list[Run] = []
    for run in runs:
        last = joined[-1] if joined else None
        if last and (last.old + last.size, last.new + last.size) == (run.old, run.new):
            joined[-1] = Run(last.old, last.new, last.size + run.size)
        else:
            joined.append(run)
    return joined


def _common(old: Sequence[str], new: Sequence[str], i: int, j: int, most: int) -> int:
    size = 0
    while size < most and old[i + size] == new[j + size]:
        size += 1
    return size


def _common_back(old: Sequence[str], new: Sequence[str], i: int, j: int, most: int) -> int:
    size = 0
    while size < most and old[i - size - 1] == new[j - size - 1]:
        size += 1
    return size


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return the longest series of pairs of lines that stand once in each, rising in both."""
    often_old, often_new = Counter(old), Counter(new)
    place = {line: i for i, line in enumerate(old) if often_old[line] == 1}
    pairs = [(place[line], j) for j, line in enumerate(new) if often_new[line] == 1 and line in place]
    # Patience: on top of each pile the smallest end of a series of that length; `before` leads back.
    tops: list[int] = []
    top_of: list[int] = []
    before: list[int] = []
    for number, (i, _) in enumerate(pairs):
        pile = bisect_left(tops, i)
        before.append(top_of[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [i]
        top_of[pile : pile + 1] = [number]
    series: list[tuple[int, int]] = []
    number = top_of[-1] if top_of else -1
    while number >= 0:
        series.append(pairs[number])
        number = before[number]
    return series[::-1]
