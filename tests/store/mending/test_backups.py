"""A backup is kept before another schema writes: whole, or not there at all."""

import os
import shutil
from pathlib import Path

import msgspec
import pytest

from rune.errors import StorageUnavailableError
from rune.host.paths import Home, prepare
from rune.store.mending.backups import KEPT, RESERVE, Backup, BackupBook, Schemas
from tests.fakes.clock import CountedClock
from tests.fakes.ids import CountedIds
from tests.store.journals import fill, memory_folder

OLD = Schemas(journal=1, views=2, rune="0.2.0")
NEW = Schemas(journal=1, views=3, rune="0.3.0")


class Kept:
    """A home with some segments, and its backups."""

    def __init__(self, top: Path, free: int = 1 << 40) -> None:
        self.home = Home(config_dir=top, data_dir=top, state_dir=top)
        prepare(self.home)
        self.clock = CountedClock()
        self.free = free
        self.book = BackupBook(self.home, self.clock, free=lambda _: self.free)

    async def fill(self) -> None:
        """Write three segments of one slot, and what stands beside them."""
        await fill(self.home.data_dir, CountedIds(), [1, 1, 1], segment_bytes=600)
        (self.home.state / "device.json").write_text('{"id":"dev_1"}\n')
        self.home.config_file.write_text("model: {}\n")

    def change(self, number: int) -> Backup:
        self.clock.advance(1)
        kept = self.book.open_for_writing(Schemas(journal=1, views=number, rune=f"0.{number}.0"))
        assert kept is not None
        return kept


def files_of(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path / "home")


def test_a_fresh_home_needs_none_and_says_who_writes_it(kept: Kept) -> None:
    assert kept.book.open_for_writing(NEW) is None
    assert kept.book.written_by() == NEW
    assert not kept.home.backups.exists()


async def test_another_schema_keeps_what_cannot_be_made_anew(kept: Kept) -> None:
    await kept.fill()
    kept.book.open_for_writing(OLD)
    backup = kept.change(3)
    assert backup.written_by is not None
    folder = Path(backup.folder)
    files = files_of(folder)
    names = sorted(str(path.relative_to(folder)) for path in files)
    segments = [f"journal/w000-00000{number}.jsonl" for number in (1, 2, 3)]
    assert names == ["backup.json", "config.yaml", "device.json", *segments]
    for name in segments:
        assert (folder / name).read_bytes() == (kept.home.data_dir / name).read_bytes()
    assert {path.stat().st_mode & 0o077 for path in [folder, folder / "journal", *files]} == {0}
    assert kept.book.open_for_writing(Schemas(journal=1, views=3, rune="0.3.0")) is None


async def test_closed_segments_are_shared_and_the_last_one_is_a_copy(kept: Kept) -> None:
    await kept.fill()
    folder = Path(kept.change(3).folder)
    links = [(folder / "journal" / f"w000-00000{number}.jsonl").stat().st_nlink for number in (1, 2, 3)]
    assert links == [2, 2, 1]


async def test_a_home_that_does_not_say_who_wrote_it_gets_a_backup(kept: Kept) -> None:
    await kept.fill()
    backup = kept.book.open_for_writing(NEW)
    assert backup is not None
    assert backup.written_by is None
    assert backup.folder.endswith("-unknown")


async def test_a_new_version_with_the_same_schemas_needs_none(kept: Kept) -> None:
    await kept.fill()
    kept.book.open_for_writing(NEW)
    before = kept.book.kept()
    newer = msgspec.structs.replace(NEW, rune="0.3.1")
    assert kept.book.open_for_writing(newer) is None
    assert (kept.book.kept(), kept.book.written_by()) == (before, newer)


async def test_the_two_newest_are_kept_and_what_somebody_else_put_there_too(kept: Kept) -> None:
    await kept.fill()
    (kept.home.backups / "mine").mkdir(parents=True)
    made = [kept.change(number).folder for number in range(2, 6)]
    assert [backup.folder for backup in kept.book.kept()] == [*made[-KEPT:], str(kept.home.backups / "mine")]


async def test_without_room_nothing_is_kept_nothing_is_noted_and_it_is_tried_again(kept: Kept) -> None:
    await kept.fill()
    kept.book.open_for_writing(OLD)
    before = kept.book.kept()
    kept.free = RESERVE
    with pytest.raises(StorageUnavailableError, match="no room for a backup") as refused:
        kept.book.open_for_writing(NEW)
    assert "Free some space" in refused.value.hint
    assert (kept.book.written_by(), kept.book.kept(), kept.book.unfinished()) == (OLD, before, ())
    kept.free = 1 << 40
    assert kept.book.open_for_writing(NEW) is not None


async def test_what_cannot_be_copied_leaves_no_half_of_a_backup(kept: Kept) -> None:
    await kept.fill()
    kept.book.open_for_writing(OLD)
    before = kept.book.kept()
    (kept.home.journal / "w000-000003.jsonl").unlink()
    (kept.home.journal / "w000-000003.jsonl").symlink_to(kept.home.journal / "w000-000003.jsonl")
    with pytest.raises(StorageUnavailableError):
        kept.book.open_for_writing(NEW)
    assert (kept.book.kept(), kept.book.unfinished(), kept.book.written_by()) == (before, (), OLD)


async def test_a_disk_that_fills_in_the_middle_leaves_no_half_of_a_backup(kept: Kept) -> None:
    await kept.fill()
    elsewhere = memory_folder()  # another file system: nothing can be linked there
    kept.home.backups.symlink_to(elsewhere)
    try:
        answers = iter([1 << 40, 1 << 40, 0])
        full = BackupBook(kept.home, kept.clock, free=lambda _: next(answers))
        with pytest.raises(StorageUnavailableError, match="no room"):
            full.open_for_writing(NEW)
        assert list(elsewhere.iterdir()) == []
        folder = Path(kept.change(3).folder)
        first = "journal/w000-000001.jsonl"
        assert (folder / first).read_bytes() == (kept.home.data_dir / first).read_bytes()
    finally:
        shutil.rmtree(elsewhere)


async def test_what_a_kill_left_is_removed_by_the_next_one(kept: Kept) -> None:
    await kept.fill()
    left = kept.home.backups / ".unfinished-20261130T140000.000Z-0.1.0"
    (left / "journal").mkdir(parents=True)
    assert kept.book.unfinished() == (left,)
    kept.change(3)
    assert kept.book.unfinished() == ()


def test_a_note_that_cannot_be_read_counts_as_none(kept: Kept) -> None:
    (kept.home.state / "schemas.json").write_bytes(os.urandom(100))
    assert kept.book.written_by() is None
    kept.book.open_for_writing(NEW)
    assert kept.book.written_by() == NEW


async def test_a_note_that_cannot_be_written_does_not_push_out_the_backups_that_are_there(kept: Kept) -> None:
    await kept.fill()
    kept.change(1)
    (kept.home.state / "schemas.json").unlink()
    (kept.home.state / "schemas.json").mkdir()
    for _ in range(3):
        with pytest.raises(StorageUnavailableError):
            kept.change(2)
    assert len(kept.book.kept()) == 1
