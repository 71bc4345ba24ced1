"""Slots: who writes in which, and in what order their events are read."""

import os
from pathlib import Path

import pytest

from rune.records.record import from_json
from rune.records.session import LeaseHolder
from tests.fakes.clock import CountedClock
from tests.fakes.ids import CountedIds
from tests.store.journals import fill, open_now, opened
from tests.store.samples import CONVERSATION, ended, said


@pytest.fixture
def tmp_path(memory_home: Path) -> Path:
    return memory_home


async def test_a_second_opener_gets_the_next_slot_and_a_third_the_first_that_is_free(
    tmp_path: Path, ids: CountedIds
) -> None:
    first = open_now(tmp_path)
    second = open_now(tmp_path)
    assert (first.writer, second.writer) == ("w000", "w001")
    await first.append(ended(ids))
    await second.append(ended(ids))
    await first.close()
    third = open_now(tmp_path)
    assert third.writer == "w000"
    assert (await third.append(ended(ids))).seq == 2
    assert set(third.head()) == {"w000", "w001"}
    assert len(list(second.replay())) == 3
    await second.close()
    await third.close()


async def test_the_lock_file_says_who_holds_the_slot(tmp_path: Path) -> None:
    async with opened(tmp_path):
        holder = from_json((tmp_path / "journal" / "w000.lock").read_bytes(), LeaseHolder)
        assert holder.pid == os.getpid()
    assert (tmp_path / "journal" / "w000.lock").read_bytes() == b""


async def test_a_slot_opened_later_on_a_clock_that_is_behind_still_comes_later(tmp_path: Path, ids: CountedIds) -> None:
    async with opened(tmp_path, clock=CountedClock()) as first:
        await first.append(ended(ids))
        behind = CountedClock(1000)
        async with opened(tmp_path, clock=behind) as second:
            await second.append(ended(ids))
            await first.append_many([ended(ids), ended(ids)])
            list(second.read({}))
            await second.append(ended(ids))
        order = [(envelope.writer, envelope.seq) for _, envelope in first.replay()]
    assert order == [("w000", 1), ("w000", 2), ("w001", 1), ("w000", 3), ("w001", 2)]


async def test_a_slot_reopened_on_a_clock_that_is_behind_still_comes_later(tmp_path: Path, ids: CountedIds) -> None:
    await fill(tmp_path, ids, [1])
    await fill(tmp_path, ids, [1], clock=CountedClock(1000))
    async with opened(tmp_path) as store:
        first, second = (envelope.hlc for _, envelope in store.replay())
    assert second == first + 1


async def test_a_conversation_is_read_by_pseq_whatever_the_clocks_of_its_writers_say(
    tmp_path: Path, ids: CountedIds
) -> None:
    async with (
        opened(tmp_path, clock=CountedClock(9_000)) as ahead,
        opened(tmp_path, clock=CountedClock(500)) as behind,
    ):
        await ahead.append(said(ids, pseq=1))
        await behind.append(said(ids, pseq=2))
        await ahead.append_many([said(ids, pseq=3), said(ids, pseq=4)])
        assert [envelope.pseq for _, envelope in ahead.replay(CONVERSATION)] == [1, 2, 3, 4]
        assert [envelope.pseq for _, envelope in ahead.replay()] == [2, 1, 3, 4]


async def test_a_pseq_given_twice_is_kept_twice_and_in_one_order(tmp_path: Path, ids: CountedIds) -> None:
    async with (
        opened(tmp_path, clock=CountedClock(9_000)) as ahead,
        opened(tmp_path, clock=CountedClock(500)) as behind,
    ):
        for store in (ahead, behind):
            await store.append_many([said(ids, pseq=1), said(ids, pseq=2)])
        for store in (ahead, behind):
            order = [(envelope.pseq, envelope.writer) for _, envelope in store.replay(CONVERSATION)]
            assert order == [(1, "w001"), (1, "w000"), (2, "w001"), (2, "w000")]
