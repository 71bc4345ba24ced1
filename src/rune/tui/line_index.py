"""Which of many items stands at a line, when each is so many lines high: prefix sums that may change."""

from collections.abc import Iterable


class LineIndex:
    """The heights of items in lines, in order. What is asked takes O(log n), building takes O(n).

    A Fenwick tree: cell n (counted from 1) holds the sum of the heights from n less its lowest bit to n.
    """

    def __init__(self, heights: Iterable[int] = ()) -> None:
        self._heights = list(heights)
        self._tree = [0, *self._heights]
        for number in range(1, len(self._tree)):
            above = number + (number & -number)
            if above < len(self._tree):
                self._tree[above] += self._tree[number]
        self._total = sum(self._heights)

    def __len__(self) -> int:
        return len(self._heights)

    def __getitem__(self, item: int) -> int:
        return self._heights[item]

    @property
    def total(self) -> int:
        """How many lines all items have."""
        return self._total

    def append(self, height: int) -> None:
        """Add an item after the last."""
        self._heights.append(height)
        number = len(self._heights)
        lowest, below, held = number - (number & -number), number - 1, height
        while below > lowest:
            held += self._tree[below]
            below -= below & -below
        self._tree.append(held)
        self._total += height

    def set(self, item: int, height: int) -> None:
        """Make an item, counted from 0, so many lines high; raises IndexError when there is none."""
        changed = height - self._heights[item]
        if changed == 0:
            return
        self._heights[item] = height
        self._total += changed
        number = item % len(self._heights) + 1
        while number < len(self._tree):
            self._tree[number] += changed
            number += number & -number

    def truncate(self, length: int) -> None:
        """Keep the first `length` items."""
        if length < len(self._heights):
            self._total = self.top(length)
            del self._heights[length:], self._tree[length + 1 :]

    def top(self, item: int) -> int:
        """Return the line at which an item begins; for the number of all items: the line after the last."""
        if not 0 <= item <= len(self._heights):
            raise IndexError(f"no item {item} of {len(self._heights)}")
        lines = 0
        while item > 0:
            lines += self._tree[item]
            item -= item & -item
        return lines

    def find(self, line: int) -> tuple[int, int]:
        """Return the item that has this line, counted from 0, and the line within the item.

        Items without a line are never found. Raises IndexError when no item has the line.
        """
        if not 0 <= line < self._total:
            raise IndexError(f"no line {line} of {self._total}")
        before, step = 0, 1 << (len(self._heights).bit_length() - 1)
        while step:
            after = before + step
            if after < len(self._tree) and self._tree[after] <= line:
                before = after
                line -= self._tree[after]
            step >>= 1
        return before, line
