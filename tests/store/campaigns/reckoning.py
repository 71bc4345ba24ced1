"""The reckoning of a campaign: what a journal holds against what was acknowledged."""

import asyncio
from collections.abc import Collection, Iterable
from pathlib import Path

from rune.errors import RuneError
from rune.host.clock import SystemClock
from rune.host.ids import UlidSource
from rune.records.envelope import EventEnvelope
from rune.store.codec import content_of, decode_body, prepare, verify_body
from rune.store.durable_store import DurableEventStore
from rune.store.evidence_store import Evidence, EvidenceStore
from rune.store.identity import Lookup
from rune.store.journal import Sync
from rune.store.order import Located
from tests.store.campaigns.batches import Key, batch_of, named
from tests.store.journals import no_sync
from tests.store.samples import DEVICE

REPAIR = "journal.repaired"


class Reckoning:
    """Counts what was read, batch by batch; `faults` says what is wrong, in words."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._open: tuple[Key, int] | None = None
        self.whole: set[Key] = set()
        self.repairs = 0
        self.faults: list[str] = []

    def take(self, events: Iterable[Located], evidence: Evidence) -> None:
        """Read events in the order of their slot; all of them verified, their bodies too."""
        for _, envelope in events:
            if envelope.event_type == REPAIR:
                self._expect(self._open is None, f"a repair within the batch {self._open}")
                decode_body(envelope, evidence)
                self.repairs += 1
            else:
                self._take(envelope, evidence)

    def close(self, acknowledged: Collection[Key]) -> list[str]:
        """Compare with what was acknowledged and return all that is wrong."""
        self._expect(self._open is None, f"half of the batch {self._open}")
        lost = sorted(set(acknowledged) - self.whole)
        self._expect(not lost, f"lost: {lost[:5]} and {max(0, len(lost) - 5)} more")
        return self.faults

    def _take(self, envelope: EventEnvelope, evidence: Evidence) -> None:
        key, index, size = named(envelope.event_id)
        expected = self._open or (key, 0)
        self._expect((key, index) == expected, f"{key} line {index} where {expected} was due")
        self._expect(key not in self.whole, f"doubled: {key}")
        wanted = prepare(batch_of(self._seed, key)[index])
        self._expect(content_of(envelope) == wanted.content, f"{key} line {index} has another content")
        verify_body(envelope, evidence)
        self._open = (key, index + 1) if index + 1 < size else None
        if self._open is None:
            self.whole.add(key)

    def _expect(self, condition: bool, fault: str) -> None:
        if not condition:
            self.faults.append(fault)


def open_home(
    home: Path,
    *,
    read_only: bool = False,
    sync: Sync = no_sync,
    segment_bytes: int = 4096,
    lookup: Lookup | None = None,
) -> tuple[DurableEventStore, EvidenceStore]:
    """Open the journal and the evidence of a home, with the machine's own clock; segments are short."""
    clock = SystemClock()
    evidence = EvidenceStore(home / "evidence", clock)
    store = DurableEventStore.open(
        home / "journal",
        clock=clock,
        ids=UlidSource(clock),
        device_id=DEVICE,
        evidence=evidence,
        lookup=lookup,
        read_only=read_only,
        sync=sync,
        segment_bytes=segment_bytes,
    )
    return store, evidence


def reckoned(home: Path, seed: int, acknowledged: Collection[Key]) -> Reckoning:
    """Open a home for writing, as the next start does, read all of it, write to it, and close it again."""
    reckoning = Reckoning(seed)

    async def reopen() -> None:
        store, evidence = open_home(home)
        try:
            if store.writer != "w000":
                reckoning.faults.append(f"its slot is not free: {store.writer}")
            await store.append_many(batch_of(seed, _AFTERWARDS))
            reckoning.take(store.read({}), evidence)
        finally:
            await store.close()

    try:
        asyncio.run(reopen())
    except (RuneError, OSError, ValueError, AssertionError) as error:
        reckoning.faults.append(f"it does not open again: {error!r}")
    reckoning.close({*acknowledged, _AFTERWARDS})
    return reckoning


# The batch that whoever opens a home last writes to see that it can be written.
_AFTERWARDS = Key(99_999_999, 0)
