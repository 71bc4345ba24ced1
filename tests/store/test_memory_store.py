from collections.abc import AsyncIterator

import pytest

from rune.store.event_store import EventStore
from rune.store.evidence_store import Evidence
from rune.store.identity import Lookup
from rune.store.memory_store import MemoryEventStore
from tests.fakes.clock import CountedClock
from tests.store.event_store_contract import EventStoreContract, Open
from tests.store.samples import DEVICE


class TestMemoryEventStore(EventStoreContract):
    @pytest.fixture
    async def open_store(self, clock: CountedClock) -> AsyncIterator[Open]:
        async def open_it(lookup: Lookup | None = None) -> tuple[EventStore, Evidence]:
            store = MemoryEventStore(clock, device_id=DEVICE, lookup=lookup)
            return store, store.evidence

        yield open_it
