"""Where a slot's first damage is, and which of its events are intact behind it (spine.md, Opening)."""

import contextlib
import json
from collections.abc import Iterator
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
from rune.store.codec import MAX_LINE_BYTES, BlobReader, ParsedLine, parse, parse_header
from rune.store.erasures import ErasureIndex
from rune.store.failures import unavailable
from rune.store.gaps import Gap, open_past_gaps
from rune.store.segments import LINE_START, Erased, SegmentReader, list_segments, segment_name
from rune.store.slots import holder_of

_OBJECT_AT = json.JSONDecoder().raw_decode


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """The place of a slot from which on it cannot be read.

    In `segment`, the file with this `number`, it begins at `line` (from 1), which starts at `byte`; the first `keep`
    bytes are whole batches (0: not even the header serves, or a segment before it is missing). `intact_behind` is
    how many lines behind `keep`, in this and later segments, verify by themselves. `held_by` is the process that
    writes the slot now (0: not known which), None when nobody does.

    With a `refusal` it is not damage: the file is another program's (UnmigratedDialectError) or of a later format
    (NewerFormatError), and `quarantine` leaves the journal alone.
    """

    writer: str
    segment: str
    number: int
    line: int
    byte: int
    keep: int
    reason: str
    intact_behind: int
    held_by: int | None
    refusal: StorageError | None = None


def find_damage(folder: Path, evidence: BlobReader) -> tuple[Damage, ...]:
    """Read the whole journal; returns the first damage of each slot that has one. Nothing is changed.

    A torn tail is no damage: the slot's next holder cuts it off. Of a slot that is being written, what its holder has
    not finished is none either. Blocks, as long as a replay. Raises StorageUnavailableError for what cannot be read.
    """
    erased = ErasureIndex(folder, evidence).names
    found = (first_damage(folder, writer, erased) for writer in list_segments(folder))
    return tuple(damage for damage in found if damage is not None)


def first_damage(folder: Path, writer: str, erased: Erased) -> Damage | None:
    """Return where a slot cannot be read on from; None when all of it can. Raises StorageUnavailableError."""
    strange = _strange(folder, writer)
    if strange is not None:
        return strange
    chain, seq, expected = "", 0, 1
    while True:
        ahead = [number for number in list_segments(folder).get(writer, []) if number >= expected]
        if not ahead:
            return None
        if ahead[0] != expected:
            error = _at(
                folder, writer, ahead[0], f"the segment before it, {segment_name(writer, expected)}, is missing"
            )
            return _damage(folder, writer, ahead[0], error, keep=0)
        try:
            reader = SegmentReader(folder, writer, expected, erased)
        except CorruptJournalError as error:
            return _damage(folder, writer, expected, error, keep=0)
        with reader:
            if chain and reader.header.prev != chain:
                error = reader.corrupt(0, "it does not follow the segment before it (chain broken)")
                return _damage(folder, writer, expected, error, keep=0)
            reader.seq = seq
            if (error := _break_in(reader, folder)) is not None:
                return _damage(folder, writer, expected, error, keep=reader.position)
            chain, seq = reader.chain, reader.seq
        expected += 1


def intact_lines(path: Path, start: int, gap: Gap = lambda: None) -> Iterator[ParsedLine | None]:
    """Iterate over the lines of a segment from the byte `start` on: what verifies by itself, and None for each line
    in which nothing does. Lines that were glued together for want of a newline are found; the header is passed over.
    What cannot be read is passed over, and `gap` is told: how many lines that takes nobody knows.

    Memory is bounded by the longest possible line. Raises StorageUnavailableError.
    """
    try:
        with open_past_gaps(path, start, gap) as file:
            carried, found, first = b"", False, start == 0
            while piece := file.readline(MAX_LINE_BYTES):
                ends = piece.endswith(b"\n")
                data = carried + (piece[:-1] if ends else piece)
                may_be_header, first = first, False
                if may_be_header and _is_header(data):
                    continue
                lines, rest = _lines_in(data)
                yield from lines
                found = found or bool(lines)
                if ends and not found and data:
                    yield None
                carried, found = (b"", False) if ends else (rest, found)
            if carried and not found:
                yield None
    except OSError as error:
        raise unavailable(error, f"cannot read the segment {path.name}") from error


def _strange(folder: Path, writer: str) -> Damage | None:
    """Return the first segment of a slot that is not this journal's, or of a later format."""
    for number in list_segments(folder).get(writer, []):
        try:
            SegmentReader(folder, writer, number, lambda _by, _of: False).close()
        except (NewerFormatError, UnmigratedDialectError) as refusal:
            error = _at(folder, writer, number, refusal.message)
            return _damage(folder, writer, number, error, keep=0, refusal=refusal)
        except (CorruptJournalError, JournalMovedError):
            continue  # damage is what `first_damage` is for
    return None


def _break_in(reader: SegmentReader, folder: Path) -> CorruptJournalError | None:
    """Read a segment to its end, or to damage that is no torn tail; leaves the reader behind the last whole batch."""
    try:
        while True:
            before = reader.position
            for _ in reader.events():
                pass
            tail = reader.tail
            if tail is None:
                return None
            last = list_segments(folder)[reader.writer][-1] == reader.number
            if last and (tail.damaged is None or _is_torn(reader, tail.damaged)):
                return None
            # Its holder may be writing on: what is damage is still there, in the same place, when it is read again.
            if reader.position == before:
                return reader.corrupt(tail.start if tail.damaged is None else tail.damaged, tail.reason)
    except CorruptJournalError as error:
        return error


def _is_torn(reader: SegmentReader, place: int) -> bool:
    return not reader.verifies_now(place) and not reader.holds_event_behind(place)


def _at(folder: Path, writer: str, number: int, reason: str) -> CorruptJournalError:
    return CorruptJournalError(reason, file=str(folder / segment_name(writer, number)), line=1, byte=0)


def _damage(
    folder: Path,
    writer: str,
    number: int,
    error: CorruptJournalError,
    *,
    keep: int,
    refusal: StorageError | None = None,
) -> Damage:
    behind = 0
    if refusal is None:
        later = [each for each in list_segments(folder)[writer] if each >= number]
        for each in later:
            lines = intact_lines(folder / segment_name(writer, each), keep if each == number else 0)
            behind += sum(1 for line in lines if line is not None)
    return Damage(
        writer=writer,
        segment=segment_name(writer, number),
        number=number,
        line=error.line,
        byte=error.byte,
        keep=keep,
        reason=error.reason,
        intact_behind=behind,
        held_by=holder_of(folder, writer),
        refusal=refusal,
    )


def _is_header(line: bytes) -> bool:
    try:
        parse_header(line)
    except DamagedLineError:
        return False
    return True


def _lines_in(data: bytes) -> tuple[list[ParsedLine], bytes]:
    """Return the events in a piece without newlines, and the end of it in which one may have begun."""
    with contextlib.suppress(DamagedLineError):
        return [parse(data)], b""  # as nearly all are
    text = data.decode("latin-1")
    found: list[ParsedLine] = []
    at, rest = 0, max(0, len(data) - len(LINE_START) + 1)
    begun: int | None = None
    while (start := data.find(LINE_START, at)) >= 0:
        at = start + 1
        try:
            _, end = _OBJECT_AT(text, start)
            found.append(parse(data[start:end]))
        except (ValueError, RecursionError, DamagedLineError):
            begun = start if begun is None else begun
            continue
        at, begun = end, None
    if begun is not None:
        rest = max(begun, len(data) - MAX_LINE_BYTES)
    return found, data[max(rest, at if begun is None else 0) :]
