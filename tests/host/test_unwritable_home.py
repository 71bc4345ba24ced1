"""A home that can be read and not written is told from one that cannot be used at all."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from rune.errors import StorageUnavailableError
from rune.host.paths import (
    Home,
    places_elsewhere,
    prepare,
    prepare_to_read,
    resolve_home,
    seen_unwritable,
    why_unwritable,
)
from tests.small_disk import SmallDisk, needs_root, small_disk

NOBODY = 65534


def home_at(folder: Path) -> Home:
    return resolve_home({"RUNE_HOME": str(folder)})


@pytest.fixture
def disk(tmp_path: Path) -> Generator[SmallDisk]:
    with small_disk(tmp_path / "disk", "1m") as mounted:
        yield mounted


def test_a_home_that_can_be_written_has_no_reason_against_it(tmp_path: Path) -> None:
    assert prepare_to_read(home_at(tmp_path / "home")) is None
    assert why_unwritable(tmp_path / "home") is None
    assert list((tmp_path / "home").glob(".room.*")) == []


@needs_root
def test_a_home_on_a_read_only_disk_can_be_read(disk: SmallDisk) -> None:
    prepare(home_at(disk.path / "home"))
    disk.make_read_only()
    why = prepare_to_read(home_at(disk.path / "home"))
    assert why is not None
    assert "mounted read-only" in why.message
    assert "Remount" in why.hint
    for look in (seen_unwritable, why_unwritable):
        again = look(disk.path / "home")
        assert again is not None
        assert again.message == why.message


@needs_root
def test_a_home_that_is_not_there_cannot_be_read_on_a_read_only_disk(disk: SmallDisk) -> None:
    disk.make_read_only()
    with pytest.raises(StorageUnavailableError, match="Read-only"):
        prepare_to_read(home_at(disk.path / "home"))


@needs_root
def test_a_disk_without_room_is_told_by_name_and_nothing_stays_of_the_attempt(disk: SmallDisk) -> None:
    disk.fill()
    why = why_unwritable(disk.path)
    assert why is not None
    assert why.message == f"{disk.path}: the disk is full"
    assert [path.name for path in disk.path.iterdir()] == ["filler"]


@pytest.mark.parametrize(("mode", "raises"), [(0o500, False), (0o300, True)], ids=["not-written", "not-read"])
def test_without_permission_to_write_it_is_read_and_without_permission_to_read_it_is_not(
    mode: int, raises: bool
) -> None:
    # pytest's own folders may not be passed through by another user.
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="rt") as folder:
        Path(folder).chmod(0o755)
        home = home_at(Path(folder) / "home")
        prepare(home)
        if os.geteuid() == 0:
            for each in [home.data_dir, *home.data_dir.iterdir()]:
                os.chown(each, NOBODY, NOBODY)
        home.journal.chmod(mode)
        code = (
            "import os, sys\nimport rune.host.paths as paths\n"
            f"os.geteuid() or (os.setgid({NOBODY}), os.setuid({NOBODY}))\n"
            "try: print(paths.prepare_to_read(paths.resolve_home({'RUNE_HOME': sys.argv[1]})))\n"
            "except paths.StorageUnavailableError as error: print('raised', error)"
        )
        ran = subprocess.run(
            [sys.executable, "-c", code, str(home.data_dir)],
            capture_output=True,
            text=True,
            timeout=30,
            cwd="/",
            check=False,
        )
        home.journal.chmod(0o700)
    assert ran.stdout.startswith("raised" if raises else f"{home.journal} cannot be written"), ran


def test_places_elsewhere_come_in_order_and_only_safe_ones(tmp_path: Path) -> None:
    runtime, unsafe, temporary = (tmp_path / name for name in ("runtime", "unsafe", "temporary"))
    for folder in (runtime, unsafe, temporary):
        folder.mkdir(mode=0o700)
    unsafe.chmod(0o777)
    memory = [Path("/dev/shm")] if Path("/dev/shm").is_dir() else []  # noqa: S108 - what is promised
    found = places_elsewhere({"XDG_RUNTIME_DIR": str(runtime), "TMPDIR": str(temporary)})
    assert list(found) == [runtime, *memory, temporary, Path("/tmp")]  # noqa: S108 - what is promised
    assert unsafe not in places_elsewhere({"XDG_RUNTIME_DIR": str(unsafe), "TMPDIR": "relative"})
