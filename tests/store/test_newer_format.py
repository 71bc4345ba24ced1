"""A journal that a later Rune has written to: what this one understands is read, nothing is written beside it."""

from pathlib import Path

import pytest

from rune.errors import CorruptJournalError, NewerFormatError, StorageUnavailableError
from rune.store.event_store import Offset
from tests.fakes.ids import CountedIds
from tests.store.journals import event_ids, fill, lines_of, of_a_later_format, open_now, opened, segment
from tests.store.samples import ended


@pytest.fixture
def tmp_path(memory_home: Path) -> Path:
    return memory_home


def write_newer(home: Path, name: str) -> None:
    """Make a segment as a later Rune might: another format, and lines of a form of its own."""
    line = of_a_later_format(lines_of(next((home / "journal").glob("*.jsonl")))[0])
    segment(home, name).write_bytes(line + b"\x01\x02\x03\n")


@pytest.mark.parametrize("name", ["w000-000004.jsonl", "w001-000001.jsonl"], ids=["of its own slot", "of another slot"])
async def test_the_rest_is_read_and_the_newer_part_is_named_when_it_is_reached(
    tmp_path: Path, ids: CountedIds, name: str
) -> None:
    events = await fill(tmp_path, ids, [2, 2], segment_bytes=1)
    async with opened(tmp_path) as first, opened(tmp_path) as second:
        assert (first.writer, second.writer) == ("w000", "w001")
        if name.startswith("w000"):
            events.append(ended(ids))
            await second.append(events[-1])
    for path in (tmp_path / "journal").glob(name[:4] + "*.jsonl"):
        if path.name >= name:
            path.unlink()
    write_newer(tmp_path, name)
    async with opened(tmp_path, read_only=True) as store:
        for events_of in (
            store.replay(),
            store.read({}),
            store.replay("system"),
            store.replay(types=["session.ended"]),
        ):
            seen: list[str] = []
            with pytest.raises(NewerFormatError, match="format 7; this Rune knows up to 1"):
                seen.extend(envelope.event_id for _, envelope in events_of)
            assert seen == event_ids(events)
        assert {writer: last.seq for writer, last in store.head().items()} == (
            {"w000": 4, "w001": 1} if name.startswith("w000") else {"w000": 4}
        )
        # Who follows along is told each time it comes to the end, and has lost nothing of the rest.
        with pytest.raises(NewerFormatError):
            list(store.read(store.head()))


async def test_it_does_not_open_for_writing_and_nothing_is_changed(tmp_path: Path, ids: CountedIds) -> None:
    await fill(tmp_path, ids, [1])
    for name in ("w000-000002.jsonl", "w005-000001.jsonl"):
        write_newer(tmp_path, name)
        before = {path.name: path.read_bytes() for path in (tmp_path / "journal").glob("*.jsonl")}
        with pytest.raises(NewerFormatError) as caught:
            open_now(tmp_path)
        assert "newer Rune" in caught.value.hint
        assert {path.name: path.read_bytes() for path in (tmp_path / "journal").glob("*.jsonl")} == before
        async with opened(tmp_path, read_only=True, refusal=caught.value) as store:
            with pytest.raises(StorageUnavailableError, match="format 7"):
                await store.append(ended(ids))
        segment(tmp_path, name).unlink()
    async with opened(tmp_path) as store:
        assert await store.append(ended(ids)) > Offset("w000", 1, 1, 0)


async def test_a_flipped_bit_in_the_format_is_damage_and_no_later_rune(tmp_path: Path, ids: CountedIds) -> None:
    async with opened(tmp_path, ids=ids) as store:
        await store.append(ended(ids))
    file = segment(tmp_path)
    file.write_bytes(file.read_bytes().replace(b'"format":1', b'"format":3', 1))
    with pytest.raises(CorruptJournalError, match="header"):
        open_now(tmp_path)
