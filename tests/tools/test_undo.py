"""Before-images: kept whole, for their owner only, and given back only as they were."""

import multiprocessing
import os
import stat
from collections.abc import Generator
from pathlib import Path

import pytest

from rune.errors import EvidenceTamperedError, NotFoundError, StorageUnavailableError
from rune.host.sweeping import sweep_folder
from rune.tools.undo import UndoStore
from tests.small_disk import SmallDisk, needs_root, small_disk
from tests.tools.workspace import sha


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "home" / "undo"


@pytest.fixture
def store(folder: Path) -> UndoStore:
    return UndoStore(folder)


@pytest.fixture
def disk(tmp_path: Path) -> Generator[SmallDisk]:
    with small_disk(tmp_path / "disk", "1m") as mounted:
        yield mounted


@pytest.mark.parametrize("data", [b"", b"a\r\nb", bytes(range(256)), b"x" * 3_000_000])
def test_what_is_kept_is_given_back(store: UndoStore, data: bytes) -> None:
    name = store.keep(data)
    assert name == sha(data)
    assert store.get(name) == data


def test_only_its_owner_can_read_it(store: UndoStore, folder: Path) -> None:
    before = os.umask(0)
    try:
        path = folder / store.keep(b"token = 1")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_one_content_is_kept_once_and_nothing_else_lies_there(store: UndoStore, folder: Path) -> None:
    assert store.keep(b"a") == store.keep(b"a")
    store.keep(b"b")
    assert {path.name for path in folder.iterdir()} == {sha(b"a"), sha(b"b")}


def test_what_is_kept_again_is_as_new(store: UndoStore, folder: Path) -> None:
    path = folder / store.keep(b"a")
    os.utime(path, (0, 0))
    store.keep(b"a")
    newest = path.stat().st_mtime_ns // 1_000_000
    sweep_folder(folder, now_ms=newest, days=30, most_bytes=1_000_000)
    assert store.get(sha(b"a")) == b"a"


def test_what_is_gone_is_said(store: UndoStore, folder: Path) -> None:
    (folder / store.keep(b"a")).unlink()
    with pytest.raises(NotFoundError, match="not kept any more"):
        store.get(sha(b"a"))


@pytest.mark.parametrize(
    "name", ["", "../events", "/etc/passwd", "A" * 64, "a" * 63, "a" * 65, "a" * 32 + "/" + "a" * 31]
)
def test_what_is_no_name_of_a_content_is_not_looked_for(store: UndoStore, name: str) -> None:
    with pytest.raises(NotFoundError, match="names no version"):
        store.get(name)


@pytest.mark.parametrize("damage", [b"", b"b", b"aa"])
def test_what_was_damaged_is_not_given_back_and_is_kept_anew(store: UndoStore, folder: Path, damage: bytes) -> None:
    path = folder / store.keep(b"a")
    path.write_bytes(damage)
    with pytest.raises(EvidenceTamperedError):
        store.get(sha(b"a"))
    store.keep(b"a")
    assert store.get(sha(b"a")) == b"a"


def test_a_link_or_a_pipe_in_its_place_is_neither_read_nor_written_through(
    store: UndoStore, folder: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"a")
    path = folder / store.keep(b"a")
    path.unlink()
    path.symlink_to(other)
    with pytest.raises(StorageUnavailableError):
        store.get(sha(b"a"))
    store.keep(b"a")
    assert (path.is_symlink(), other.read_bytes(), store.get(sha(b"a"))) == (False, b"a", b"a")
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(StorageUnavailableError):
        store.get(sha(b"a"))
    store.keep(b"a")
    assert store.get(sha(b"a")) == b"a"


def test_a_folder_that_cannot_be_one_is_said_with_what_to_do(folder: Path) -> None:
    folder.parent.mkdir()
    folder.write_bytes(b"a file")
    with pytest.raises(StorageUnavailableError, match="cannot be kept") as refused:
        UndoStore(folder).keep(b"a")
    assert "Nothing was changed" in refused.value.hint


@needs_root
def test_a_full_disk_keeps_nothing_leaves_nothing_and_loses_nothing(disk: SmallDisk) -> None:
    store = UndoStore(disk.path / "undo")
    store.keep(b"a" * 10_000)
    disk.fill()
    for data in (b"b" * 10_000, b"a" * 10_000):
        with pytest.raises(StorageUnavailableError):
            store.keep(data)
    assert [path.name for path in (disk.path / "undo").iterdir()] == [sha(b"a" * 10_000)]
    assert store.get(sha(b"a" * 10_000)) == b"a" * 10_000
    disk.make_room()
    assert store.get(store.keep(b"b" * 10_000)) == b"b" * 10_000


@needs_root
def test_a_disk_that_became_read_only_still_gives_back(disk: SmallDisk) -> None:
    store = UndoStore(disk.path / "undo")
    name = store.keep(b"a")
    disk.make_read_only()
    assert store.get(name) == b"a"
    with pytest.raises(StorageUnavailableError):
        store.keep(b"b")


def _keep_often(folder: Path) -> None:
    store = UndoStore(folder)
    for number in range(30):
        data = b"%d" % (number % 3) * 5_000
        if store.get(store.keep(data)) != data:
            raise AssertionError(number)


def test_two_processes_keep_the_same_at_once(folder: Path) -> None:
    start = multiprocessing.get_context("spawn")
    both = [start.Process(target=_keep_often, args=(folder,)) for _ in range(2)]
    for each in both:
        each.start()
    for each in both:
        each.join(20)
    assert [each.exitcode for each in both] == [0, 0]
    assert len(list(folder.iterdir())) == 3
