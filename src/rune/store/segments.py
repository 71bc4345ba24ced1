"""Reading one segment of a slot: verified events in order, and what stands behind the last of them."""

import itertools
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from rune.errors import (
    CorruptJournalError,
    DamagedLineError,
    JournalMovedError,
    NewerFormatError,
    StorageError,
    UnmigratedDialectError,
)
from rune.host.files import open_regular
from rune.records.envelope import EventEnvelope, SegmentHeader
from rune.store.codec import (
    FORMAT_VERSION,
    MAX_LINE_BYTES,
    is_foreign,
    is_plain,
    newer_format,
    parse,
    parse_header,
    verify,
)
from rune.store.event_store import Offset
from rune.store.failures import unavailable, why_unreadable
from rune.store.gaps import read_at

_NAME = re.compile(r"(w[0-9]{3})-([0-9]{6})\.jsonl")
_CHUNK = 64 << 10
_HEADER_BYTES = 4096
LINE_START = b'{"actor_id":"'

# Says whether the `body.erased` event (first id) names the event with the second.
Erased = Callable[[str, str], bool]


class Tail(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes behind the last whole batch. `damaged` is the start of the first line that does not verify,
    None when the file just ends too early, as it does while its holder is writing.
    """

    start: int
    reason: str
    damaged: int | None = None


def segment_name(writer: str, number: int) -> str:
    """Return `w000-000001.jsonl`."""
    return f"{writer}-{number:06}.jsonl"


def list_segments(folder: Path) -> dict[str, list[int]]:
    """Return the segment numbers of each slot, in order. Raises StorageUnavailableError."""
    found: dict[str, list[int]] = {}
    try:
        for path in folder.iterdir():
            if match := _NAME.fullmatch(path.name):
                found.setdefault(match[1], []).append(int(match[2]))
    except OSError as error:
        raise unavailable(error, f"cannot read the journal {str(folder)!r}") from error
    return {writer: sorted(found[writer]) for writer in sorted(found)}


class SegmentReader:
    """One open segment. `position`, `chain`, `seq`, `hlc` are those behind the last whole batch that was read;
    `tail` says what stands behind it, None when nothing does. `seq` is None until it is known.

    Raises StorageUnavailableError (no permission, or a newer format), CorruptJournalError (damaged, unreadable for
    good, no file at all), UnmigratedDialectError (it begins as another program's), JournalMovedError (not there).
    `path` is another file to read as that segment, before it becomes it.
    """

    def __init__(self, folder: Path, writer: str, number: int, erased: Erased, *, path: Path | None = None) -> None:
        self.writer = writer
        self.number = number
        self.name = segment_name(writer, number)
        self._path = path or folder / self.name
        self._erased = erased
        self._more = 0
        self._ends_early = False
        self._plain = False
        self.hlc = 0
        self.seq: int | None = 0 if number == 1 else None
        self.tail: Tail | None = None
        try:
            self._descriptor = open_regular(self._path)
        except FileNotFoundError as error:
            raise JournalMovedError(f"the segment {self.name} is no longer there") from error
        except OSError as error:
            if reason := why_unreadable(error):
                raise CorruptJournalError(reason, file=str(self._path), line=1, byte=0) from error
            raise unavailable(error, f"cannot read the segment {self.name}") from error
        try:
            self.header, self.chain, self.position = self._read_header()
        except BaseException:
            self.close()
            raise
        self.start = self.position

    def close(self) -> None:
        """Close the file; may be called twice."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __enter__(self) -> "SegmentReader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def size(self) -> int:
        """Return the file's length now, in bytes."""
        return os.fstat(self._descriptor).st_size

    def events(self, end: int | None = None) -> Iterator[tuple[Offset, EventEnvelope]]:
        """Iterate over the whole batches from `position` on, to the byte `end` or the end of the file.

        Stops before a line that does not verify and leaves it in `tail`; raises where one verifies and
        does not belong there. May be called again when the file has grown.
        """
        self.tail = None
        chain, seq, more = self.chain, self.seq, self._more
        waiting: list[tuple[Offset, EventEnvelope]] = []
        place, scratch = self.position, bytearray()
        for line in self._lines(place, end):
            try:
                envelope, following, erased_by = verify(line, scratch, plain=self._plain)
                if erased_by is not None:
                    self._check_erased(erased_by, envelope.event_id)
            except DamagedLineError as error:
                self._refuse_foreign_line(line, place)
                self.tail = Tail(start=self.position, reason=error.message, damaged=place)
                return
            if envelope.prev != chain:
                raise self.corrupt(place, "it does not follow the line before it (chain broken)")
            if (seq is not None and envelope.seq != seq + 1) or envelope.writer != self.writer:
                raise self.corrupt(place, f"it says {envelope.writer} {envelope.seq}, not {self.writer} {seq}+1")
            if more and envelope.more != more - 1:
                raise self.corrupt(place, "a line of its batch is missing")
            place += len(line) + 1
            chain, seq, more = following, envelope.seq, envelope.more
            here = Offset(self.writer, seq, self.number, place), envelope
            if more:
                waiting.append(here)
                continue
            self.position, self.chain, self.seq, self._more, self.hlc = place, chain, seq, 0, envelope.hlc
            if waiting:
                yield from waiting
                waiting.clear()
            yield here
        if waiting or self._ends_early:
            reason = "its last batch is unfinished" if waiting else "its last line is unfinished"
            self.tail = Tail(start=self.position, reason=reason)

    def seek(self, after: Offset) -> None:
        """Go behind an event that was read before. Raises JournalMovedError when it is not in this segment."""
        line = self._line_before(after.position)
        try:
            envelope, chain, _ = parse(line)
        except DamagedLineError:
            envelope, chain = None, ""
        if envelope is None or envelope.seq != after.seq:
            self._search(after)  # the segment was rewritten, as erasing does: same events, other places
            return
        self.position, self.chain, self.seq, self.hlc = after.position, chain, after.seq, envelope.hlc
        self._more = envelope.more

    def enter_near_end(self, window: int) -> None:
        """Go to the start of a batch in the last `window` bytes; stay at the first event when there is none."""
        start = self.size() - window
        if start <= self.start:
            return
        try:
            data = os.pread(self._descriptor, window, start)
        except OSError as error:
            if why_unreadable(error):
                return  # where exactly, whoever reads on from the first event is told
            raise unavailable(error, f"cannot read the segment {self.name}") from error
        place = 0
        while (newline := data.find(b"\n", place)) >= 0:
            line = data[place:newline] if place else b""
            place = newline + 1
            try:
                parsed = parse(line)
            except DamagedLineError:
                continue
            if not parsed.envelope.more:
                self.position, self.chain, self.seq = start + place, parsed.chain, parsed.envelope.seq
                self.hlc = parsed.envelope.hlc
                return

    def verifies_now(self, start: int) -> bool:
        """Say whether the line at `start` verifies when it is read again."""
        for line in itertools.islice(self._lines(start, None), 1):
            try:
                parsed = parse(line)
                if parsed.erased_by is not None:
                    self._check_erased(parsed.erased_by, parsed.envelope.event_id)
            except DamagedLineError:
                return False
            return True
        return False

    def holds_event_behind(self, start: int) -> bool:
        """Say whether any line behind `start` verifies, also one that is glued to damage before it.

        Then the damage is in the middle; otherwise it is a torn tail.
        """
        for line in self._lines(start, None):
            # Inside a string the quotes of this text would be escaped: it can only start a line.
            glued = line.rfind(LINE_START)
            if _verifies(line) or (glued > 0 and _verifies(line[glued:])):
                return True
        return False

    def corrupt(self, place: int, reason: str) -> CorruptJournalError:
        """Return the error that names this file and the line that starts at the byte `place`."""
        line, at = 1, 0
        while at < place:
            try:
                chunk = read_at(self._descriptor, min(_CHUNK, place - at), at)
            except OSError:
                break  # as many lines as can be counted
            if not chunk:
                break
            line += chunk.count(b"\n")
            at += len(chunk)
        return CorruptJournalError(reason, file=str(self._path), line=line, byte=place)

    def _lines(self, place: int, end: int | None) -> Iterator[bytes]:
        """Iterate over the lines from `place` on without newlines, and over one that is too long to be a line.

        Sets `_ends_early` when the last bytes are not a line yet, and `_plain` for the lines that come next.
        """
        rest = b""
        while True:
            wanted = _CHUNK if end is None else min(_CHUNK, end - place)
            try:
                chunk = read_at(self._descriptor, wanted, place) if wanted > 0 else b""
            except OSError as error:
                raise self._unreadable(error, place - len(rest)) from error
            if not chunk:
                break
            place += len(chunk)
            data = rest + chunk
            self._plain = is_plain(data)
            lines = data.split(b"\n")
            rest = lines.pop()
            yield from lines
            if len(rest) > MAX_LINE_BYTES:
                yield rest
                # Behind megabytes of zeros a line may begin that ends only in the next chunk.
                begun = rest.rfind(LINE_START, 1)
                rest = rest[begun:] if begun > 0 else rest[1 - len(LINE_START) :]
        self._ends_early = bool(rest)

    def _check_erased(self, erasing_id: str, event_id: str) -> None:
        if not self._erased(erasing_id, event_id):
            raise DamagedLineError("it was erased, and the event that it names does not say so")

    def _read_header(self) -> tuple[SegmentHeader, str, int]:
        try:
            line, newline, _ = os.pread(self._descriptor, _HEADER_BYTES, 0).partition(b"\n")
        except OSError as error:
            raise self._unreadable(error, 0) from error
        if not newline:
            # Another program's first line may be longer than a header.
            self._refuse_foreign(next(self._lines(0, MAX_LINE_BYTES), b""))
            raise self.corrupt(0, "its header is not whole")
        version = newer_format(line)
        if version is not None:
            raise NewerFormatError(
                f"{self.name} has format {version}; this Rune knows up to {FORMAT_VERSION}",
                hint="A newer Rune wrote this journal: use that one.",
            )
        try:
            header, chain = parse_header(line)
        except DamagedLineError as error:
            self._refuse_foreign(line)
            raise self.corrupt(0, error.message) from error
        if (header.writer, header.segment) != (self.writer, self.number):
            raise self.corrupt(0, f"its header says {segment_name(header.writer, header.segment)}")
        return header, chain, len(line) + 1

    def _unreadable(self, error: OSError, place: int) -> StorageError:
        if reason := why_unreadable(error):
            return self.corrupt(place, reason)
        return unavailable(error, f"cannot read the segment {self.name}")

    def _refuse_foreign_line(self, line: bytes, place: int) -> None:
        """Behind a header of ours a whole line of another form is damage, and too whole to be a torn tail."""
        if is_foreign(line):
            raise self.corrupt(place, "a line is not in this journal's form")

    def _refuse_foreign(self, line: bytes) -> None:
        if is_foreign(line):
            raise UnmigratedDialectError(
                f"{str(self._path)!r} is not written in this journal's form",
                hint=f"Move that file out of the journal folder, then: rune import events {self.name}",
            )

    def _line_before(self, place: int) -> bytes:
        first = max(0, place - MAX_LINE_BYTES)
        try:
            data = os.pread(self._descriptor, place - first, first)
        except OSError as error:
            if why_unreadable(error):
                return b""  # looking for it from the first event on tells where the damage is
            raise unavailable(error, f"cannot read the segment {self.name}") from error
        if len(data) < place - first or not data.endswith(b"\n"):
            return b""
        return data[data.rfind(b"\n", 0, -1) + 1 : -1]

    def _search(self, after: Offset) -> None:
        for offset, _ in self.events():
            if offset.seq == after.seq:
                self.seek(offset)
                return
        raise JournalMovedError(
            f"{self.name} does not hold event {after.seq} any more: it is shorter than it was, or another file"
        )


def _verifies(line: bytes) -> bool:
    try:
        parse(line)
    except DamagedLineError:
        return False
    return True
