"""Torn tails: what an interrupted write leaves is cut, kept aside and noted."""

import os
import stat
from pathlib import Path

import pytest

from rune.errors import CorruptJournalError
from rune.records.events import JournalRepaired
from rune.store import codec
from rune.store.evidence_store import EvidenceStore
from tests.fakes.clock import CountedClock
from tests.fakes.ids import CountedIds
from tests.store.journals import FIRST, event_ids, fill, lines_of, open_now, opened, segment, stored_ids


@pytest.fixture
def tmp_path(memory_home: Path) -> Path:
    return memory_home


async def repairs(home: Path, ids: CountedIds) -> list[JournalRepaired]:
    evidence = EvidenceStore(home / "evidence", CountedClock())
    async with opened(home, ids=ids) as store:
        bodies = [codec.decode_body(envelope, evidence) for _, envelope in store.replay(types=["journal.repaired"])]
    return [body for body in bodies if isinstance(body, JournalRepaired)]


@pytest.mark.parametrize("batch", [1, 2])
async def test_a_journal_cut_at_any_byte_of_its_last_batch_keeps_exactly_what_is_before(
    tmp_path: Path, ids: CountedIds, batch: int
) -> None:
    events = await fill(tmp_path, ids, [1, 2, batch])
    whole = segment(tmp_path).read_bytes()
    start = len(b"".join(lines_of(segment(tmp_path))[:-batch]))
    for cut in range(start, len(whole)):
        home = tmp_path / str(cut)
        (home / "journal").mkdir(0o700, parents=True)
        segment(home).write_bytes(whole[:cut])
        store = open_now(home, ids=ids)
        assert stored_ids(store) == event_ids(events[:-batch])
        kept = [path.read_bytes() for path in (home / "journal").glob("*.torn-*")]
        assert kept == ([whole[start:cut]] if cut > start else [])
        assert len(lines_of(segment(home))) == len(lines_of(segment(tmp_path))) - batch + (cut > start)
        await store.close()


async def test_a_repair_is_noted_once_and_names_the_file_that_holds_the_tail(tmp_path: Path, ids: CountedIds) -> None:
    events = await fill(tmp_path, ids, [1, 1])
    with segment(tmp_path).open("ab") as file:
        file.write(b'{"actor_id":"ow')
    (repair,) = await repairs(tmp_path, ids)
    assert repair.segment == FIRST
    assert segment(tmp_path, repair.kept_as).read_bytes() == b'{"actor_id":"ow'
    assert (repair.bytes, repair.reason) == (15, "its last line is unfinished")
    assert stat.S_IMODE(segment(tmp_path, repair.kept_as).stat().st_mode) == 0o600
    assert await repairs(tmp_path, ids) == [repair]
    async with opened(tmp_path) as store:
        assert stored_ids(store) == event_ids(events)


async def test_two_torn_tails_of_one_moment_are_both_kept(tmp_path: Path, ids: CountedIds) -> None:
    await fill(tmp_path, ids, [1])
    for text in (b"first", b"second"):
        with segment(tmp_path).open("ab") as file:
            file.write(text)
        await repairs(tmp_path, ids)
    assert {path.read_bytes() for path in (tmp_path / "journal").glob("*.torn-*")} == {b"first", b"second"}


@pytest.mark.parametrize(
    "tail",
    [b"\0" * 512, b"\0" * 3_000_000, b"{}\n", b"\n\n\n", b"\0\n\0\n", os.urandom(700)],
    ids=["zeros", "megabytes of zeros", "an object", "line feeds", "zeros and line feeds", "random bytes"],
)
async def test_a_tail_of_zeros_or_garbage_is_cut(tmp_path: Path, ids: CountedIds, tail: bytes) -> None:
    events = await fill(tmp_path, ids, [1, 2])
    with segment(tmp_path).open("ab") as file:
        file.write(tail)
    if tail == b"{}\n":
        with pytest.raises(CorruptJournalError):
            open_now(tmp_path)
        return
    async with opened(tmp_path, ids=ids) as store:
        assert stored_ids(store) == event_ids(events)
    assert b"".join(path.read_bytes() for path in (tmp_path / "journal").glob("*.torn-*")) == tail


async def test_a_last_line_whose_end_became_zeros_is_cut(tmp_path: Path, ids: CountedIds) -> None:
    events = await fill(tmp_path, ids, [1, 1])
    data = segment(tmp_path).read_bytes()
    for tail in (b"\0" * 100, b"\0" * 99 + b"\n"):
        segment(tmp_path).write_bytes(data[:-100] + tail)
        async with opened(tmp_path, ids=ids) as store:
            assert stored_ids(store) == event_ids(events[:-1])
        segment(tmp_path).write_bytes(data)


async def test_after_a_repair_the_journal_goes_on(tmp_path: Path, ids: CountedIds) -> None:
    events = await fill(tmp_path, ids, [1, 3])
    segment(tmp_path).write_bytes(b"".join(lines_of(segment(tmp_path))[:-1]))
    more = await fill(tmp_path, ids, [2])
    async with opened(tmp_path) as store:
        assert stored_ids(store) == event_ids(events[:1] + more)
        assert [offset.seq for offset, _ in store.replay()] == [1, 2, 3, 4]
