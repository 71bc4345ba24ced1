"""What is kept of a command's output: its beginning and its end, safe to show and without secrets.

Bytes become text, secrets leave it, and only then it goes anywhere: whole to a spool (evidence), and
line by line to what the model and the screen are given. There a line that was written over (progress
bars) is its last state, a long line is cut, control sequences are shown by name, and between head and
tail one line says how much was left out.
"""

import codecs
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, Protocol

from rune.text.masked_stream import MaskedStream
from rune.text.masking import Masker
from rune.text.safe_text import SafeText, safe_text

Stream = Literal["stdout", "stderr"]

_LONGEST_ESCAPE: Final = 10  # <U+10FFFF>
_LINE_END_BYTES: Final = 1
_NOTE_BYTES: Final = 48  # how much a cut line lost, and its end
_KILO: Final = 1_000


class Spool(Protocol):
    """Where the whole output goes; a binary file fits."""

    def write(self, data: bytes, /) -> object:
        """Take all of `data`; an error goes to whoever fed the output."""
        ...


@dataclass(frozen=True, kw_only=True)
class OutputCaps:
    """How much is kept. The tail is longer: errors and totals stand at the end. Bytes are UTF-8 of what is shown."""

    head_lines: int = 100
    head_bytes: int = 8_000
    tail_lines: int = 300
    tail_bytes: int = 24_000
    line_characters: int = 1_000
    spool_bytes: int = 10_000_000

    def __post_init__(self) -> None:
        if (
            min(self.head_lines, self.head_bytes, self.spool_bytes) < 0
            or min(self.tail_lines, self.line_characters) < 1
        ):
            raise ValueError(f"a cap is too small: {self}")
        if self.tail_bytes < self.line_characters * _LONGEST_ESCAPE + _NOTE_BYTES:
            raise ValueError(f"the tail has no room for one long line of escapes: {self}")


@dataclass(frozen=True, kw_only=True)
class KeptOutput:
    """`text` is what a model and a person are given. `total_bytes` came from the command in `total_lines`;
    `left_out_lines` of them are not in `text`. `spool_is_whole`: nothing is missing in the spool.
    """

    text: SafeText
    total_bytes: int
    total_lines: int
    left_out_lines: int
    spool_is_whole: bool


class CommandOutput:
    """Takes what a command writes, piece by piece. Memory is bounded by the caps, whatever comes.

    The two streams are decoded and masked each for itself, and are put together a line at a time, in the order in
    which the lines end.
    """

    def __init__(self, masker: Masker, *, caps: OutputCaps | None = None, spool: Spool | None = None) -> None:
        self._caps = caps or OutputCaps()
        self._lanes: dict[Stream, _Lane] = {
            "stdout": _Lane(masker, self._caps.line_characters),
            "stderr": _Lane(masker, self._caps.line_characters),
        }
        self._kept = _HeadAndTail(self._caps)
        self._spool = spool
        self._spool_left = self._caps.spool_bytes
        self._spool_is_whole = True
        self._spool_ends_line = True
        self._spooled: _Lane | None = None  # whose text it took last
        self._total_bytes = 0
        self._latest: Stream = "stdout"

    def feed(self, stream: Stream, data: bytes) -> None:
        """Take what arrived on one of the streams."""
        self._total_bytes += len(data)
        self._latest = stream
        lane = self._lanes[stream]
        self._take(lane, lane.masked(data))

    def latest(self, lines: int) -> SafeText:
        """Return the last lines so far, for who watches; one that is being written over is among them."""
        unfinished = self._lanes[self._latest].unfinished()
        shown = [*self._kept.last(lines), *([unfinished] if unfinished else [])]
        return SafeText("\n".join(shown[-lines:]))

    def finish(self) -> KeptOutput:
        """Take what was held back, and return what is kept."""
        for lane in self._lanes.values():
            self._take(lane, lane.rest())
            if lane.has_begun():
                self._kept.add(lane.end())
        return KeptOutput(
            text=self._kept.text(),
            total_bytes=self._total_bytes,
            total_lines=self._kept.total_lines,
            left_out_lines=self._kept.left_out_lines(),
            spool_is_whole=self._spool_is_whole,
        )

    def _take(self, lane: "_Lane", text: str) -> None:
        if not text:
            return
        self._write(lane, text)
        *ended, unfinished = text.split("\n")
        first_of_tail = len(ended) - self._caps.tail_lines
        for number, part in enumerate(ended):
            if number < first_of_tail and number > 0 and not self._kept.head_is_open:
                # It would be pushed out of the tail by what is here already.
                self._kept.leave_out(ended[number:first_of_tail])
                break
            lane.extend(part)
            self._kept.add(lane.end())
        else:
            first_of_tail = len(ended)
        for part in ended[first_of_tail:]:
            lane.extend(part)
            self._kept.add(lane.end())
        lane.extend(unfinished)

    def _write(self, lane: "_Lane", text: str) -> None:
        if self._spool is None or not self._spool_is_whole:
            return
        # Half a line of one stream and half of the other make no line, and might make a secret.
        if lane is not self._spooled and not self._spool_ends_line:
            text = "\n" + text
        self._spooled, self._spool_ends_line = lane, text.endswith("\n")
        data = text.encode()
        if len(data) > self._spool_left:
            self._spool_is_whole = False
            # Never half a character at the end.
            data = data[: self._spool_left].decode(errors="ignore").encode()
        self._spool_left -= len(data)
        self._spool.write(data)


