"""Writing one slot: open and repair, append, rotate (spine.md, Append, Opening)."""

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from rune.errors import StorageError, StorageUnavailableError, UnstorableValueError
from rune.host.clock import Clock
from rune.host.files import create_private, replace_file, sync_folder, write_all
from rune.host.machine import boot_id
from rune.records.times import rfc3339
from rune.store.codec import CHAIN_START, Place, PreparedEvent, seal, seal_header
from rune.store.event_store import Offset
from rune.store.failures import PASSING, ending, unavailable
from rune.store.hybrid_clock import HybridClock
from rune.store.segments import Erased, SegmentReader, Tail, segment_name
from rune.store.slot_reader import CHECKED_BYTES, Limit, find_tip

SEGMENT_BYTES = 64 << 20
_COPY_BYTES = 1 << 20

Sync = Callable[[int], None]
# For each batch the offsets of its events, or why it was not stored.
Outcome = tuple[Offset, ...] | StorageError


class Repair(msgspec.Struct, frozen=True, kw_only=True):
    """A torn tail that was cut off on opening; `kept_as` is the file that holds it now."""

    segment: str
    kept_as: str
    bytes: int
    reason: str


class SlotWriter:
    """Appends to a slot that this process holds. Not thread-safe: one thread writes.

    After a failed sync it stays ended: what the disk holds is unknown until the journal is read back.
    """

    def __init__(
        self,
        folder: Path,
        writer: str,
        *,
        clock: Clock,
        hlc: HybridClock,
        device_id: str,
        sync: Sync = os.fdatasync,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        self.writer = writer
        self._folder = folder
        self._clock = clock
        self._hlc = hlc
        self._device_id = device_id
        self._sync = sync
        self._segment_bytes = segment_bytes
        self._descriptor = -1
        self._segment = 0
        self._position = 0
        self._seq = 0
        self._chain = CHAIN_START
        self._ended: StorageUnavailableError | None = None
        self._last: Offset | None = None
        self.limit = Limit(0, 0)

    @property
    def last(self) -> Offset | None:
        """The last event that is durable in this slot."""
        return self._last

    def open(self, numbers: Sequence[int], erased: Erased) -> Repair | None:
        """Go to the end of the slot's last segment (`numbers` are all it has), cutting off a torn tail.

        Raises CorruptJournalError, UnmigratedDialectError, StorageUnavailableError.
        """
        try:
            for leftover in self._folder.glob(f".{self.writer}-*.tmp"):
                leftover.unlink()
            if not numbers:
                self._start_segment(1)
                return None
            return self._continue(list(numbers), erased)
        except OSError as error:
            raise unavailable(error, f"cannot open the journal {str(self._folder)!r}") from error

    def commit(self, batches: Sequence[Sequence[PreparedEvent]]) -> list[Outcome]:
        """Write batches with one write and make them durable with one sync.

        Batches are independent of each other: what fits is kept, what does not is refused.
        """
        if self._ended is not None or not batches:
            return [self._ended for _ in batches if self._ended is not None]
        try:
            self._check_file()
            if self._position >= self._segment_bytes:
                self._start_segment(self._segment + 1)
        except OSError as error:
            failure = self._fail(error)
            return [failure for _ in batches]
        except StorageUnavailableError as error:
            self._ended = error
            return [error for _ in batches]
        outcomes, sealed = self._seal(batches)
        if sealed:
            self._write(sealed, outcomes)
        return outcomes

    def check_durable(self, offset: Offset) -> None:
        """Raise StorageUnavailableError for an event of this slot that a sync failed for: others may have read it."""
        if self._ended is not None and offset.writer == self.writer and (offset.segment, offset.position) > self.limit:
            raise self._ended

    def end(self, reason: str) -> None:
        """Acknowledge nothing from now on, for this reason."""
        self._ended = StorageUnavailableError(reason, hint="Start Rune again: it reads back what is on disk.")

    def close(self) -> None:
        """Close the file; may be called twice."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _continue(self, numbers: list[int], erased: Erased) -> Repair | None:
        number = numbers[-1]
        with SegmentReader(self._folder, self.writer, number, erased) as reader:
            reader.enter_near_end(CHECKED_BYTES)
            for _ in reader.events():
                pass
            tail = reader.tail
            if tail is not None and tail.damaged is not None and reader.holds_event_behind(tail.damaged):
                raise reader.corrupt(tail.damaged, tail.reason)
            self._take(reader, numbers, erased)
        self._open_segment(number, self._position)
        repair = None if tail is None else self._cut(tail)
        self._publish()
        return repair

    def _take(self, reader: SegmentReader, numbers: list[int], erased: Erased) -> None:
        self._position, self._chain = reader.position, reader.chain
        self._hlc.see(reader.hlc)
        if reader.seq:
            self._seq = reader.seq
            self._last = Offset(self.writer, reader.seq, reader.number, reader.position)
            return
        before = find_tip(self._folder, self.writer, numbers[:-1], erased)
        if before is not None:
            if before.chain != reader.header.prev and before.offset.segment == reader.number - 1:
                raise reader.corrupt(0, "it does not follow the segment before it (chain broken)")
            self._hlc.see(before.hlc)
            self._seq, self._last = before.offset.seq, before.offset

    def _cut(self, tail: Tail) -> Repair:
        path = self._folder / segment_name(self.writer, self._segment)
        moment = rfc3339(self._clock.now_ms()).replace("-", "").replace(":", "")
        size = path.stat().st_size
        kept, descriptor = self._create_beside(f"{path.name}.torn-{moment}")
        try:
            with path.open("rb") as source:
                source.seek(tail.start)
                while chunk := source.read(_COPY_BYTES):
                    write_all(descriptor, chunk)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        sync_folder(self._folder)
        os.ftruncate(self._descriptor, tail.start)
        os.fsync(self._descriptor)
        return Repair(segment=path.name, kept_as=kept, bytes=size - tail.start, reason=tail.reason)

    def _create_beside(self, name: str) -> tuple[str, int]:
        for attempt in range(1000):
            candidate = f"{name}-{attempt}" if attempt else name
            try:
                return candidate, create_private(self._folder / candidate)
            except FileExistsError:
                continue
        raise FileExistsError(errno.EEXIST, "too many torn tails of one moment", name)

    def _start_segment(self, number: int) -> None:
        header = seal_header(
            boot_id=boot_id(),
            opened=rfc3339(self._clock.now_ms()),
            prev=self._chain,
            segment=number,
            writer=self.writer,
        )
        # Whole or not there at all: a segment with half a header cannot come to be.
        replace_file(self._folder / segment_name(self.writer, number), header.line)
        self._open_segment(number, len(header.line))
        self._chain = header.chain
        self._publish()

    def _open_segment(self, number: int, position: int) -> None:
        path = self._folder / segment_name(self.writer, number)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
        self.close()
        self._descriptor, self._segment, self._position = descriptor, number, position

    def _check_file(self) -> None:
        """Refuse to acknowledge into a file that is no longer the one that readers find."""
        name = segment_name(self.writer, self._segment)
        mine = os.fstat(self._descriptor)
        try:
            named = (self._folder / name).lstat()
        except FileNotFoundError:
            named = None
        if named is None or (named.st_dev, named.st_ino) != (mine.st_dev, mine.st_ino):
            raise StorageUnavailableError(
                f"the segment {name} was moved away or replaced while it was written",
                hint="Start Rune again: it goes on with the files that are there.",
            )
        if mine.st_size != self._position:
            raise StorageUnavailableError(
                f"the segment {name} has {mine.st_size} bytes instead of {self._position}: something else wrote to it",
                hint="Start Rune again: it checks and repairs what is there.",
            )

    def _seal(self, batches: Sequence[Sequence[PreparedEvent]]) -> tuple[list[Outcome], list["_Sealed"]]:
        outcomes: list[Outcome] = []
        sealed: list[_Sealed] = []
        chain, seq, position = self._chain, self._seq, self._position
        for batch in batches:
            try:
                one = self._seal_batch(batch, chain, seq, position)
            except UnstorableValueError as error:
                outcomes.append(error)
                continue
            outcomes.append(one.offsets)
            sealed.append(one)
            chain, seq, position = one.chain, one.offsets[-1].seq, one.offsets[-1].position
        return outcomes, sealed

    def _seal_batch(self, batch: Sequence[PreparedEvent], chain: str, seq: int, position: int) -> "_Sealed":
        lines: list[bytes] = []
        offsets: list[Offset] = []
        for following, item in zip(range(len(batch) - 1, -1, -1), batch, strict=True):
            seq += 1
            place = Place(
                writer=self.writer,
                seq=seq,
                hlc=self._hlc.tick(),
                more=following,
                prev=chain,
                device_id=self._device_id,
            )
            line, chain = seal(item, place)
            position += len(line)
            lines.append(line)
            offsets.append(Offset(self.writer, seq, self._segment, position))
        return _Sealed(data=b"".join(lines), offsets=tuple(offsets), chain=chain)

    def _write(self, sealed: list["_Sealed"], outcomes: list[Outcome]) -> None:
        """Write, keep whole batches only, sync; turn the outcome of every batch that is not durable into why."""
        data = b"".join(one.data for one in sealed)
        failure: StorageUnavailableError | None = None
        try:
            written = os.write(self._descriptor, data)
        except OSError as error:
            written, failure = 0, self._fail(error)
        kept = [one for one in sealed if one.offsets[-1].position <= self._position + written]
        end = kept[-1].offsets[-1].position if kept else self._position
        if written < len(data):
            failure = failure or unavailable(OSError(errno.ENOSPC, "the disk took only a part"), "cannot write")
            self._cut_back(end, self._position + written)
        if kept and self._ended is None:
            try:
                self._sync(self._descriptor)
            except OSError as error:
                failure = self._ended = ending(error, "the disk did not confirm what was written")
                kept = []
        if failure is not None:
            durable = {one.offsets for one in kept}
            outcomes[:] = [failure if isinstance(it, tuple) and it not in durable else it for it in outcomes]
        if kept:
            self._position, self._chain = end, kept[-1].chain
            self._last = kept[-1].offsets[-1]
            self._seq = self._last.seq
            self._publish()

    def _cut_back(self, end: int, reached: int) -> None:
        if reached == end:
            return
        try:
            os.ftruncate(self._descriptor, end)
        except OSError as error:
            self._ended = ending(error, "a half-written line could not be taken back")

    def _fail(self, error: OSError) -> StorageUnavailableError:
        what = f"cannot write the journal {str(self._folder)!r}"
        if error.errno in PASSING:
            return unavailable(error, what)
        self._ended = ending(error, what)
        return self._ended

    def _publish(self) -> None:
        # One assignment, so that a reading thread sees both numbers of one moment.
        self.limit = Limit(self._segment, self._position)


class _Sealed(msgspec.Struct, frozen=True):
    data: bytes
    offsets: tuple[Offset, ...]
    chain: str
