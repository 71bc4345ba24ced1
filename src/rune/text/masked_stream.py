"""`Masker` for text that comes in pieces: a secret that lies in two of them is masked as well.

Text is let go a line at a time, since hardly a secret spans two; what does is known, and waits: values
with line ends of their own, and whatever stands between `-----BEGIN` and `-----END`. A line that
grows too long is cut where masking both halves gives the same as masking the whole.
"""

import re
from typing import Final

from rune.text.masking import Masker

LONGEST_LINE: Final = 65_536
"""Characters of one line, or of one block of a key, that are held at most."""

_LINE_END: Final = re.compile(r"[\n\r]")
_BEGIN, _END = "-----BEGIN ", "-----END "
# What has to be seen on both sides of a cut in a long line; no listed shape needs more to be told.
_SURROUNDINGS: Final = 1_024
_TRIES: Final = 64


class MaskedStream:
    """Masks a stream. Any split gives what the whole would give, while lines and keys stay below `LONGEST_LINE`.

    Beyond that nothing is masked less, unless secrets stand so close together that no cut is found between them.
    """

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        forms = masker.known_forms
        self._radius = max([_SURROUNDINGS, *map(len, forms)])
        # The beginnings after which the text must not be cut: the value goes on.
        self._starts = tuple(
            {form[: end.end()] for form in forms for end in _LINE_END.finditer(form) if end.end() < len(form)}
        )
        self._held = ""

    def feed(self, text: str) -> str:
        """Return what is certain by now, masked; it ends with a line, but for very long ones."""
        self._held += text
        cut = self._line_cut()
        if cut == 0 and len(self._held) > LONGEST_LINE + self._radius:
            cut = self._cut_within()
        done, self._held = self._held[:cut], self._held[cut:]
        return self._masker.mask(done) if done else ""

    def finish(self) -> str:
        """Return the rest."""
        rest, self._held = self._held, ""
        return self._masker.mask(rest)

    def _line_cut(self) -> int:
        """Return the end of the last line up to which all is certain."""
        held = self._held
        cut = self._line_start(len(held))
        while cut:
            begin = held.rfind(_BEGIN, 0, cut)
            if begin >= 0 and held.find(_END, begin, cut) < 0 and len(held) - begin <= LONGEST_LINE:
                cut = self._line_start(begin)
            elif self._starts and held.endswith(self._starts, 0, cut):
                cut = self._line_start(cut - 1)
            else:
                break
        return cut

    def _line_start(self, place: int) -> int:
        return max(self._held.rfind("\n", 0, place), self._held.rfind("\r", 0, place)) + 1

    def _cut_within(self) -> int:
        """Return a place in a long line where it can be cut."""
        held, last = self._held, len(self._held) - self._radius
        blank = max(held.rfind(" ", 0, last), held.rfind("\t", 0, last)) + 1
        places = [blank] if blank else []
        places += [last - 61 * number for number in range(_TRIES)]
        for place in places:
            if place > 0 and self._is_clean(place):
                return place
        return len(held)

    def _is_clean(self, place: int) -> bool:
        before = self._held[max(0, place - self._radius) : place]
        after = self._held[place : place + self._radius]
        mask = self._masker.mask
        return mask(before) + mask(after) == mask(before + after)
