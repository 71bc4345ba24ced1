import asyncio
import errno
import os
import threading
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from rune.errors import CorruptJournalError, IdentityCollisionError, StorageUnavailableError
from rune.records.evidence import Confidentiality, EvidenceRef
from rune.store.event_store import Offset
from rune.store.evidence_store import EvidenceItem, MemoryEvidenceStore
from rune.store.identity import IdentityIndex, StoredIdentity
from tests.fakes.clock import CountedClock
from tests.fakes.ids import CountedIds
from tests.store.journals import FIRST, event_ids, fill, lines_of, open_now, opened, stored_ids
from tests.store.samples import ended, said


@pytest.fixture
def ids() -> CountedIds:
    return CountedIds()


class Gate:
    """A sync that waits until it is let through, counts, and fails when told to."""

    def __init__(self, *, is_open: bool = True) -> None:
        self.count = 0
        self.error: OSError | None = None
        self.waiting = threading.Event()
        self.open = threading.Event()
        if is_open:
            self.open.set()

    def __call__(self, descriptor: int) -> None:
        self.count += 1
        self.waiting.set()
        assert self.open.wait(10)
        if self.error is not None:
            raise self.error


async def until_waiting(gate: Gate) -> None:
    assert await asyncio.to_thread(gate.waiting.wait, 10)


async def test_all_that_waits_shares_one_sync(tmp_path: Path, ids: CountedIds) -> None:
    gate = Gate(is_open=False)
    async with opened(tmp_path, sync=gate) as store:
        first = asyncio.ensure_future(store.append(ended(ids)))
        await until_waiting(gate)
        rest = [asyncio.ensure_future(store.append(ended(ids))) for _ in range(200)]
        await asyncio.sleep(0)
        gate.open.set()
        offsets = [await first, *await asyncio.gather(*rest)]
    assert gate.count == 2
    assert [offset.seq for offset in offsets] == list(range(1, 202))


async def test_nothing_is_acknowledged_or_read_before_its_sync(tmp_path: Path, ids: CountedIds) -> None:
    gate = Gate(is_open=False)
    async with opened(tmp_path, sync=gate) as store:
        waiting = asyncio.ensure_future(store.append(ended(ids)))
        await until_waiting(gate)
        assert b"session.ended" in (tmp_path / "journal" / FIRST).read_bytes()
        assert not waiting.done()
        assert list(store.read({})) == []
        assert store.head() == {}
        gate.open.set()
        offset = await waiting
        assert store.head() == {"w000": offset}
        assert [place for place, _ in store.read({})] == [offset]


async def test_the_event_loop_goes_on_while_the_disk_is_slow(tmp_path: Path, ids: CountedIds) -> None:
    gate = Gate(is_open=False)
    async with opened(tmp_path, sync=gate) as store:
        waiting = asyncio.ensure_future(store.append(ended(ids)))
        await until_waiting(gate)
        for _ in range(100):
            await asyncio.sleep(0)
        assert not waiting.done()
        gate.open.set()
        await waiting


async def test_a_failed_sync_ends_the_writer_until_the_journal_is_read_back(tmp_path: Path, ids: CountedIds) -> None:
    gate = Gate()
    async with opened(tmp_path, sync=gate) as store:
        kept = ended(ids)
        await store.append(kept)
        gate.open.clear()
        gate.waiting.clear()
        lost = [ended(ids) for _ in range(3)]
        first = asyncio.ensure_future(store.append(lost[0]))
        await until_waiting(gate)
        rest = [asyncio.ensure_future(store.append(event)) for event in lost[1:]]
        await asyncio.sleep(0)
        gate.error = OSError(errno.EIO, "Input/output error")
        gate.open.set()
        failures = await asyncio.gather(first, *rest, return_exceptions=True)
        assert [type(failure) for failure in failures] == [StorageUnavailableError] * 3
        assert len({id(failure) for failure in failures}) == 3
        gate.error = None
        with pytest.raises(StorageUnavailableError, match="did not confirm"):
            await store.append(ended(ids))
        assert gate.count == 2
        assert stored_ids(store) == [kept.event_id]
    async with opened(tmp_path) as store:
        # The line that was written and not confirmed may be there: it was never acknowledged, and comes once.
        assert stored_ids(store) == event_ids([kept, lost[0]])


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EBADF], ids=["full", "broken", "closed"])
async def test_after_a_failed_sync_a_person_is_told_to_start_again(tmp_path: Path, number: int) -> None:
    gate = Gate()
    gate.error = OSError(number, os.strerror(number))
    async with opened(tmp_path, sync=gate) as store:
        for _ in range(2):
            with pytest.raises(StorageUnavailableError) as caught:
                await store.append(ended(CountedIds()))
            assert "tart Rune again" in caught.value.hint
            gate.error = None


