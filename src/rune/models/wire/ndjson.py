r"""Newline-delimited JSON from bytes that may be cut anywhere (models.md, rule 2).

Lines end at the byte `\n` only: text splitters also cut at U+0085 and U+2028, which may stand
unescaped inside a JSON string.
"""

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any, Final, NoReturn, cast

from rune.errors import ProtocolError
from rune.text.storable import storable

LINE_CAP: Final = 16 * 1024 * 1024
DEPTH_CAP: Final = 100

_BOM: Final = b"\xef\xbb\xbf"
_SHOWN: Final = 120
_LARGEST_INTEGER: Final = 2.0**63


class LineSplitter:
    r"""Cuts a byte stream into lines; the same bytes give the same lines however they are chunked.

    A line comes without its end (`\n` or `\r\n`), the first one without a byte order mark. `number`
    is the 1-based number of the line last given. Time is linear in the bytes, whatever their chunks.
    """

    def __init__(self, cap: int = LINE_CAP) -> None:
        self._cap = cap
        self._parts: list[bytes] = []
        self._size = 0
        self.number = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Give each line that `chunk` completes; exhaust it before feeding the next one.

        Raises ProtocolError where a line grows over the cap, after the whole lines before it.
        """
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            self._keep(chunk[start:end])
            start = end + 1
            yield self._take()
        if start < len(chunk):
            self._keep(chunk[start:])

    def rest(self) -> bytes | None:
        """Return the line that was begun and never ended; None when the stream ended at a line's end."""
        return self._take() if self._size else None

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._cap:
            raise ProtocolError(f"a line is longer than {self._cap:,} bytes", line=self.number + 1)
        self._parts.append(part)

    def _take(self) -> bytes:
        line = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        self.number += 1
        if self.number == 1:
            line = line.removeprefix(_BOM)
        return line.removesuffix(b"\r")


def decode_object(line: bytes, *, number: int = 0) -> dict[str, Any]:
    """Return the JSON object that `line` holds; `number` is the line's own, for the error.

    Stricter than the standard parser: a key that stands twice, NaN, Infinity, a number out of range and
    more than `DEPTH_CAP` levels are refused, because what a reader makes of them differs. A lone
    surrogate becomes U+FFFD, since it could be neither stored nor shown. Raises ProtocolError.
    """
    try:
        value: Any = _DECODER.decode(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ProtocolError(f"not UTF-8 at byte {error.start}", line=number) from error
    except RecursionError as error:
        raise ProtocolError("JSON nested too deeply", line=number) from error
    except ValueError as error:
        raise ProtocolError(f"not valid JSON ({error}): {excerpt(line)}", line=number) from error
    fields = as_object(value)
    if fields is None:
        raise ProtocolError(f"not a JSON object: {excerpt(line)}", line=number)
    if line.count(b"{") + line.count(b"[") > DEPTH_CAP and _deeper_than(fields, DEPTH_CAP):
        raise ProtocolError(f"JSON nested more than {DEPTH_CAP} levels deep", line=number)
    return _without_surrogates(fields) if b"\\ud" in line or b"\\uD" in line else fields


def as_object(value: object) -> dict[str, Any] | None:
    """Return a decoded JSON value as the object that it is; None when it is not one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def as_list(value: object) -> list[Any] | None:
    """Return a decoded JSON value as the array that it is; None when it is not one."""
    return cast("list[Any]", value) if isinstance(value, list) else None


def excerpt(data: bytes) -> str:
    """Return the beginning of `data` for an error message, printable and on one line."""
    text = " ".join(data[: _SHOWN * 4].decode("utf-8", "replace").split())
    shown = "".join(char if char.isprintable() else "?" for char in text)
    return f"{shown[:_SHOWN]}..." if len(shown) > _SHOWN or len(data) > _SHOWN * 4 else shown


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key stands twice")
    return value


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"number out of range: {text[:_SHOWN]}")
    return number


def _integer(text: str) -> int | float:
    # Beyond 64 bits no store of ours could keep it as an integer, and JSON's numbers are doubles anyway.
    return _finite(text) if abs(float(text)) >= _LARGEST_INTEGER else int(text)


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=_finite, parse_int=_integer, parse_constant=_constant
)


def _deeper_than(value: dict[str, Any], levels: int) -> bool:
    layer: list[Any] = [value]
    while layer and levels > 0:
        levels -= 1
        layer = [inner for outer in layer for inner in _children(outer) if isinstance(inner, (dict, list))]
    return bool(layer)


def _children(value: object) -> Iterable[Any]:
    fields = as_object(value)
    return fields.values() if fields is not None else as_list(value) or ()


def _without_surrogates(fields: dict[str, Any]) -> dict[str, Any]:
    """Copy a value that is at most `DEPTH_CAP` deep."""
    return {storable(key): _clean(value) for key, value in fields.items()}


def _clean(value: object) -> Any:  # noqa: ANN401 - a JSON value
    if isinstance(value, str):
        return storable(value)
    if (fields := as_object(value)) is not None:
        return _without_surrogates(fields)
    items = as_list(value)
    return value if items is None else [_clean(item) for item in items]
