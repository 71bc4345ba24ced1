"""JSON of other programs: read without trust, and masked before anything of it is kept.

What is typed is masked before it is stored, so what is brought in is too: every text of a value by itself, as
it is decoded, and then the original once more as a whole, since a key may be what tells that its value is a
secret. Where neither finds anything the original is kept byte for byte; otherwise a new JSON text of the masked
value is. So evidence holds nothing that the journal masks.
"""

import json
from collections.abc import Callable
from typing import NoReturn, cast

import msgspec

from rune.store.imports.arrivals import EVIDENCE_LIMIT, LeftOutError
from rune.text.storable import storable

MAX_DEPTH = 100
_DIGITS = 300
_NAMED = 40

Mask = Callable[[str], str]


class Foreign(msgspec.Struct, frozen=True):
    """One object: `given` as it was read, for ids; `masked` for everything that is kept or shown; `kept` the
    masked original.
    """

    given: dict[str, object]
    masked: dict[str, object]
    kept: bytes


def read_object(data: bytes, length: int, mask: Mask) -> Foreign:
    """Return one object, masked. Raises LeftOutError for what is too long, no JSON, or no object."""
    if length > EVIDENCE_LIMIT:
        raise LeftOutError(f"it has {length:,} bytes, and at most {EVIDENCE_LIMIT:,} are taken in")
    value = parse(data)
    if not isinstance(value, dict):
        raise LeftOutError("it is not a JSON object")
    given = cast("dict[str, object]", value)
    masking = _Masking(mask)
    masked = cast("dict[str, object]", masking.value(given, MAX_DEPTH))
    text = data.decode("utf-8")
    if masking.found:
        kept = mask(json.dumps(masked)).encode("ascii", "backslashreplace")
    else:
        whole = mask(text)
        kept = data if whole == text else whole.encode("utf-8")
    return Foreign(given, masked, kept)


def parse(data: bytes) -> object:
    """Return the value of a JSON text. NaN and infinities, which some programs write, are read too.

    Raises LeftOutError, also for a key that is there twice: which of the two counts is not ours to guess.
    """
    try:
        return _DECODER.decode(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise LeftOutError(f"it is not UTF-8: byte {error.start + 1} of it is 0x{data[error.start]:02x}") from error
    except json.JSONDecodeError as error:
        raise LeftOutError(f"it is not JSON: {error.msg}, at character {error.pos + 1}") from error
    except RecursionError as error:
        raise LeftOutError(f"it is nested more than {MAX_DEPTH} levels deep") from error


def one_line(value: str, limit: int) -> str:
    """Return text of another program as a short line: what a terminal would act on is shown elsewhere, not cut."""
    line = " ".join(storable(value).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


class _Masking:
    """Masks every text in a value; `found` says whether there was anything to mask."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self.found = False

    def value(self, value: object, levels: int) -> object:
        """Return the value masked. Raises LeftOutError when it is nested too deeply."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict | list) and levels == 0:
            raise LeftOutError(f"it is nested more than {MAX_DEPTH} levels deep")
        if isinstance(value, dict):
            return self._fields(cast("dict[str, object]", value), levels)
        if isinstance(value, list):
            return [self.value(item, levels - 1) for item in cast("list[object]", value)]
        return value

    def _fields(self, fields: dict[str, object], levels: int) -> dict[str, object]:
        masked: dict[str, object] = {}
        for key, inner in fields.items():
            name = self._text(key)
            while name in masked:  # two keys that were different secrets
                name += "'"
            masked[name] = self.value(inner, levels - 1)
        return masked

    def _text(self, text: str) -> str:
        masked = self._mask(text)
        self.found = self.found or masked != text
        return masked


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                _refuse_twice(key)
            seen.add(key)
    return fields


def _refuse_twice(key: str) -> NoReturn:
    raise LeftOutError(f"the key {one_line(key, _NAMED)!r} is there twice in one object")


def _number(digits: str) -> int:
    # int() of very many digits takes very long, or is refused by Python in an own way.
    if len(digits) > _DIGITS:
        raise LeftOutError(f"a number in it has {len(digits):,} digits")
    return int(digits)


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_int=_number)
