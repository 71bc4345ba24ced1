"""Views that cannot be opened where they are: copied whole to a place that takes them, and gone in the end."""

import subprocess
import sys
from pathlib import Path

import pytest

from rune.errors import StorageUnavailableError
from rune.store.views_copy import ViewsCopy
from rune.store.views_file import ViewsFile, transaction
from tests.small_disk import needs_root, small_disk

DDL = "CREATE TABLE words (word TEXT);"
KILLED = """
import os, sys
from pathlib import Path
from rune.store.views_copy import ViewsCopy
print(ViewsCopy(Path(sys.argv[1]), [Path(sys.argv[2])]).make(), flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "place"
    folder.mkdir(mode=0o700)
    return folder


def words(path: Path) -> list[str]:
    file = ViewsFile(path, DDL, lambda error: pytest.fail(str(error)))
    try:
        return [row[0] for row in file.opened().connection.execute("SELECT word FROM words")]
    finally:
        file.close()


def test_what_stands_only_in_the_log_beside_the_file_is_copied_too(views: Path, place: Path) -> None:
    file = ViewsFile(views, DDL, lambda _: None)
    connection = file.opened().connection
    with transaction(connection):
        connection.execute("INSERT INTO words VALUES ('river')")
    assert views.with_name(f"{views.name}-wal").stat().st_size > 0
    copy = ViewsCopy(views, [place])
    path = copy.make()
    assert path.is_relative_to(place)
    assert words(path) == ["river"]
    assert copy.make() == path
    file.close()
    copy.remove()
    copy.remove()
    assert list(place.iterdir()) == []


def test_where_there_is_nothing_to_copy_views_can_be_made(views: Path, place: Path) -> None:
    copy = ViewsCopy(views, [place])
    assert words(copy.make()) == []
    copy.remove()


@needs_root
def test_a_place_without_room_is_passed_over(views: Path, tmp_path: Path, place: Path) -> None:
    views.write_bytes(bytes(6_000_000))
    with small_disk(tmp_path / "tiny", "8m") as tiny:
        copy = ViewsCopy(views, [tmp_path / "missing", tiny.path, place])
        assert copy.make().is_relative_to(place)
        assert list(tiny.path.iterdir()) == []
    copy.remove()


@needs_root
def test_when_no_place_takes_it_each_is_named_with_its_reason(views: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "tiny") as tiny:
        tiny.make_read_only()
        with pytest.raises(StorageUnavailableError, match=r"tiny: Read-only.*missing: No such file") as caught:
            ViewsCopy(views, [tiny.path, tmp_path / "missing"]).make()
    assert "TMPDIR" in caught.value.hint


def test_what_a_killed_process_left_is_removed_by_the_next_and_that_of_a_living_one_stays(
    views: Path, place: Path
) -> None:
    living = ViewsCopy(views, [place])
    kept = living.make()
    command = [sys.executable, "-c", KILLED, str(views), str(place)]
    left = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stdout.strip()
    assert Path(left).parent.is_dir()
    following = ViewsCopy(views, [place])
    following.make()
    assert not Path(left).parent.exists()
    assert kept.parent.is_dir()
    living.remove()
    following.remove()


@needs_root
def test_views_move_to_the_copy_under_threads_that_have_them_open(views: Path, tmp_path: Path, place: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        file = ViewsFile(disk.path / "views-1.db", DDL, lambda _: None)
        connection = file.opened().connection
        with transaction(connection):
            connection.execute("INSERT INTO words VALUES ('river')")
        copy = ViewsCopy(file.path, [place])
        file.move_to(copy.make())
        moved = file.opened().connection
        assert moved is not connection
        with transaction(moved):
            moved.execute("INSERT INTO words VALUES ('brook')")
        file.close()
        assert words(disk.path / "views-1.db") == ["river"]
    copy.remove()