async def test_what_was_accepted_is_finished_by_close(tmp_path: Path, ids: CountedIds) -> None:
    gate = Gate(is_open=False)
    store = open_now(tmp_path, sync=gate)
    events = [ended(ids) for _ in range(20)]
    waiting = [asyncio.ensure_future(store.append(event)) for event in events]
    await until_waiting(gate)
    closing = asyncio.ensure_future(store.close())
    await asyncio.sleep(0)
    gate.open.set()
    await closing
    assert [offset.seq for offset in await asyncio.gather(*waiting)] == list(range(1, 21))
    async with opened(tmp_path) as again:
        assert again.writer == "w000"
        assert stored_ids(again) == event_ids(events)


async def test_a_caller_that_is_cancelled_in_the_middle_of_the_sync_has_written_all_the_same(
    tmp_path: Path, ids: CountedIds
) -> None:
    gate = Gate(is_open=False)
    async with opened(tmp_path, sync=gate) as store:
        event = said(ids)
        task = asyncio.ensure_future(store.append(event))
        await until_waiting(gate)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gate.open.set()
        assert (await store.append(event)).seq == 1
        assert stored_ids(store) == [event.event_id]


async def test_an_event_loop_that_ends_before_the_acknowledgement_harms_nobody(tmp_path: Path, ids: CountedIds) -> None:
    gate = Gate(is_open=False)
    async with opened(tmp_path, sync=gate) as store:
        event = ended(ids)

        async def give_up() -> None:
            task = asyncio.ensure_future(store.append(event))
            await until_waiting(gate)
            task.cancel()
            await asyncio.wait([task])

        await asyncio.to_thread(lambda: asyncio.run(give_up()))
        gate.open.set()
        assert (await store.append(ended(ids))).seq == 2


async def test_an_id_that_waits_in_the_same_group_is_judged_when_its_first_use_is_stored(
    tmp_path: Path, ids: CountedIds
) -> None:
    gate = Gate(is_open=False)
    async with opened(tmp_path, sync=gate) as store:
        first = asyncio.ensure_future(store.append(ended(ids)))
        await until_waiting(gate)
        event = said(ids)
        forged = msgspec.structs.replace(event, authorization="owner")
        rest = [asyncio.ensure_future(store.append(one)) for one in (event, event, forged, ended(ids))]
        await asyncio.sleep(0)
        gate.open.set()
        await first
        done = await asyncio.gather(*rest, return_exceptions=True)
    assert done[0] == done[1]
    assert isinstance(done[2], IdentityCollisionError)
    assert isinstance(done[3], Offset)


class NoRoom(MemoryEvidenceStore):
    """Evidence on a disk that is full."""

    def put_many(self, items: Sequence[EvidenceItem]) -> tuple[EvidenceRef, ...]:
        raise StorageUnavailableError("no room", hint="The disk is full.")

    def put(self, data: object, *, source: str, confidentiality: Confidentiality = "normal") -> EvidenceRef:
        raise StorageUnavailableError("no room", hint="The disk is full.")


