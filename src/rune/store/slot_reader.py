"""Reading a slot through all its segments, and finding where it ends."""

from collections.abc import Callable, Generator
from pathlib import Path
from typing import NamedTuple

from rune.errors import CorruptJournalError, JournalMovedError
from rune.store.event_store import Offset
from rune.store.order import Located
from rune.store.segments import Erased, SegmentReader, list_segments, segment_name

# As much of a slot's end is verified on opening; what is older was verified when the views took it in, and is again by
# every reader.
CHECKED_BYTES = 1 << 20
_NEAR_END = 64 << 10


class Limit(NamedTuple):
    """How far a slot may be read: to this byte of this segment."""

    segment: int
    position: int


class Tip(NamedTuple):
    """The last event of a slot."""

    offset: Offset
    hlc: int
    chain: str


def slot_events(
    folder: Path,
    writer: str,
    after: Offset | None,
    *,
    limit: Limit | None,
    seen: Offset | None = None,
    erased: Erased,
    see: Callable[[int], None],
) -> Generator[Located, None, None]:
    """Iterate over a slot's events after a place, verified, in constant memory.

    With a `limit` (the reading process's own slot) everything up to it must be whole, and nothing behind
    it is given: it is not durable yet. Another process may have read it there all the same, so `after` may
    lie behind the limit; what is given then goes on to `seen`, a place that somebody has read. Without a
    limit the slot belongs to another process, perhaps a dead one: what is unfinished or torn at its very
    end is left for later. `see` is told each hlc. Raises CorruptJournalError, UnmigratedDialectError,
    StorageUnavailableError, JournalMovedError (`after` or `seen` is not there).
    """
    # Only what lies behind the limit is looked for; up to it everything is given anyway.
    behind = seen if limit and seen and (seen.segment, seen.position) > limit else None
    goal = Limit(behind.segment, behind.position) if behind else limit
    number = 1 if after is None else after.segment
    reader = _open(folder, writer, number, erased, known=after is not None)
    try:
        if after is not None:
            reader.seek(after)
            if goal is not None and (number, reader.position) >= goal:
                return
        while True:
            last = goal.segment if goal else _last_segment(folder, writer)
            end = limit.position if limit and not behind and number == limit.segment else None
            for item in reader.events(end):
                see(item[1].hlc)
                yield item
                if behind is not None and item[0] >= behind:
                    return
            if number < last:
                _must_be_whole(reader)
                number += 1
                following = _open(folder, writer, number, erased, known=limit is not None and number > limit.segment)
                previous, reader = reader, following
                previous.close()
                _go_on(previous, following)
            elif behind is None and limit is not None:
                _must_reach(reader, limit)
                return
            elif _last_segment(folder, writer) == number and not _was_rewritten(reader):
                if limit is not None:
                    _must_reach(reader, limit)
                    raise JournalMovedError(f"{reader.name} no longer holds what was read behind {reader.position}")
                return
    finally:
        reader.close()


def find_tip(folder: Path, writer: str, numbers: list[int], erased: Erased) -> Tip | None:
    """Return the last event of a slot without reading all of it; None when it has none. Raises as `slot_events`."""
    return _tip(folder, writer, numbers, erased, window=_NEAR_END, goes_on=lambda _: False)


def check_end(folder: Path, writer: str, numbers: list[int], erased: Erased) -> Tip | None:
    """Do the same with another process's slot, and verify its last CHECKED_BYTES: some milliseconds.

    Raises CorruptJournalError for damage there that is no torn tail.
    """
    return _tip(folder, writer, numbers, erased, window=CHECKED_BYTES, goes_on=_was_rewritten)


def check_ends(folder: Path, erased: Erased) -> None:
    """Look at the ends of all slots, for whoever only reads: who writes is told the same on opening. Raises as
    `check_end`, and what else reading raises. Blocks.
    """
    for writer, numbers in list_segments(folder).items():
        check_end(folder, writer, numbers, erased)


def _tip(
    folder: Path,
    writer: str,
    numbers: list[int],
    erased: Erased,
    *,
    window: int,
    goes_on: Callable[[SegmentReader], bool],
) -> Tip | None:
    for number in reversed(numbers):
        with SegmentReader(folder, writer, number, erased) as reader:
            reader.enter_near_end(window)
            read = True
            while read:
                for _ in reader.events():
                    pass
                read = goes_on(reader)
            if reader.seq:
                return Tip(Offset(writer, reader.seq, number, reader.position), reader.hlc, reader.chain)
    return None


def _last_segment(folder: Path, writer: str) -> int:
    numbers = list_segments(folder).get(writer)
    if numbers is None:
        raise JournalMovedError(f"the journal has no slot {writer} any more")
    return numbers[-1]


def _open(folder: Path, writer: str, number: int, erased: Erased, *, known: bool) -> SegmentReader:
    try:
        return SegmentReader(folder, writer, number, erased)
    except JournalMovedError:
        if known:
            raise
        file = str(folder / segment_name(writer, number))
        raise CorruptJournalError("this segment is missing", file=file, line=1, byte=0) from None


def _go_on(previous: SegmentReader, following: SegmentReader) -> None:
    if following.header.prev != previous.chain:
        raise following.corrupt(0, "it does not follow the segment before it (chain broken)")
    following.seq = previous.seq


def _must_be_whole(reader: SegmentReader) -> None:
    if reader.tail is not None:
        place = reader.tail.start if reader.tail.damaged is None else reader.tail.damaged
        raise reader.corrupt(place, reader.tail.reason)


def _must_reach(reader: SegmentReader, limit: Limit) -> None:
    """Raise CorruptJournalError unless all that was written to one's own slot was there."""
    if (reader.number, reader.position) < limit:
        _must_be_whole(reader)
        raise reader.corrupt(reader.position, "it is shorter than what was written to it")


def _was_rewritten(reader: SegmentReader) -> bool:
    """Judge the end of another process's slot: False, read to its end; True, there is more by now.

    Raises CorruptJournalError for damage that is not at the end. Its holder may have cut off what it
    could not write while we read: what does not verify is looked at afresh.
    """
    if reader.tail is None or reader.tail.damaged is None:
        return False
    if reader.verifies_now(reader.tail.damaged):
        return True
    if reader.holds_event_behind(reader.tail.damaged):
        _must_be_whole(reader)
    return False
