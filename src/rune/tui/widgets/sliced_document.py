"""A document's rows as slices of its lines: Textual's own way takes each line apart into styled texts for each row."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from textual.widgets.text_area import WrappedDocument


class Row(NamedTuple):
    """What of a line stands in one row: from `start` to before `end`. `tabs` are the cells of each tab in it."""

    line: int
    start: int
    end: int
    tabs: tuple[int, ...]
    last: bool


class SlicedDocument(WrappedDocument):
    """Wraps as Textual does."""

    def get_sections(self, line_index: int) -> list[str]:
        """Return the text of each row of a line."""
        line = self.document[line_index]
        return [line[start:end] for start, end in pairwise((0, *self.get_offsets(line_index), len(line)))]

    def rows(self, first: int, count: int) -> Iterator[Row]:
        """Yield at most `count` rows, from row `first` on."""
        y = 0
        for index in range(self.document.line_count):
            offsets = self.get_offsets(index)
            y += len(offsets) + 1
            if y <= first:
                continue
            line = self.document[index]
            tabs = self.get_tab_widths(index)
            places = (0, *offsets, len(line))
            for place, (start, end) in enumerate(pairwise(places), y - len(offsets) - 1):
                if place >= first + count:
                    return
                if place >= first:
                    before = line.count("\t", 0, start)
                    yield Row(
                        index, start, end, tuple(tabs[before : before + line.count("\t", start, end)]), place == y - 1
                    )