async def test_without_room_for_evidence_only_events_that_need_it_are_refused(tmp_path: Path, ids: CountedIds) -> None:
    gate = Gate(is_open=False)
    async with opened(tmp_path, sync=gate, evidence=NoRoom(CountedClock())) as store:
        first = asyncio.ensure_future(store.append(ended(ids)))
        await until_waiting(gate)
        short = said(ids, "short")
        rest = [asyncio.ensure_future(store.append(one)) for one in (said(ids, "r" * 10_000), short)]
        await asyncio.sleep(0)
        gate.open.set()
        await first
        refused, offset = await asyncio.gather(*rest, return_exceptions=True)
        assert isinstance(refused, StorageUnavailableError)
        assert isinstance(offset, Offset)
        assert stored_ids(store)[1:] == [short.event_id]


class Broken(MemoryEvidenceStore):
    """Evidence with a bug."""

    def put_many(self, items: Sequence[EvidenceItem]) -> tuple[EvidenceRef, ...]:
        raise LookupError("a bug")


async def test_a_bug_in_evidence_reaches_who_waits_and_the_store_goes_on(tmp_path: Path, ids: CountedIds) -> None:
    async with opened(tmp_path, evidence=Broken(CountedClock())) as store:
        with pytest.raises(LookupError):
            await asyncio.wait_for(store.append(said(ids, "r" * 10_000)), 10)
        assert (await store.append(said(ids, "short"))).seq == 1


async def test_a_lookup_that_fails_fails_that_caller_and_not_the_store(tmp_path: Path, ids: CountedIds) -> None:
    def broken(event_id: str) -> StoredIdentity | None:
        if event_id == bad.event_id:
            raise LookupError("the views are being rebuilt")
        return None

    bad = ended(ids)
    async with opened(tmp_path, lookup=broken) as store:
        with pytest.raises(LookupError):
            await store.append(bad)
        assert (await store.append(ended(ids))).seq == 1


@pytest.mark.parametrize("how", ["moved", "replaced", "shortened", "written to"])
async def test_a_segment_that_changes_under_its_writer_is_not_acknowledged_into(
    tmp_path: Path, ids: CountedIds, how: str
) -> None:
    path = tmp_path / "journal" / FIRST
    async with opened(tmp_path) as store:
        await store.append(ended(ids))
        if how == "moved":
            path.rename(path.with_suffix(".gone"))
        elif how == "replaced":
            data = path.read_bytes()
            path.unlink()
            path.write_bytes(data)
        elif how == "shortened":
            os.truncate(path, 400)
        else:
            with path.open("ab") as file:
                file.write(b"x")
        for _ in range(2):
            with pytest.raises(StorageUnavailableError, match="segment"):
                await store.append(ended(ids))


@pytest.mark.parametrize("left", [1, 2])
async def test_a_segment_that_was_shortened_under_its_writer_is_not_read_as_if_it_were_whole(
    tmp_path: Path, ids: CountedIds, left: int
) -> None:
    path = tmp_path / "journal" / FIRST
    async with opened(tmp_path) as store:
        await store.append_many([ended(ids)])
        await store.append_many([ended(ids)])
        os.truncate(path, len(b"".join(lines_of(path)[:left])))
        with pytest.raises(CorruptJournalError, match="shorter"):
            list(store.replay())


async def test_own_ids_are_let_go_once_the_views_know_them() -> None:
    known: dict[str, StoredIdentity] = {}
    index = IdentityIndex(known.get)
    for number in range(10_000):
        identity = StoredIdentity(offset=Offset("w000", number, 1, number), content="same")
        index.remember(f"evt_{number}", identity)
        if number < 6000:
            known[f"evt_{number}"] = identity
    assert index.find("evt_0", "same") == Offset("w000", 0, 1, 0)
    assert index.find("evt_9999", "same") == Offset("w000", 9999, 1, 9999)
    assert len(index) < 6000


async def test_a_thousand_events_in_one_batch_are_one_write_and_one_sync(tmp_path: Path, ids: CountedIds) -> None:
    gate = Gate()
    async with opened(tmp_path, sync=gate) as store:
        await store.append_many([ended(ids) for _ in range(1500)])
        assert gate.count == 1
    assert len(await fill(tmp_path, ids, [1])) == 1
