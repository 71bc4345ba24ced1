"""A JSON string that is read while it streams."""

import re
from typing import Final

_PAIR: Final = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_PIECE: Final = re.compile(
    rf'(?P<plain>[^"\\]+)|(?P<pair>{_PAIR})|(?P<unit>\\u[0-9a-fA-F]{{4}})|(?P<short>\\[^u])|(?P<odd>\\u)|(?P<end>")',
    re.DOTALL,
)
# What may still become an escape, or the other half of a pair.
_HALF_UNIT: Final = r"\\(?:u[0-9a-fA-F]{0,3})?"
_HALF_PAIR: Final = r"\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u(?:[dD](?:[c-fC-F][0-9a-fA-F]?)?)?)?)?"
_UNSURE: Final = re.compile(rf"{_HALF_UNIT}|{_HALF_PAIR}")
_HALF_CHARACTER: Final = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}")

_SHORT: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_LOST: Final = "\N{REPLACEMENT CHARACTER}"


class JsonText:
    """Decodes what follows the opening quotation mark. `ended` once the closing one was read.

    More is understood than JSON allows: a line break as it is, and an escape that there is not, which stays as it
    stands. Half of a surrogate pair becomes U+FFFD.
    """

    def __init__(self) -> None:
        self.ended = False

    def read(self, text: str) -> tuple[str, int]:
        """Return the text that can be told for certain, and how many characters of `text` that took."""
        parts: list[str] = []
        at = 0
        while not self.ended and at < len(text) and not _UNSURE.fullmatch(text, at):
            piece = _PIECE.match(text, at)
            if piece is None:
                raise AssertionError("every character begins a piece")
            parts.append(self._decoded(piece))
            at = piece.end()
        return "".join(parts), at

    def end(self, left: str) -> str:
        """Return what comes of what was left when nothing follows: an escape without its end says nothing."""
        return _LOST if _HALF_CHARACTER.match(left) else ""

    def _decoded(self, piece: re.Match[str]) -> str:
        found = piece[0]
        match piece.lastgroup:
            case "end":
                self.ended = True
                return ""
            case "pair":
                return chr(0x10000 + ((int(found[2:6], 16) - 0xD800) << 10) + int(found[8:], 16) - 0xDC00)
            case "unit":
                code = int(found[2:], 16)
                return _LOST if 0xD800 <= code <= 0xDFFF else chr(code)  # noqa: PLR2004 - the surrogates
            case "short":
                mark = found[1]
                return _SHORT.get(mark, mark if mark in '"\\/' else found)
            case _:
                return found
