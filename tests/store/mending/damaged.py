"""Damaged journals for tests, and mending them."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from rune.host.ids import IdSource
from rune.records.envelope import EventEnvelope
from rune.records.events import Event
from rune.store.evidence_store import EvidenceStore
from rune.store.mending.quarantine import Damage, Quarantined, find_damage, quarantine
from tests.fakes.clock import CountedClock
from tests.fakes.ids import CountedIds
from tests.store.journals import FIRST, fill, lines_of, no_sync, open_now, segment
from tests.store.samples import DEVICE

SECOND, THIRD = "w000-000002.jsonl", "w000-000003.jsonl"
# Six batches in three segments: 1 and 3 events, 2 and 1, 1 and 2.
BATCHES = (1, 3, 2, 1, 1, 2)


def evidence_of(home: Path) -> EvidenceStore:
    return EvidenceStore(home / "evidence", CountedClock())


def damage_of(home: Path) -> tuple[Damage, ...]:
    return find_damage(home / "journal", evidence_of(home))


async def mend(home: Path, ids: IdSource, step: Callable[[str], None] = lambda _: None) -> tuple[Quarantined, ...]:
    return await asyncio.to_thread(
        quarantine,
        home / "journal",
        evidence=evidence_of(home),
        clock=CountedClock(),
        ids=ids,
        device_id=DEVICE,
        sync=no_sync,
        step=step,
    )


async def three_segments(home: Path, ids: CountedIds) -> list[Event]:
    found = await fill(home, ids, BATCHES, segment_bytes=1500)
    assert [len(lines_of(segment(home, name))) for name in (FIRST, SECOND, THIRD)] == [5, 4, 4]
    return found


def files(home: Path) -> dict[str, bytes]:
    """Return what the journal's folder holds, but for the notes in lock files."""
    return {path.name: path.read_bytes() for path in (home / "journal").iterdir() if path.suffix != ".lock"}


def envelopes(home: Path) -> dict[str, EventEnvelope]:
    found = [envelope for _, envelope in open_now(home, read_only=True).replay()]
    by_id = {envelope.event_id: envelope for envelope in found}
    assert len(by_id) == len(found), "an event is there twice"
    return by_id


def edited(name: str, change: Callable[[list[bytes]], list[bytes]]) -> Callable[[Path], None]:
    def edit(home: Path) -> None:
        segment(home, name).write_bytes(b"".join(change(lines_of(segment(home, name)))))

    return edit


def spoilt(line: bytes) -> bytes:
    return line.replace(b'"rune"', b'"ruin"')