class _Line(NamedTuple):
    """A line as it is shown, and how many bytes it was before anything was folded or cut."""

    shown: SafeText
    size: int


class _Lane:
    """One of the two streams: its half characters, its half secrets and its unfinished line."""

    def __init__(self, masker: Masker, longest: int) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._masked = MaskedStream(masker)
        self._longest = longest
        self._size = 0
        self._state = self._before = ("", 0)  # the beginning of what stands in the line, and its whole length

    def masked(self, data: bytes) -> str:
        return self._masked.feed(self._decoder.decode(data))

    def rest(self) -> str:
        return self._masked.feed(self._decoder.decode(b"", final=True)) + self._masked.finish()

    def extend(self, part: str) -> None:
        """Go on with the line; a carriage return begins it anew."""
        self._size += len(part) if part.isascii() else len(part.encode())
        for number, written in enumerate(part.split("\r")):
            if number and self._state[1]:
                self._before, self._state = self._state, ("", 0)
            text, length = self._state
            self._state = (text + written[: self._longest - len(text)], length + len(written))

    def has_begun(self) -> bool:
        return self._size > 0

    def unfinished(self) -> SafeText:
        """Return the line as it stands; what was there before, while it is being written over."""
        text, length = self._state if self._state[1] else self._before
        more = length - len(text)
        return SafeText(safe_text(text, newlines=False) + (f" [+{more:,} characters]" if more else ""))

    def end(self) -> _Line:
        """Return the line, and begin the next."""
        line = _Line(self.unfinished(), self._size + _LINE_END_BYTES)
        self._size = 0
        self._state = self._before = ("", 0)
        return line


class _HeadAndTail:
    """The first lines and the last ones, within the caps, and a count of the rest."""

    def __init__(self, caps: OutputCaps) -> None:
        self._caps = caps
        self._head: list[SafeText] = []
        self._head_left = caps.head_bytes
        self._tail: deque[_Line] = deque()
        self._tail_bytes = 0
        self._left_out_bytes = 0
        self.head_is_open = True
        self.total_lines = 0

    def add(self, line: _Line) -> None:
        self.total_lines += 1
        size = _bytes_of(line.shown)
        if self.head_is_open and len(self._head) < self._caps.head_lines and size <= self._head_left:
            self._head.append(line.shown)
            self._head_left -= size
            return
        self.head_is_open = False
        self._tail.append(line)
        self._tail_bytes += size
        while len(self._tail) > self._caps.tail_lines or self._tail_bytes > self._caps.tail_bytes:
            gone = self._tail.popleft()
            self._tail_bytes -= _bytes_of(gone.shown)
            self._left_out_bytes += gone.size

    def leave_out(self, lines: Sequence[str]) -> None:
        """Count lines that nobody will see."""
        self.total_lines += len(lines)
        self._left_out_bytes += len("\n".join(lines).encode()) + _LINE_END_BYTES
        # They come after all that is in the tail, and before what will fill it.
        self._left_out_bytes += sum(line.size for line in self._tail)
        self._tail.clear()
        self._tail_bytes = 0

    def left_out_lines(self) -> int:
        return self.total_lines - len(self._head) - len(self._tail)

    def last(self, lines: int) -> list[SafeText]:
        tail = [line.shown for line in self._tail]
        return (tail if self.left_out_lines() else [*self._head, *tail])[-lines:]

    def text(self) -> SafeText:
        lines = [line.shown for line in self._tail]
        if count := self.left_out_lines():
            word = "line" if count == 1 else "lines"
            lines.insert(0, SafeText(f"[... {count:,} {word} ({_in_words(self._left_out_bytes)}) left out ...]"))
        return SafeText("\n".join([*self._head, *lines]))


def _bytes_of(text: SafeText) -> int:
    return (len(text) if text.isascii() else len(text.encode())) + _LINE_END_BYTES


def _in_words(size: int) -> str:
    if size < _KILO:
        return f"{size} bytes"
    return f"{size / _KILO:,.1f} KB" if size < _KILO**2 else f"{size / _KILO**2:,.1f} MB"
