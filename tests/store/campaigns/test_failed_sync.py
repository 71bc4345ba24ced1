"""A sync fails once: nothing is acknowledged any more, whatever the disk says later, until the journal is read back."""

import asyncio
import errno
import os
from pathlib import Path

import pytest

from rune.errors import StorageUnavailableError
from rune.store.ledger import Ledger
from tests.fakes.clock import CountedClock
from tests.fakes.ids import CountedIds
from tests.store.builders import CONVERSATION
from tests.store.campaigns.batches import Key, batch_of
from tests.store.campaigns.reckoning import open_home, reckoned
from tests.store.drafts import said
from tests.store.journals import open_now
from tests.store.spine import Reports, hashes, open_views

CALLERS = 30


class FailsOnce:
    """A sync that fails the `when`-th time and never again: what a disk does whose cache gave up."""

    def __init__(self, when: int) -> None:
        self._left = when

    @property
    def failed(self) -> bool:
        return self._left <= 0

    def __call__(self, _: int) -> None:
        self._left -= 1
        if self._left == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.mark.parametrize("when", range(1, 16), ids=str)
async def test_after_a_failed_sync_no_waiting_caller_is_told_that_it_is_stored(
    when: int, memory_home: Path, seed: int
) -> None:
    disk = FailsOnce(when)
    store, _ = open_home(memory_home, sync=disk)
    acknowledged: set[Key] = set()
    after_the_failure: list[Key] = []

    async def call(caller: int) -> None:
        for number in range(4):
            key = Key(caller, number)
            late = disk.failed
            try:
                await store.append_many(batch_of(seed, key))
            except StorageUnavailableError:
                continue
            acknowledged.add(key)
            after_the_failure.extend([key] if late else [])

    # One at a time first, so that the failure also comes where nobody else waits; then all at once.
    for caller in range(3):
        await call(caller)
    await asyncio.gather(*(call(caller) for caller in range(3, CALLERS)))
    await store.close()
    assert disk.failed
    assert after_the_failure == []
    assert len(acknowledged) < CALLERS * 4
    reckoning = await asyncio.to_thread(reckoned, memory_home, seed, acknowledged)
    assert reckoning.faults == []


@pytest.mark.parametrize("when", [1, 3, 5], ids=str)
async def test_a_place_in_a_conversation_is_given_once_though_the_sync_of_its_line_failed(
    when: int, memory_home: Path
) -> None:
    ids, refused = CountedIds(), 0
    for disk in (FailsOnce(when), FailsOnce(1000)):
        reports = Reports()
        store = open_now(memory_home, ids=ids, sync=disk)
        engine = open_views(memory_home / "views-1.db", store, reports=reports)
        ledger = Ledger(store, engine, CountedClock(), ids, report=reports.of_ledger)
        await ledger.adopt(CONVERSATION)
        for number in range(6):
            try:
                await ledger.emit(said(f"{when}{number}{int(disk.failed)}{refused}"))
            except StorageUnavailableError:
                refused += 1
        await ledger.close()
        engine.close()
        await store.close()
    assert refused > 0
    store = open_now(memory_home, read_only=True)
    places = [envelope.pseq for _, envelope in store.replay(CONVERSATION) if envelope.pseq]
    assert places == list(range(1, len(places) + 1))
    engine = open_views(memory_home / "views-1.db", store)
    assert engine.catch_up().forks == ()
    before = hashes(engine)
    engine.rebuild()
    assert hashes(engine) == before
    engine.close()
