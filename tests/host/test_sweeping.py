"""What is too old or too much goes; nothing outside does."""

import os
from pathlib import Path

import pytest

from rune.host.sweeping import folder_size, sweep_folder

NOW = 1_796_047_200_000
DAY = 24 * 60 * 60
MUCH = 1 << 40


def put(path: Path, days_old: float, size: int = 10) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    age(path, days_old)
    return path


def age(path: Path, days_old: float) -> None:
    seconds = NOW / 1000 - days_old * DAY
    os.utime(path, (seconds, seconds), follow_symlinks=False)


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*"))


def test_what_is_older_than_the_days_goes_and_the_rest_stays(tmp_path: Path) -> None:
    put(tmp_path / "a" / "old", 31)
    put(tmp_path / "a" / "young", 29)
    swept = sweep_folder(tmp_path, now_ms=NOW, days=30, most_bytes=MUCH)
    assert left(tmp_path) == ["a", "young"]
    assert (swept.files, swept.bytes, swept.failures) == (1, 10, ())


def test_of_too_much_the_oldest_goes_wherever_it_lies(tmp_path: Path) -> None:
    for number, place in enumerate(("b/oldest", "a/middle", "b/newest")):
        put(tmp_path / place, 3 - number, size=100)
    sweep_folder(tmp_path, now_ms=NOW, days=30, most_bytes=200)
    assert left(tmp_path) == ["a", "b", "middle", "newest"]


def test_a_link_goes_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    outside = put(tmp_path / "outside" / "precious", 99)
    undo = tmp_path / "undo"
    undo.mkdir()
    for name, target in (("file", outside), ("folder", outside.parent)):
        (undo / name).symlink_to(target)
        age(undo / name, 99)
    swept = sweep_folder(undo, now_ms=NOW, days=30, most_bytes=MUCH)
    assert (swept.files, left(undo)) == (2, [])
    assert outside.exists()


def test_a_folder_that_is_a_link_itself_is_left_alone(tmp_path: Path) -> None:
    outside = put(tmp_path / "outside" / "precious", 99)
    (tmp_path / "undo").symlink_to(outside.parent)
    assert sweep_folder(tmp_path / "undo", now_ms=NOW, days=1, most_bytes=0).files == 0
    assert outside.exists()
    assert folder_size(tmp_path / "undo") == (0, 0)


def test_one_file_that_cannot_be_removed_does_not_stop_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "a", 40)
    put(tmp_path / "b", 41)
    put(tmp_path / "c", 42)
    unlink = os.unlink

    def refuse(path: str, *, dir_fd: int | None = None) -> None:
        if path == "b":
            raise PermissionError(13, "Permission denied", path)
        unlink(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", refuse)  # the tests run as root, which may remove everything
    swept = sweep_folder(tmp_path, now_ms=NOW, days=30, most_bytes=MUCH)
    assert (swept.files, left(tmp_path)) == (2, ["b"])
    assert [error.filename for error in swept.failures] == ["b"]


def test_empty_folders_go_once_nobody_has_touched_them_for_a_day(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "fresh").mkdir()
    age(tmp_path / "old", 2)
    age(tmp_path / "fresh", 0)
    sweep_folder(tmp_path, now_ms=NOW, days=30, most_bytes=MUCH)
    assert left(tmp_path) == ["fresh"]


def test_it_ends_when_it_is_told_to(tmp_path: Path) -> None:
    for number in range(5):
        put(tmp_path / str(number), 40)
    answers = iter([True, True, False])
    swept = sweep_folder(tmp_path, now_ms=NOW, days=30, most_bytes=MUCH, go_on=lambda: next(answers))
    assert (swept.files, len(left(tmp_path))) == (2, 3)


def test_a_folder_that_is_not_there_is_no_failure(tmp_path: Path) -> None:
    assert sweep_folder(tmp_path / "none", now_ms=NOW, days=1, most_bytes=0).failures == ()
