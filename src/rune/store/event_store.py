"""The port to the journal. Append-only: there is no update and no delete."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

import msgspec

from rune.records.envelope import EventEnvelope
from rune.records.events import Event


class Offset(msgspec.Struct, frozen=True, order=True):
    """A place in one slot: the event with number `seq` of `writer`. `segment` and `position` (the byte
    behind its line) say where to read on; both are 0 in a store without files.
    """

    writer: str
    seq: int
    segment: int
    position: int


# How far a reader has come, by writer. A missing writer means: from its beginning.
Cursor = Mapping[str, Offset]


class EventStore(Protocol):
    """Durable (or, for private conversations, in-memory) storage of events."""

    async def append(self, event: Event) -> Offset:
        """Store one event; returns when it is durable. The same id with the same content returns the
        first offset. Raises ValueError (not registered), IdentityCollisionError, UnstorableValueError,
        StorageUnavailableError. Cancelling the caller does not cancel the write.
        """
        ...

    async def append_many(self, events: Sequence[Event]) -> tuple[Offset, ...]:
        """Store several at once: all of them or none, in one write and one sync."""
        ...

    def read(self, after: Cursor, *, seen: Cursor | None = None) -> Iterator[tuple[Offset, EventEnvelope]]:
        """Iterate over what came after the cursor, each slot in its order.

        What this process wrote is given once it is durable. Another one may have read it earlier, from the
        file: up to the places in `seen` it is given at once. Raises CorruptJournalError, and
        JournalMovedError when a place in a cursor is not there any more.
        """
        ...

    def replay(
        self, partition: str | None = None, types: Collection[str] | None = None
    ) -> Iterator[tuple[Offset, EventEnvelope]]:
        """Iterate over everything in order (a conversation by pseq, else by hlc, writer, seq)."""
        ...

    def head(self) -> Cursor:
        """Return the offset of the last event of each slot."""
        ...

    async def close(self) -> None:
        """Finish what was accepted and let go of the slot; may be called twice."""
        ...
