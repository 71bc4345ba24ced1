"""A JSON list cut into its elements without reading it whole."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rune.errors import UsageError
from rune.store.imports.arrivals import EVIDENCE_LIMIT

_MARKS = re.compile(rb'["\[\]{},\n]')
_IN_STRING = re.compile(rb'["\\]')
_BLANK = b" \t\r\n"
_OPEN, _CLOSE = b"[{", b"]}"


class ListElement(NamedTuple):
    """One element as it stands there, from 1; `line` is where it ends. `length` is its true length, `data` empty
    when that is too much. `trouble` says what is wrong with the list itself at this place, "" when nothing is.
    """

    number: int
    line: int
    data: bytes
    length: int
    trouble: str = ""

    @property
    def too_long(self) -> bool:
        """Whether it was longer than may be kept."""
        return self.length > EVIDENCE_LIMIT


class _Cutter:
    """Where in the list the reading is. What is no JSON at all is cut somewhere and judged by whoever reads it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held = bytearray()
        self._length = 0
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._number = 0
        self._line = 1
        self.ended = False

    def feed(self, chunk: bytes) -> Iterator[ListElement]:
        """Give the elements that end in this chunk. Raises UsageError when it is no list at all."""
        start = at = 0 if self._depth or self.ended else self._begin(chunk)
        while at < len(chunk) and not self.ended:
            if self._in_string:
                at = self._through_string(chunk, at)
                continue
            mark = _MARKS.search(chunk, at)
            if mark is None:
                break
            at = mark.end()
            if self._ends_element(mark.group()):
                self._keep(chunk[start : mark.start()])
                start = at
                yield from self._element()
        self._keep(chunk[start:])

    def _through_string(self, chunk: bytes, at: int) -> int:
        """Return where to look on: behind the string's end, or behind a character that has no meaning in it."""
        if self._escaped:  # it may be the first of a chunk
            self._escaped = False
            return at + 1
        mark = _IN_STRING.search(chunk, at)
        if mark is None:
            return len(chunk)
        self._escaped = mark.group() == b"\\"
        self._in_string = self._escaped
        return mark.end()

    def _ends_element(self, mark: bytes) -> bool:
        """Take one mark outside of strings in; say whether it ends an element."""
        if mark == b"\n":
            self._line += 1
        elif mark == b'"':
            self._in_string = True
        elif mark in _OPEN:
            self._depth += 1
        elif mark in _CLOSE:
            self._depth -= 1
            self.ended = self._depth == 0
        return self.ended or (mark == b"," and self._depth == 1)

    def finish(self) -> Iterator[ListElement]:
        """Give what stands behind the last whole element, if anything does. Raises UsageError for an empty file."""
        if not self.ended and not self._depth:
            raise UsageError(f"{str(self._path)!r} is empty", hint="It should hold a JSON list of tasks.")
        if not self.ended:
            self._number += 1
            yield ListElement(self._number, self._line, b"", 0, "the list breaks off here: the file has no end")
        elif bytes(self._held).strip(_BLANK) or self._length > EVIDENCE_LIMIT:
            self._number += 1
            yield ListElement(self._number, self._line, b"", 0, "there is something behind the end of the list")

    def _begin(self, chunk: bytes) -> int:
        """Return where the list's first element starts."""
        body = chunk.lstrip(_BLANK)
        if not body:
            self._line += chunk.count(b"\n")
            return len(chunk)
        if body[:1] != b"[":
            raise UsageError(
                f"{str(self._path)!r} is not a JSON list",
                hint="It should begin with [ and hold one object for each task. For JSON lines: rune import events.",
            )
        self._depth = 1
        start = len(chunk) - len(body)
        self._line += chunk.count(b"\n", 0, start)
        return start + 1

    def _keep(self, part: bytes) -> None:
        self._length += len(part)
        if self._length <= EVIDENCE_LIMIT:
            self._held += part
        else:
            self._held.clear()

    def _element(self) -> Iterator[ListElement]:
        data, length = bytes(self._held).strip(_BLANK), self._length
        self._held.clear()
        self._length = 0
        # `[]` has no element, and `[1]` one; between two commas one is missing.
        if data or length > EVIDENCE_LIMIT or not (self.ended and self._number == 0):
            self._number += 1
            trouble = "" if data or length > EVIDENCE_LIMIT else "there is nothing between two commas"
            yield ListElement(self._number, self._line, data, length, trouble)


def list_elements(chunks: Iterator[bytes], path: Path) -> Iterator[ListElement]:
    """Iterate over the elements of the one list in a file. Raises UsageError when it does not hold a list."""
    cutter = _Cutter(path)
    for chunk in chunks:
        yield from cutter.feed(chunk)
    yield from cutter.finish()
