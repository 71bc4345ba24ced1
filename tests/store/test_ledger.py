"""Durable first, then projected; places without gaps."""

import asyncio
from pathlib import Path

import pytest

from rune.errors import IdentityCollisionError, StorageUnavailableError
from rune.records.events import Event, JournalForked
from rune.store.event_index import last_pseq
from rune.store.event_store import EventStore
from rune.store.ledger import Draft, once
from tests.fakes.ids import CountedIds
from tests.store.builders import CONVERSATION, a_conversation, a_message, an_id
from tests.store.drafts import ended, said
from tests.store.spine import Faulty, Unhurried, Unreadable, a_memory_store, a_spine, an_event


def places(store: EventStore, conversation_id: str = CONVERSATION) -> list[int]:
    return [envelope.pseq for _, envelope in store.read({}) if envelope.partition_key == conversation_id]


async def test_an_emitted_fact_is_stored_and_seen(views: Path) -> None:
    async with a_spine(views) as spine:
        await spine.ledger.adopt(CONVERSATION)
        event = await spine.ledger.emit(said(1))
        assert (event.pseq, event.timestamp, event.actor_id) == (1, "2026-11-30T14:00:00.000Z", "owner")
        [(_, envelope)] = spine.store.replay()
        assert (envelope.event_id, envelope.pseq, envelope.timestamp) == (event.event_id, 1, event.timestamp)
        assert await spine.conversations.messages(CONVERSATION) == [a_message(1)]


async def test_a_batch_is_one_write_with_places_in_its_order(views: Path) -> None:
    async with a_spine(views) as spine:
        other = an_id("cnv", 2)
        await spine.ledger.adopt(CONVERSATION)
        await spine.ledger.adopt(other)
        batch = await spine.ledger.emit_many([said(1), said(2, other), ended(1), said(3), said(4, other)])
        assert [event.pseq for event in batch] == [1, 1, 0, 2, 2]
        assert [envelope.more for _, envelope in spine.store.replay()] == [4, 3, 2, 1, 0]
        assert await spine.ledger.emit_many([]) == ()


async def test_a_conversation_that_is_not_adopted_cannot_be_written(views: Path) -> None:
    async with a_spine(views) as spine:
        with pytest.raises(RuntimeError, match="not adopted"):
            await spine.ledger.emit(said(1))
        await spine.ledger.adopt(CONVERSATION)
        await spine.ledger.emit(said(1))
        await spine.ledger.release(CONVERSATION)
        await spine.ledger.release(CONVERSATION)
        with pytest.raises(RuntimeError, match="not adopted"):
            await spine.ledger.emit_many([ended(1), said(2)])
        assert places(spine.store) == [1]
        assert len(list(spine.store.replay())) == 1


async def test_what_waits_while_a_conversation_is_released_is_refused(views: Path) -> None:
    store = Faulty(a_memory_store())
    async with a_spine(views, store) as spine:
        await spine.ledger.adopt(CONVERSATION)
        store.gate.clear()
        written = asyncio.create_task(spine.ledger.emit(said(1)))
        await store.entered.wait()
        released = asyncio.create_task(spine.ledger.release(CONVERSATION))
        await asyncio.sleep(0)
        late = asyncio.create_task(spine.ledger.emit(said(2)))
        await asyncio.sleep(0)
        store.gate.set()
        assert (await written).pseq == 1
        await released
        with pytest.raises(RuntimeError, match="not adopted"):
            await late
        assert places(store) == [1]


async def test_a_name_or_body_outside_the_registry_is_refused_before_a_place_is_given(views: Path) -> None:
    async with a_spine(views) as spine:
        await spine.ledger.adopt(CONVERSATION)
        wrong = (
            Draft(event_type="no.such", body=a_message(1), partition=CONVERSATION),
            Draft(event_type="user.message", body=a_conversation(), partition=CONVERSATION),
            Draft(event_type="user.message", body=a_message(1), partition="system"),
            Draft(event_type="command.run", body=a_message(1), partition=CONVERSATION),
        )
        for draft in wrong:
            with pytest.raises(ValueError, match=r"."):
                await spine.ledger.emit_many([said(1), draft])
        assert (await spine.ledger.emit(said(1))).pseq == 1


