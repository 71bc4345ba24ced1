"""One form for what is written in many: case, accents and widths, for an index and for what is looked up in it.

What is written without blanks between words (Chinese, Japanese, Thai ...) is taken apart into its characters, and
so is Korean: any part of it can be found, as characters that follow each other.
"""

import re
import unicodedata
from typing import Final

# Thai to Myanmar, Jamo, Khmer, the Chinese, Japanese and Korean blocks, half-width Kana and Hangul, rare Han.
SPREAD: Final = (
    "\u0e00-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3031-\u3035\u3041-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc\U0001b000-\U0001b16f"
    "\U00020000-\U000323af"
)
_FOREIGN: Final = re.compile("[^\x00-\x7f]+")
_IS_SPREAD: Final = re.compile(f"[{SPREAD}]")


class _Folded(dict[int, str]):
    """What each character is replaced by; filled as characters are met. With `apart`, blanks are put round those
    that are taken apart.
    """

    def __init__(self, *, apart: bool) -> None:
        super().__init__()
        self._apart = apart

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if _IS_SPREAD.match(character):
            found = f" {character} " if self._apart else character
        else:
            parts = unicodedata.normalize("NFKD", character.casefold())
            found = "".join(part for part in parts if not unicodedata.combining(part)).casefold()
        self[code] = found
        return found


_APART: Final = _Folded(apart=True)
_ALIKE: Final = _Folded(apart=False)


def apart(text: str) -> str:
    """Return text for a tokenizer that splits at everything but letters and digits and folds the case of ASCII."""
    if text.isascii():
        return text
    return _FOREIGN.sub(lambda run: run[0].translate(_APART), unicodedata.normalize("NFKC", text))


def alike(text: str) -> str:
    """Return text in which equal words are equal. Its length may differ: see `places`."""
    return text.lower() if text.isascii() else text.translate(_ALIKE)


def places(text: str) -> list[int]:
    """Return for each character of `alike(text)` the place in `text` that it comes from, and the end."""
    if text.isascii():
        return list(range(len(text) + 1))
    found = [place for place, character in enumerate(text) for _ in _ALIKE[ord(character)]]
    return [*found, len(text)]
