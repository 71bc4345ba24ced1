"""What every EventStore promises. A test class inherits this and gives `open_store`."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
import pytest

from rune.errors import IdentityCollisionError, StorageUnavailableError, UnstorableValueError
from rune.records.events import Event
from rune.records.tools import PreparedCall, ToolCall
from rune.store.codec import MAX_INLINE_BYTES, content_of, decode_body, parse
from rune.store.event_store import EventStore, Offset
from rune.store.evidence_store import Evidence
from rune.store.identity import Lookup, StoredIdentity
from tests.fakes.clock import CountedClock
from tests.fakes.ids import CountedIds
from tests.store.samples import CONVERSATION, MOMENT, TURN, ended, message, one_of_each, said

OTHER = "cnv_01kb9y3c7m000000000000000z"

# Opens a store and returns it with its evidence; every call goes on with the same journal where there is one.
Open = Callable[..., Awaitable[tuple[EventStore, Evidence]]]


class EventStoreContract:
    """Every test opens its store through `open_store(lookup=None)`."""

    @pytest.fixture
    async def open_store(self) -> AsyncIterator[Open]:
        raise NotImplementedError
        yield

    @pytest.fixture
    def clock(self) -> CountedClock:
        return CountedClock()

    @pytest.fixture
    def ids(self) -> CountedIds:
        return CountedIds()

    async def test_every_kind_of_event_reads_back_equal(self, open_store: Open, ids: CountedIds) -> None:
        store, evidence = await open_store()
        events = one_of_each(ids)
        offsets = [await store.append(event) for event in events]
        read = list(store.replay())
        assert [offset for offset, _ in read] == offsets
        for event, (_, envelope) in zip(events, read, strict=True):
            assert decode_body(envelope, evidence) == event.body
            for field in ("event_id", "event_type", "partition_key", "pseq", "parent_id", "actor_id", "authorization"):
                assert getattr(envelope, field) == getattr(event, field)

    async def test_seq_counts_from_one_and_hlc_grows_although_the_clock_steps_back(
        self, open_store: Open, ids: CountedIds, clock: CountedClock
    ) -> None:
        store, _ = await open_store()
        for _ in range(3):
            await store.append(ended(ids))
            clock.step(-3600)
        envelopes = [envelope for _, envelope in store.replay()]
        assert [envelope.seq for envelope in envelopes] == [1, 2, 3]
        assert [envelope.hlc - envelopes[0].hlc for envelope in envelopes] == [0, 1, 2]

    async def test_a_batch_is_stored_together_and_says_how_many_follow(self, open_store: Open, ids: CountedIds) -> None:
        store, _ = await open_store()
        offsets = await store.append_many([ended(ids) for _ in range(3)])
        assert [offset.seq for offset in offsets] == [1, 2, 3]
        assert [envelope.more for _, envelope in store.replay()] == [2, 1, 0]
        assert await store.append_many([]) == ()

    async def test_a_batch_with_one_bad_event_stores_none(self, open_store: Open, ids: CountedIds) -> None:
        store, _ = await open_store()
        with pytest.raises(UnstorableValueError):
            await store.append_many([ended(ids), said(ids, "broken \ud800 name"), ended(ids)])
        assert list(store.replay()) == []
        assert (await store.append(ended(ids))).seq == 1

    async def test_the_same_event_again_returns_its_first_offset(self, open_store: Open, ids: CountedIds) -> None:
        store, _ = await open_store()
        event = said(ids)
        first = await store.append(event)
        await store.append(ended(ids))
        assert await store.append(event) == first
        assert await store.append(msgspec.structs.replace(event, pseq=9)) == first
        twice = ended(ids)
        again, new, same = await store.append_many([event, twice, twice])
        assert (again, new) == (first, same)
        assert len(list(store.replay())) == 3

    @pytest.mark.parametrize(
        "change",
        [
            {"body": message("another text")},
            {"actor_id": "rune"},
            {"authorization": "owner"},
            {"parent_id": "evt_01kb9y3c7m0000000000000006"},
            {"timestamp": "2026-11-30T14:00:00.124Z"},
            {"partition_key": OTHER},
        ],
    )
    async def test_the_same_id_with_other_content_is_a_collision(
        self, open_store: Open, ids: CountedIds, change: dict[str, Any]
    ) -> None:
        store, _ = await open_store()
        event = said(ids)
        await store.append(event)
        with pytest.raises(IdentityCollisionError):
            await store.append(msgspec.structs.replace(event, **change))
        with pytest.raises(IdentityCollisionError):
            fresh = said(ids)
            await store.append_many([fresh, msgspec.structs.replace(fresh, actor_id="rune")])
        assert len(list(store.replay())) == 1

    async def test_an_id_that_only_the_lookup_knows_is_not_stored_again(
        self, open_store: Open, ids: CountedIds
    ) -> None:
        store, _ = await open_store()
        event = said(ids)
        first = await store.append(event)
        ((_, envelope),) = store.replay()
        known = {event.event_id: StoredIdentity(offset=first, content=content_of(envelope))}
        lookup: Lookup = known.get
        await store.close()
        reopened, _ = await open_store(lookup=lookup)
        before = len(list(reopened.replay()))
        assert await reopened.append(event) == first
        with pytest.raises(IdentityCollisionError):
            await reopened.append(msgspec.structs.replace(event, actor_id="rune"))
        assert len(list(reopened.replay())) == before

    async def test_an_event_that_is_not_registered_is_refused(self, open_store: Open, ids: CountedIds) -> None:
        store, _ = await open_store()
        for wrong in (
            {"event_type": "river.named"},
            {"event_type": "memory.created", "partition_key": "memory"},
            {"partition_key": "memory"},
            {"body": message("a body of another type")},
        ):
            with pytest.raises(ValueError):
                await store.append(msgspec.structs.replace(ended(ids), **wrong))
        assert list(store.replay()) == []

    @pytest.mark.parametrize(
        "arguments",
        [
            {"ratio": float("nan")},
            {"ratio": float("inf")},
            {"name": "caf\udce9"},
            {"pair": "\ud83d\ude00"},
            {"raw": b"bytes"},
            {"pair": (1, 2)},
            {1: "a key that is no text"},
            {"a": object()},
        ],
    )
    async def test_a_value_that_would_not_read_back_is_refused(
        self, open_store: Open, ids: CountedIds, arguments: dict[Any, Any]
    ) -> None:
        store, _ = await open_store()
        with pytest.raises(UnstorableValueError):
            await store.append(_intent(ids, arguments))
        assert list(store.replay()) == []

    async def test_numbers_beyond_64_bits_and_exact_floats_read_back(self, open_store: Open, ids: CountedIds) -> None:
        store, evidence = await open_store()
        event = _intent(ids, {"big": 2**80, "tiny": 5e-324, "third": 1 / 3, "minus": -0.0, "whole": 1.0})
        await store.append(event)
        ((_, envelope),) = store.replay()
        assert decode_body(envelope, evidence) == event.body

    async def test_a_nesting_bomb_is_refused(self, open_store: Open, ids: CountedIds) -> None:
        store, _ = await open_store()
        for depth in (150, 100_000):
            value: object = 1
            for _ in range(depth):
                value = [value]
            with pytest.raises(UnstorableValueError):
                await store.append(_intent(ids, {"deep": value}))

    async def test_a_long_body_goes_to_evidence(self, open_store: Open, ids: CountedIds) -> None:
        store, evidence = await open_store()
        long, short = said(ids, "r" * (MAX_INLINE_BYTES + 1)), said(ids, "r" * (MAX_INLINE_BYTES // 2))
        await store.append(long)
        await store.append(short)
        (_, first), (_, second) = store.replay()
        assert bytes(first.body) == b'{"evidence":"%b"}' % first.payload_hash.encode()
        assert evidence.has(first.payload_hash)
        assert b"evidence" not in bytes(second.body)
        assert decode_body(first, evidence) == long.body

    async def test_a_line_that_is_too_long_even_so_is_refused(self, open_store: Open, ids: CountedIds) -> None:
        store, _ = await open_store()
        with pytest.raises(UnstorableValueError):
            await store.append(msgspec.structs.replace(ended(ids), actor_id="tool:" + "x" * (1 << 20)))
        assert (await store.append(ended(ids))).seq == 1

    async def test_reading_goes_on_behind_a_cursor(self, open_store: Open, ids: CountedIds) -> None:
        store, _ = await open_store()
        offsets = list(await store.append_many([ended(ids) for _ in range(3)]))
        offsets.append(await store.append(ended(ids)))
        for count, offset in enumerate(offsets, start=1):
            assert [place for place, _ in store.read({offset.writer: offset})] == offsets[count:]
        assert [place for place, _ in store.read({})] == offsets
        assert list(store.read(store.head())) == []

    async def test_the_head_is_the_last_event(self, open_store: Open, ids: CountedIds) -> None:
        store, _ = await open_store()
        assert store.head() == {}
        offset = await store.append(ended(ids))
        assert store.head() == {offset.writer: offset}

    async def test_replay_keeps_to_a_partition_and_to_types(self, open_store: Open, ids: CountedIds) -> None:
        store, _ = await open_store()
        await store.append(said(ids, "second", pseq=2))
        await store.append(ended(ids))
        await store.append(said(ids, "first", pseq=1))
        await store.append(msgspec.structs.replace(said(ids), partition_key=OTHER))
        assert [envelope.pseq for _, envelope in store.replay(types=["user.message"])] == [2, 1, 1]
        assert [envelope.event_type for _, envelope in store.replay("system")] == ["session.ended"]
        assert {envelope.pseq for _, envelope in store.replay(CONVERSATION)} == {1, 2}
        assert list(store.replay(OTHER, types=["session.ended"])) == []

    async def test_the_chain_goes_through_all_events(self, open_store: Open, ids: CountedIds) -> None:
        store, _ = await open_store()
        await store.append(ended(ids))
        await store.append_many([said(ids), ended(ids)])
        for (here, before), (there, after) in itertools.pairwise(store.replay()):
            # The first event of a segment chains to the header, which chains to the segment before.
            assert here.segment != there.segment or after.prev == _chain_after(before)

    async def test_a_cancelled_caller_does_not_cancel_the_write(self, open_store: Open, ids: CountedIds) -> None:
        store, _ = await open_store()
        task = asyncio.ensure_future(store.append(said(ids)))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        later = await store.append(ended(ids))
        assert later.seq == 2
        assert [envelope.event_type for _, envelope in store.replay()] == ["user.message", "session.ended"]

    async def test_many_appends_at_once_are_all_stored_once(self, open_store: Open, ids: CountedIds) -> None:
        store, _ = await open_store()
        events: list[Event] = [ended(ids) for _ in range(100)]
        offsets: list[Offset] = list(await asyncio.gather(*(store.append(event) for event in events + events)))
        assert offsets[:100] == offsets[100:]
        assert sorted(offset.seq for offset in offsets[:100]) == list(range(1, 101))

    async def test_after_close_nothing_is_accepted(self, open_store: Open, ids: CountedIds) -> None:
        store, _ = await open_store()
        await store.append(ended(ids))
        await store.close()
        await store.close()
        with pytest.raises(StorageUnavailableError):
            await store.append(ended(ids))


def _intent(ids: CountedIds, arguments: dict[Any, Any]) -> Event:
    body = PreparedCall(
        id="call_1",
        turn_id=TURN,
        call=ToolCall(id="call_1", name="run", arguments=arguments),
        effect="",
        detail="",
        preconditions={},
        digest="",
        confinement="",
        why="",
        rule="",
    )
    return Event(
        event_id=ids.new_id("evt"),
        event_type="tool.intent",
        partition_key=CONVERSATION,
        actor_id="model:qwen3",
        timestamp=MOMENT,
        body=body,
        pseq=1,
    )


def _chain_after(envelope: Any) -> str:
    fields = msgspec.structs.asdict(envelope)
    crc, body = fields.pop("crc"), bytes(fields.pop("body"))
    head = msgspec.json.encode(fields, order="sorted")[:-1]
    return parse(b'%b,"crc":"%b","body":%b}' % (head, crc.encode(), body)).chain