async def test_a_new_holder_goes_on_after_the_last_place(views: Path) -> None:
    store = a_memory_store()
    await store.append(an_event("x", "user.message", a_message("x"), CONVERSATION, 7))
    async with a_spine(views, store) as spine:
        await spine.ledger.adopt(CONVERSATION)
        assert (await spine.ledger.emit(said(1))).pseq == 8
        await spine.ledger.adopt(CONVERSATION)  # twice changes nothing
        assert (await spine.ledger.emit(said(2))).pseq == 9
        await spine.ledger.release(CONVERSATION)
        await spine.ledger.adopt(CONVERSATION)
        assert (await spine.ledger.emit(said(3))).pseq == 10


async def test_many_tasks_in_few_conversations_leave_no_gap_and_keep_their_order(views: Path) -> None:
    async with a_spine(views, Unhurried(a_memory_store())) as spine:
        conversations = [an_id("cnv", number) for number in (1, 2, 3)]
        for conversation in conversations:
            await spine.ledger.adopt(conversation)

        async def speak(task: int) -> list[Event]:
            mine: list[Event] = []
            for step in range(4):
                conversation = conversations[(task + step) % 3]
                mine += await spine.ledger.emit_many([said(f"{task}x{step}", conversation), ended(task)])
            return mine

        spoken = await asyncio.gather(*(speak(task) for task in range(50)))
        for conversation in conversations:
            given = places(spine.store, conversation)
            assert given == list(range(1, len(given) + 1))
            assert await spine.engine.query(lambda db, key=conversation: last_pseq(db, key)) == len(given)
            for mine in spoken:
                own = [event.pseq for event in mine if event.partition_key == conversation]
                assert own == sorted(own)
        assert spine.reports.ledger == []


async def test_batches_across_conversations_in_any_order_do_not_wait_for_each_other(views: Path) -> None:
    async with a_spine(views, Unhurried(a_memory_store())) as spine:
        first, second = an_id("cnv", 1), an_id("cnv", 2)
        await spine.ledger.adopt(first)
        await spine.ledger.adopt(second)
        batches = [
            [said(f"a{n}", first), said(f"b{n}", second)] if n % 2 else [said(f"b{n}", second), said(f"a{n}", first)]
            for n in range(30)
        ]
        async with asyncio.timeout(20):
            await asyncio.gather(*(spine.ledger.emit_many(batch) for batch in batches))
        assert places(spine.store, first) == places(spine.store, second) == list(range(1, 31))


async def test_a_failed_append_gives_its_place_back(views: Path) -> None:
    store = Faulty(a_memory_store())
    async with a_spine(views, store) as spine:
        await spine.ledger.adopt(CONVERSATION)
        await spine.ledger.emit(said(1))
        store.failures.append(StorageUnavailableError("disk full"))
        with pytest.raises(StorageUnavailableError):
            await spine.ledger.emit_many([said(2), said(3)])
        assert (await spine.ledger.emit(said(4))).pseq == 2


async def test_cancelling_the_caller_cancels_neither_the_write_nor_the_count(views: Path) -> None:
    """At every await of an emit: the caller is cancelled after 0, 1, 2 ... steps of the loop."""
    async with a_spine(views, Unhurried(a_memory_store())) as spine:
        await spine.ledger.adopt(CONVERSATION)
        cancelled = 0
        for steps in range(40):
            task = asyncio.create_task(spine.ledger.emit(said(f"a{steps}", event_id=once(an_id("msg", f"a{steps}")))))
            for _ in range(steps):
                await asyncio.sleep(0)
            cancelled += task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await spine.ledger.emit(said(f"b{steps}"))
        given = places(spine.store)
        assert given == list(range(1, len(given) + 1))
        # Cancelled before it began (step 0), nothing was accepted; from then on everything is stored.
        assert len(given) == 79
        assert cancelled > 2


async def test_a_second_cancel_while_the_write_runs_does_not_reach_it(views: Path) -> None:
    store = Faulty(a_memory_store())
    async with a_spine(views, store) as spine:
        await spine.ledger.adopt(CONVERSATION)
        store.gate.clear()
        task = asyncio.create_task(spine.ledger.emit(said(1)))
        await store.entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        task.cancel()
        waiting = asyncio.create_task(spine.ledger.emit(said(2)))
        await asyncio.sleep(0)
        store.gate.set()
        assert (await waiting).pseq == 2
        assert places(store) == [1, 2]


