"""Who only reads is told of damage near the end of a slot, and of nothing that is none."""

from pathlib import Path

import pytest

from rune.errors import CorruptJournalError, NewerFormatError, StorageUnavailableError
from rune.store.slot_reader import check_ends
from tests.fakes.ids import CountedIds
from tests.store.journals import event_ids, fill, lines_of, of_a_later_format, opened, segment
from tests.store.samples import ended


@pytest.fixture
def tmp_path(memory_home: Path) -> Path:
    return memory_home


def look(home: Path) -> None:
    check_ends(home / "journal", lambda _by, _of: False)


def damage(path: Path, line: int) -> None:
    lines = lines_of(path)
    lines[line] = lines[line].replace(b'"actor_id"', b'"actor_iD"')
    path.write_bytes(b"".join(lines))


async def test_a_line_in_the_middle_is_damage_and_the_last_one_a_torn_tail(tmp_path: Path, ids: CountedIds) -> None:
    await fill(tmp_path, ids, [1, 1, 1])
    look(tmp_path)
    whole = segment(tmp_path).read_bytes()
    damage(segment(tmp_path), 3)
    look(tmp_path)
    segment(tmp_path).write_bytes(whole)
    damage(segment(tmp_path), 2)
    with pytest.raises(CorruptJournalError) as caught:
        look(tmp_path)
    assert (caught.value.file, caught.value.line) == (str(segment(tmp_path)), 3)


async def test_a_later_format_is_told(tmp_path: Path, ids: CountedIds) -> None:
    await fill(tmp_path, ids, [1])
    segment(tmp_path).write_bytes(of_a_later_format(segment(tmp_path).read_bytes()))
    with pytest.raises(NewerFormatError, match="format 7"):
        look(tmp_path)


@pytest.mark.parametrize("kind", ["damaged", "newer"])
async def test_the_slots_beside_one_that_cannot_be_understood_are_read_to_their_ends(
    tmp_path: Path, ids: CountedIds, kind: str
) -> None:
    async with opened(tmp_path, ids=ids) as first, opened(tmp_path, ids=ids) as second:
        early, late = [ended(ids) for _ in range(4)], [ended(ids) for _ in range(4)]
        await first.append_many(early[:1])
        await first.append_many(early[1:])
        await second.append_many(late)
    path = segment(tmp_path)
    if kind == "damaged":
        damage(path, 2)
    else:
        path.write_bytes(of_a_later_format(path.read_bytes()))
    readable = [*(early[:1] if kind == "damaged" else []), *late]
    async with opened(tmp_path, read_only=True) as store:
        seen: list[str] = []
        with pytest.raises((CorruptJournalError, NewerFormatError)):
            seen.extend(envelope.event_id for _, envelope in store.read({}))
        assert sorted(seen) == sorted(event_ids(readable))


async def test_a_store_that_refuses_says_why_and_finishes_what_it_took(tmp_path: Path, ids: CountedIds) -> None:
    async with opened(tmp_path, ids=ids) as store:
        await store.append(ended(ids))
        store.refuse(CorruptJournalError("odd", file="w001", line=2, byte=3))
        store.refuse(StorageUnavailableError("another reason"))
        with pytest.raises(StorageUnavailableError, match="nothing can be written, only read: w001, line 2") as caught:
            await store.append(ended(ids))
        assert "rune doctor" in caught.value.hint
        assert len(list(store.replay())) == 1
