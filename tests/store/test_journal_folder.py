"""The folder of a journal and its files are their owner's alone."""

import os
import stat
from pathlib import Path

import pytest

from rune.errors import StorageUnavailableError
from tests.fakes.ids import CountedIds
from tests.store.journals import open_now, opened
from tests.store.samples import said


@pytest.fixture
def tmp_path(memory_home: Path) -> Path:
    return memory_home


async def test_files_and_folders_are_private(tmp_path: Path, ids: CountedIds) -> None:
    old = os.umask(0)
    try:
        async with opened(tmp_path / "home") as store:
            await store.append(said(ids, "r" * 10_000))
    finally:
        os.umask(old)
    found = {path: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "home").rglob("*")}
    assert {mode for path, mode in found.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in found.items() if path.is_file()} == {0o600}


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
def test_a_folder_that_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal").chmod(mode)
    with pytest.raises(StorageUnavailableError, match=f"mode {mode:03o}") as caught:
        open_now(tmp_path)
    assert "chmod go-w" in caught.value.hint


def test_a_link_in_place_of_the_folder_or_of_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(0o700)
    (tmp_path / "journal").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageUnavailableError, match="symbolic link"):
        open_now(tmp_path)
    assert not list((tmp_path / "elsewhere").iterdir())
    home = tmp_path / "home"
    (home / "journal").mkdir(0o700, parents=True)
    (home / "journal" / "w000.lock").symlink_to(tmp_path / "elsewhere" / "lock")
    with pytest.raises(StorageUnavailableError):
        open_now(home)
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "journal").write_text("not a folder")
    with pytest.raises(StorageUnavailableError):
        open_now(tmp_path)
