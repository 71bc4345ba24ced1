"""Many texts looked for at once in bytes, in every form in which a file of Rune may hold them.

A form of at least 2k-1 bytes that stands anywhere covers one whole block of k bytes at a multiple of k: only those
blocks are looked up, so that thousands of texts cost no more than one.
"""

import json
from collections.abc import Iterable
from typing import Final

# What is shorter stands by chance in what others said, and is compared with whole fields only.
SHORTEST: Final = 12
_OPENING: Final = 24
_BLOCKS: Final = (16, 6)  # the shortest form has 12 bytes, and 2 * 6 - 1 is less


class Sought:
    """Texts to look for. Those below `SHORTEST` characters (blanks around them do not count) only count in `equals`."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts: Final = tuple(dict.fromkeys(stripped for text in texts if (stripped := text.strip())))
        self._whole = frozenset(self.texts)
        self.short: Final = tuple(text for text in self.texts if len(text) < SHORTEST)
        self._forms = tuple(sorted({form for text in self.texts if len(text) >= SHORTEST for form in _forms(text)}))
        self._grams: dict[int, dict[bytes, list[tuple[int, int]]]] = {block: {} for block in _BLOCKS}
        for number, form in enumerate(self._forms):
            block = next(size for size in _BLOCKS if len(form) >= 2 * size - 1)
            for shift in range(block):
                self._grams[block].setdefault(form[shift : shift + block], []).append((number, shift))
        self.longest: Final = max((len(form) for form in self._forms), default=0)

    def __bool__(self) -> bool:
        """Say whether there is anything that can be looked for inside of others' bytes."""
        return bool(self._forms)

    def within(self, data: bytes) -> bool:
        """Say whether one of the texts stands in these bytes, in any form."""
        return any(self._found(data, block, grams) for block, grams in self._grams.items() if grams)

    def equals(self, text: str) -> bool:
        """Say whether a whole field is one of the texts, or holds one that is long enough."""
        return text.strip() in self._whole or self.within(text.encode("utf-8", "replace"))

    def openings(self) -> "Sought":
        """Return how the long texts begin and their long lines: what a log or a torn line may hold of them."""
        pieces = [text[:_OPENING] for text in self.texts if len(text) >= SHORTEST]
        lines = [line for text in self.texts for line in text.splitlines() if len(line.strip()) >= _OPENING]
        return Sought([*pieces, *lines])

    def _found(self, data: bytes, block: int, grams: dict[bytes, list[tuple[int, int]]]) -> bool:
        for start in range(0, len(data) - block + 1, block):
            places = grams.get(data[start : start + block])
            if places is not None and any(data.startswith(self._forms[n], start - s) for n, s in places if s <= start):
                return True
        return False


def _forms(text: str) -> Iterable[bytes]:
    """Return a text as UTF-8 and as the inside of a JSON string, in ASCII and not."""
    yield text.encode("utf-8", "replace")
    yield json.dumps(text, ensure_ascii=True)[1:-1].encode("ascii")
    yield json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "replace")
