"""A look at the ends of all slots: what whoever writes is told on opening, for those who only read."""

from pathlib import Path
from typing import Final

from rune.store.segments import Erased, SegmentReader, list_segments

# As much of each slot as its holder verifies on opening; what is older was verified when the views took it in.
CHECKED_BYTES: Final = 1 << 20


def check_ends(folder: Path, erased: Erased) -> None:
    """Raise CorruptJournalError or NewerFormatError where the end of a slot cannot be understood, and what else
    reading raises. A torn tail is no damage. Some milliseconds a slot; blocks.
    """
    for writer, numbers in list_segments(folder).items():
        with SegmentReader(folder, writer, numbers[-1], erased) as reader:
            reader.enter_near_end(CHECKED_BYTES)
            while _goes_on(reader):
                pass


def _goes_on(reader: SegmentReader) -> bool:
    for _ in reader.events():
        pass
    tail = reader.tail
    if tail is None or tail.damaged is None:
        return False
    if reader.verifies_now(tail.damaged):
        return True  # its holder took back what it could not write, and wrote something else
    if reader.holds_event_behind(tail.damaged):
        raise reader.corrupt(tail.damaged, tail.reason)
    return False
