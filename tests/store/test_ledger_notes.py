"""Notes that are offered to the ledger hold nobody up."""

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from rune.errors import StorageUnavailableError
from rune.records.events import BackgroundFailed, Event
from rune.store.event_store import Offset
from rune.store.ledger import Ledger
from rune.store.memory_store import MemoryEventStore
from tests.store.builders import CONVERSATION, a_message
from tests.store.drafts import ended
from tests.store.spine import AnotherStore, Faulty, Unreadable, a_memory_store, a_spine


def note(number: int) -> BackgroundFailed:
    return BackgroundFailed(subsystem="reports", error="OSError", message=str(number), context="")


class Counting(AnotherStore):
    """Tells when twenty events were stored."""

    def __init__(self, whole: MemoryEventStore) -> None:
        super().__init__(whole)
        self.all_written = asyncio.Event()

    async def append_many(self, events: Sequence[Event]) -> tuple[Offset, ...]:
        offsets = await super().append_many(events)
        if offsets[-1].seq == 20:
            self.all_written.set()
        return offsets


async def test_what_is_offered_is_written_in_the_background(views: Path) -> None:
    store = Counting(a_memory_store())
    async with a_spine(views, store) as spine:
        spine.ledger.offer("background.failed", note(0), partition="system")
        await spine.ledger.start()
        await spine.ledger.start()
        threads = [
            threading.Thread(
                target=spine.ledger.offer, args=("background.failed", note(n)), kwargs={"partition": "system"}
            )
            for n in range(1, 20)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        async with asyncio.timeout(10):
            await store.all_written.wait()
        assert spine.ledger.dropped == 0


async def test_too_many_notes_push_out_the_oldest_and_are_counted(views: Path) -> None:
    async with a_spine(views, capacity=10) as spine:
        for number in range(25):
            spine.ledger.offer("background.failed", note(number), partition="system")
        assert spine.ledger.dropped == 15
        await spine.ledger.flush()
        bodies = [spine.engine.find(envelope.event_id) for _, envelope in spine.store.replay()]
        assert [step[2] for step in bodies if step] == [note(number) for number in range(15, 25)]


async def test_a_note_that_cannot_be_stored_takes_no_other_with_it(views: Path) -> None:
    async with a_spine(views) as spine:
        spine.ledger.offer("background.failed", note(1), partition="system")
        spine.ledger.offer("no.such", note(2), partition="system")
        spine.ledger.offer("user.message", a_message(1), partition=CONVERSATION)
        spine.ledger.offer("background.failed", note(3), partition="system")
        await spine.ledger.flush()
        assert len(list(spine.store.replay())) == 2
        assert spine.ledger.dropped == 2
        # Of several in a row the first is reported.
        assert [type(error) for _, error in spine.reports.ledger] == [ValueError]


async def test_a_note_about_a_failing_journal_does_not_go_round_in_circles(views: Path) -> None:
    store = Faulty(a_memory_store())
    async with a_spine(views, store) as spine:
        reported: list[str] = []

        def report_and_note(subsystem: str, error: Exception) -> None:
            reported.append(f"{subsystem}: {error}")
            ledger.offer("background.failed", note(99), partition="system")

        ledger = Ledger(store, spine.engine, spine.clock, spine.ids, report=report_and_note)
        store.failures.extend(StorageUnavailableError("disk full") for _ in range(3))
        ledger.offer("background.failed", note(1), partition="system")
        await ledger.flush()
        assert reported == ["journal: disk full"]
        assert ledger.dropped == 2
        ledger.offer("background.failed", note(2), partition="system")
        await ledger.flush()
        store.failures.clear()
        ledger.offer("background.failed", note(3), partition="system")
        await ledger.flush()
        assert (len(list(store.replay())), ledger.dropped) == (1, 3)
        await ledger.close()


async def test_a_note_about_failing_views_does_not_go_round_in_circles(views: Path) -> None:
    store = Unreadable(a_memory_store())
    async with a_spine(views, store) as spine:
        reported: list[str] = []

        def report_and_note(subsystem: str, _: Exception) -> None:
            reported.append(subsystem)
            if len(reported) < 50:
                ledger.offer("background.failed", note(99), partition="system")

        ledger = Ledger(store, spine.engine, spine.clock, spine.ids, report=report_and_note)
        for unreadable, times in ((True, 1), (True, 1), (False, 1), (True, 2)):
            store.unreadable = unreadable
            ledger.offer("background.failed", note(1), partition="system")
            await ledger.flush()
            assert reported == ["views"] * times
        await ledger.close()


async def test_closing_writes_what_was_offered_and_waits_for_what_runs(views: Path) -> None:
    store = Faulty(a_memory_store())
    async with a_spine(views, store) as spine:
        await spine.ledger.start()
        store.gate.clear()
        running = asyncio.create_task(spine.ledger.emit(ended(1)))
        await store.entered.wait()
        spine.ledger.offer("background.failed", note(1), partition="system")
        closing = asyncio.create_task(spine.ledger.close())
        await asyncio.sleep(0)
        store.gate.set()
        await closing
        assert running.done()
        assert len(list(store.replay())) == 2
        spine.ledger.offer("background.failed", note(2), partition="system")  # late, and never an error


async def test_of_appends_that_fail_in_a_row_the_first_is_reported_and_the_next_that_works(views: Path) -> None:
    store = Faulty(a_memory_store())
    async with a_spine(views, store) as spine:
        told: list[str] = []
        ledger = Ledger(
            store,
            spine.engine,
            spine.clock,
            spine.ids,
            report=lambda subsystem, error: told.append(f"{subsystem}: {error}"),
            works=lambda subsystem: told.append(f"{subsystem} works"),
        )
        store.failures.extend(StorageUnavailableError("disk full") for _ in range(2))
        for number in (1, 2):
            with pytest.raises(StorageUnavailableError):
                await ledger.emit(ended(number))
        assert told == ["journal: disk full"]
        await ledger.emit(ended(3))
        assert told == ["journal: disk full", "journal works"]
        await ledger.close()
