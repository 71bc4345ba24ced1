"""A bar that shows how much of a budget something takes, and the sentence that says what its marks mean."""

from math import ceil
from typing import Final

_MARK: Final = "#"


def share_bar(tokens: int, budget: int, cells: int) -> str:
    """Return a mark for each begun `cells`-th part of the budget, at most `cells`: what is there shows."""
    return _MARK * min(cells, ceil(tokens / _mark(budget, cells)))


def scale_text(budget: int, cells: int) -> str:
    """Return what one mark stands for."""
    return f"each {_MARK} is up to {ceil(_mark(budget, cells)):,} tokens, 1/{cells} of the budget"


def _mark(budget: int, cells: int) -> float:
    return max(budget, 1) / cells
