"""The header of a GGUF model file: what a model is, without loading it.

Only the key-value part at the front is read, through a memory map: about 20 ms where the vocabulary
stands in between. The format is specified with ggml (docs/gguf.md, versions 2 and 3).
"""

import math
import mmap
import struct
from pathlib import Path

import msgspec

from rune.errors import ModelUnavailableError

_FIXED = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
# How many bytes so many weights take, by the kind of a tensor (ggml.h); of another kind only the place is checked.
_BLOCKS = {
    0: (4, 1),
    1: (2, 1),
    2: (18, 32),
    3: (20, 32),
    6: (22, 32),
    7: (24, 32),
    8: (34, 32),
    10: (84, 256),
    11: (110, 256),
    12: (144, 256),
    13: (176, 256),
    14: (210, 256),
    30: (2, 1),
}
_ALIGNED = 32
_MOST_DIMENSIONS = 8
_OTHER_FILE = "Name another file in RUNE_EMBEDDED_MODEL, or unset it: the small model is used then."
_STRING = 8
_ARRAY = 9
_MOST_ITEMS = 4_000_000
_QUANTISATIONS = {
    0: "F32",
    1: "F16",
    2: "Q4_0",
    3: "Q4_1",
    7: "Q8_0",
    8: "Q5_0",
    9: "Q5_1",
    10: "Q2_K",
    11: "Q3_K_S",
    12: "Q3_K_M",
    13: "Q3_K_L",
    14: "Q4_K_S",
    15: "Q4_K_M",
    16: "Q5_K_S",
    17: "Q5_K_M",
    18: "Q6_K",
    32: "BF16",
}


class GgufHeader(msgspec.Struct, frozen=True, kw_only=True):
    """What Rune wants to know of a model file. Texts are "" and numbers None where it does not say."""

    architecture: str
    context_length: int | None
    size_label: str
    quantisation: str
    chat_template: str


def read_header(path: Path) -> GgufHeader:
    """Read a model file's header. Raises ModelUnavailableError when it is not there, not GGUF, or not whole."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            values = _Reader(data).values()
    except OSError as error:
        raise ModelUnavailableError(
            f"the model file {path} cannot be read: {error.strerror}",
            hint=_OTHER_FILE,
        ) from error
    except (ValueError, OverflowError, struct.error) as error:
        raise ModelUnavailableError(
            f"{path} is not a usable GGUF model file: {error}",
            hint=_OTHER_FILE,
        ) from error
    architecture = _text(values, "general.architecture")
    window = values.get(f"{architecture}.context_length")
    kind = values.get("general.file_type")
    return GgufHeader(
        architecture=architecture,
        context_length=window if isinstance(window, int) else None,
        size_label=_text(values, "general.size_label"),
        quantisation=_QUANTISATIONS.get(kind, "") if isinstance(kind, int) else "",
        chat_template=_text(values, "tokenizer.chat_template"),
    )


def _text(values: dict[str, str | int | float], key: str) -> str:
    value = values.get(key, "")
    return value if isinstance(value, str) else ""


class _Reader:
    """Walks the pairs. A length that leads out of the file is a struct.error or a ValueError."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._at = 0
        self._tensors = 0

    def values(self) -> dict[str, str | int | float]:
        """Return all pairs but arrays."""
        if self._data[:4] != b"GGUF":
            raise ValueError("it does not begin with GGUF")
        self._at = 4
        version = self._number("I")
        if version not in {2, 3}:
            raise ValueError(f"version {version} is not known")
        self._tensors = self._count()
        values: dict[str, str | int | float] = {}
        for _ in range(self._count()):
            key = self._string()
            kind = int(self._number("I"))
            if kind == _ARRAY:
                self._skip_array()
            elif kind == _STRING:
                values[key] = self._string()
            else:
                values[key] = self._number(_form(kind))
        self._check_whole(values.get("general.alignment", _ALIGNED))
        return values

    def _check_whole(self, alignment: str | float) -> None:
        """Raise ValueError where the file ends before its tensors do: it was cut, or is still being fetched."""
        ends = [self._end_of_tensor() for _ in range(self._tensors)]
        step = alignment if isinstance(alignment, int) and alignment > 0 else _ALIGNED
        missing = -(-self._at // step) * step + max(ends, default=0) - len(self._data)
        if ends and missing > 0:
            raise ValueError(f"it is not whole: at least {missing:,} bytes are missing at its end")

    def _end_of_tensor(self) -> int:
        """Return where a tensor ends, in bytes from where they begin."""
        self._string()
        dimensions = int(self._number("I"))
        if dimensions > _MOST_DIMENSIONS:
            raise ValueError(f"a tensor of {dimensions} dimensions")
        weights = math.prod(int(self._number("Q")) for _ in range(dimensions))
        size, block = _BLOCKS.get(int(self._number("I")), (0, 1))
        return int(self._number("Q")) + weights // block * size

    def _number(self, form: str) -> int | float:
        layout = struct.Struct("<" + form)
        (value,) = layout.unpack_from(self._data, self._at)
        self._at += layout.size
        return value

    def _count(self) -> int:
        count = int(self._number("Q"))
        if count > _MOST_ITEMS:
            raise ValueError(f"{count} items are claimed at byte {self._at}")
        return count

    def _string(self) -> str:
        length = int(self._number("Q"))
        start = self._at
        self._at += length
        if self._at > len(self._data):
            raise ValueError(f"a text at byte {start} leads out of the file")
        return self._data[start : self._at].decode("utf-8", "replace")

    def _skip_array(self) -> None:
        kind = int(self._number("I"))
        count = self._count()
        if kind != _STRING:
            self._at += struct.calcsize("<" + _form(kind)) * count
            return
        read, data, at = struct.Struct("<Q").unpack_from, self._data, self._at
        for _ in range(count):
            at += 8 + read(data, at)[0]
        self._at = at


def _form(kind: int) -> str:
    form = _FIXED.get(kind)
    if form is None:
        raise ValueError(f"a value of the unknown type {kind}")
    return form
