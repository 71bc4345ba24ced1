"""Journals on disk for tests: opened, filled, damaged."""

import asyncio
import tempfile
import zlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from rune.host.ids import IdSource
from rune.records.events import Event
from rune.store import codec
from rune.store.durable_store import DurableEventStore
from rune.store.evidence_store import EvidenceStore
from tests.fakes.clock import CountedClock
from tests.fakes.ids import CountedIds
from tests.store.samples import DEVICE, ended

FIRST = "w000-000001.jsonl"


def memory_folder() -> Path:
    """Return a new folder on a file system in memory where there is one: thousands of syncs cost nothing there."""
    memory = Path("/dev/shm")  # noqa: S108 a fresh folder of our own in it
    return Path(tempfile.mkdtemp(prefix="rune-test-", dir=memory if memory.is_dir() else None))


def no_sync(_: int) -> None:
    """Stand in for fdatasync where a test does not cut the power."""


def open_now(home: Path, *, ids: IdSource | None = None, **options: Any) -> DurableEventStore:
    """Open the journal of a home, blocking."""
    clock = options.pop("clock", None) or CountedClock()
    evidence = options.pop("evidence", None) or EvidenceStore(home / "evidence", clock)
    options.setdefault("sync", no_sync)
    return DurableEventStore.open(
        home / "journal", clock=clock, ids=ids or CountedIds(), device_id=DEVICE, evidence=evidence, **options
    )


@asynccontextmanager
async def opened(home: Path, **options: Any) -> AsyncGenerator[DurableEventStore]:
    """Open the journal of a home and close it at the end."""
    store = await asyncio.to_thread(open_now, home, **options)
    try:
        yield store
    finally:
        await store.close()


async def fill(home: Path, ids: CountedIds, batches: Sequence[int], **options: Any) -> list[Event]:
    """Append batches of these sizes and close; returns the events."""
    events: list[Event] = []
    async with opened(home, ids=ids, **options) as store:
        for size in batches:
            batch = [ended(ids) for _ in range(size)]
            await store.append_many(batch)
            events += batch
    return events


def stored_ids(store: DurableEventStore) -> list[str]:
    """Return the ids of all events but the store's own notes of repairs."""
    return [envelope.event_id for _, envelope in store.replay() if envelope.event_type != "journal.repaired"]


def event_ids(events: Sequence[Event]) -> list[str]:
    """Return the ids of events."""
    return [event.event_id for event in events]


def segment(home: Path, name: str = FIRST) -> Path:
    """Return the path of a segment."""
    return home / "journal" / name


def lines_of(path: Path) -> list[bytes]:
    """Return the lines of a segment, each with its newline."""
    return path.read_bytes().splitlines(keepends=True)


def resealed(line: bytes, **changes: Any) -> bytes:
    """Return a line with other head fields and a right checksum: what a careful forger would write."""
    envelope = codec.parse(line.rstrip(b"\n")).envelope
    fields = {name: getattr(envelope, name) for name in envelope.__struct_fields__ if name not in {"crc", "body"}}
    head = codec.canon(fields | changes)[:-1]
    return b'%b,"crc":"%08x","body":%b}\n' % (head, zlib.crc32(head), bytes(envelope.body))


def forged(line: bytes, old: bytes, new: bytes) -> bytes:
    """Return the line changed, with the checksum of the changed head: no damage, but something that was written so."""
    head, mark, rest = line.replace(old, new, 1).partition(b',"crc":"')
    return head + mark + b"%08x" % zlib.crc32(head) + rest[8:]


def of_a_later_format(segment: bytes, version: int = 7) -> bytes:
    """Return a segment whose header says that a later Rune wrote it."""
    header, newline, rest = segment.partition(b"\n")
    return forged(header, b'"format":1', b'"format":%d' % version) + newline + rest