async def test_a_write_that_fails_after_its_caller_left_is_reported(views: Path) -> None:
    store = Faulty(a_memory_store())
    async with a_spine(views, store) as spine:
        store.gate.clear()
        store.failures.append(StorageUnavailableError("disk full"))
        task = asyncio.create_task(spine.ledger.emit(ended(1)))
        await store.entered.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        store.gate.set()
        await spine.ledger.close()
        assert [(name, str(error)) for name, error in spine.reports.ledger] == [("journal", "disk full")]


async def test_a_fact_with_an_id_is_stored_once_whenever_it_is_emitted(views: Path) -> None:
    store, ids = a_memory_store(), CountedIds()
    async with a_spine(views, store, ids=ids) as spine:
        await spine.ledger.adopt(CONVERSATION)
        first = await spine.ledger.emit(said(1, event_id=an_id("evt", "k1")))
        spine.clock.advance(5)
        assert await spine.ledger.emit(said(1, event_id=an_id("evt", "k1"))) == first
        batch = await spine.ledger.emit_many(
            [
                said(2),
                said(1, event_id=an_id("evt", "k1")),
                said(3, event_id=an_id("evt", "k3")),
                said(3, event_id=an_id("evt", "k3")),
            ]
        )
        assert [event.pseq for event in batch] == [2, 1, 3, 3]
        at_once = await asyncio.gather(*(spine.ledger.emit(ended(9, event_id=an_id("evt", "k9"))) for _ in range(5)))
        assert len(set(map(repr, at_once))) == 1
    async with a_spine(views, store, ids=ids) as spine:
        spine.clock.advance(3600)
        await spine.ledger.adopt(CONVERSATION)
        assert await spine.ledger.emit(said(1, event_id=an_id("evt", "k1"))) == first
        for other in (said(2, event_id=an_id("evt", "k1")), ended(1, event_id=an_id("evt", "k1"))):
            with pytest.raises(IdentityCollisionError):
                await spine.ledger.emit(other)
        with pytest.raises(IdentityCollisionError):
            await spine.ledger.emit_many([said(5, event_id=an_id("evt", "k5")), said(6, event_id=an_id("evt", "k5"))])
        assert (await spine.ledger.emit(said(7))).pseq == 4
    assert places(store) == [1, 2, 3, 4]


async def test_a_fact_that_is_durable_counts_even_if_the_views_fail(views: Path) -> None:
    store = Unreadable(a_memory_store())
    async with a_spine(views, store) as spine:
        await spine.ledger.adopt(CONVERSATION)
        store.unreadable = True
        event = await spine.ledger.emit(said(1, event_id=an_id("evt", "k1")))
        assert [name for name, _ in spine.reports.ledger] == ["views"]
        assert places(store.whole) == [1]
        # Known although no view tells of it: not stored twice, and the count goes on.
        assert await spine.ledger.emit(said(1, event_id=an_id("evt", "k1"))) == event
        assert (await spine.ledger.emit(said(2))).pseq == 2
        assert [name for name, _ in spine.reports.ledger] == ["views"]

        store.unreadable = False
        assert (await spine.ledger.emit(said(3))).pseq == 3
        assert len(await spine.conversations.messages(CONVERSATION)) == 3


async def test_a_place_given_twice_is_recorded_once(views: Path) -> None:
    store = a_memory_store()
    for number in ("x", "y"):
        await store.append(an_event(number, "user.message", a_message(number), CONVERSATION, 1))
    async with a_spine(views, store) as spine:
        for number in range(3):
            await spine.ledger.emit(ended(number))
        await spine.ledger.flush()
        await spine.ledger.emit(ended(4))
        await spine.ledger.flush()
        recorded = [envelope for _, envelope in store.replay(types={"journal.forked"})]
        assert len(recorded) == 1
        step = spine.engine.find(recorded[0].event_id)
        assert step is not None
        assert step[2] == JournalForked(
            conversation_id=CONVERSATION, pseq=1, event_ids=(an_id("evt", "x"), an_id("evt", "y"))
        )
        await spine.ledger.adopt(CONVERSATION)
        assert (await spine.ledger.emit(said(5))).pseq == 2
