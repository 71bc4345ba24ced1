import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rune.store.durable_store import DurableEventStore
from rune.store.event_store import EventStore
from rune.store.evidence_store import Evidence, EvidenceStore
from rune.store.identity import Lookup
from rune.store.journal import SEGMENT_BYTES
from tests.fakes.clock import CountedClock
from tests.fakes.ids import CountedIds
from tests.store.event_store_contract import EventStoreContract, Open
from tests.store.samples import DEVICE


class TestDurableEventStore(EventStoreContract):
    segment_bytes = SEGMENT_BYTES

    @pytest.fixture
    async def open_store(self, clock: CountedClock, ids: CountedIds, tmp_path: Path) -> AsyncIterator[Open]:
        opened: list[DurableEventStore] = []

        async def open_it(lookup: Lookup | None = None) -> tuple[EventStore, Evidence]:
            evidence = EvidenceStore(tmp_path / "evidence", clock)
            store = await asyncio.to_thread(
                DurableEventStore.open,
                tmp_path / "journal",
                clock=clock,
                ids=ids,
                device_id=DEVICE,
                evidence=evidence,
                lookup=lookup,
                segment_bytes=self.segment_bytes,
            )
            opened.append(store)
            return store, evidence

        yield open_it
        for store in opened:
            await store.close()


class TestDurableEventStoreInSmallSegments(TestDurableEventStore):
    """The same when every write begins a new segment."""

    segment_bytes = 1
