"""Segments of one slot: one chain and one count through all of them."""

from pathlib import Path

import pytest

from rune.errors import CorruptJournalError
from rune.store import codec
from tests.fakes.ids import CountedIds
from tests.store.journals import event_ids, fill, lines_of, opened, resealed, segment, stored_ids
from tests.store.samples import MOMENT, said


@pytest.fixture
def tmp_path(memory_home: Path) -> Path:
    return memory_home


async def test_a_slot_goes_on_through_segments_with_one_chain_and_one_count(tmp_path: Path, ids: CountedIds) -> None:
    events = await fill(tmp_path, ids, [1, 2, 1], segment_bytes=1)
    events += await fill(tmp_path, ids, [1], segment_bytes=1)
    events += await fill(tmp_path, ids, [1])
    names = sorted(path.name for path in (tmp_path / "journal").glob("*.jsonl"))
    assert names == [f"w000-{number:06}.jsonl" for number in range(1, 6)]
    headers = [codec.parse_header(lines_of(segment(tmp_path, name))[0][:-1])[0] for name in names]
    assert [header.segment for header in headers] == [1, 2, 3, 4, 5]
    async with opened(tmp_path) as store:
        assert stored_ids(store) == event_ids(events)
        assert [envelope.seq for _, envelope in store.replay()] == [1, 2, 3, 4, 5, 6]


async def test_a_missing_segment_or_a_broken_link_between_two_is_noticed(tmp_path: Path, ids: CountedIds) -> None:
    await fill(tmp_path, ids, [1, 1, 1], segment_bytes=1)
    second = segment(tmp_path, "w000-000003.jsonl")
    data = second.read_bytes()
    second.unlink()
    async with opened(tmp_path, read_only=True) as store:
        with pytest.raises(CorruptJournalError, match="missing"):
            list(store.replay())
    header = codec.parse_header(data.split(b"\n")[0])[0]
    forged = codec.seal_header(boot_id=header.boot_id, opened=MOMENT, prev="f" * 16, segment=3, writer="w000")
    second.write_bytes(forged.line + resealed(data.split(b"\n")[1], prev=forged.chain))
    async with opened(tmp_path, read_only=True) as store:
        with pytest.raises(CorruptJournalError, match="chain broken"):
            list(store.replay())


async def test_damage_at_the_end_of_a_segment_that_is_not_the_last_is_no_torn_tail(
    tmp_path: Path, ids: CountedIds
) -> None:
    await fill(tmp_path, ids, [1, 1, 1], segment_bytes=1)
    second = segment(tmp_path, "w000-000002.jsonl")
    second.write_bytes(second.read_bytes()[:-5])
    async with opened(tmp_path) as store:
        with pytest.raises(CorruptJournalError, match="unfinished"):
            list(store.replay())


async def test_a_process_killed_between_two_segments_leaves_nothing_behind(tmp_path: Path, ids: CountedIds) -> None:
    events = await fill(tmp_path, ids, [1, 1], segment_bytes=1)
    last = segment(tmp_path, "w000-000003.jsonl")
    header = last.read_bytes().split(b"\n")[0] + b"\n"
    last.write_bytes(header)  # the new segment was made and no event had come
    (tmp_path / "journal" / ".w000-000004.jsonl.0123456789abcdef.tmp").write_bytes(header[:20])
    events[-1:] = await fill(tmp_path, ids, [1])
    async with opened(tmp_path) as store:
        assert stored_ids(store) == event_ids(events)
    assert not list((tmp_path / "journal").glob(".*"))


async def test_opening_a_long_segment_verifies_its_end_and_goes_on(tmp_path: Path, ids: CountedIds) -> None:
    async with opened(tmp_path) as store:
        await store.append_many([said(ids, "r" * 7000, pseq=n) for n in range(1, 301)])
        *_, last = [await store.append(said(ids, "r" * 7000, pseq=1)) for _ in range(50)]
    with segment(tmp_path).open("ab") as file:
        file.write(b"torn")
    async with opened(tmp_path, ids=ids) as store:
        assert store.head()["w000"].seq == last.seq + 1
        assert sum(1 for _ in store.replay()) == last.seq + 1
