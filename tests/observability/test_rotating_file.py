"""Lines are whole, pieces are few, and an error leaves nothing behind."""

import os
import stat
import threading
from pathlib import Path

import pytest

from rune.observability.rotating_file import PIECE_LIMIT, PIECES, RotatingFile


def test_the_log_and_the_trace_file_take_three_pieces_of_ten_megabytes() -> None:
    assert (PIECE_LIMIT, PIECES) == (10 * 1024 * 1024, 3)


def test_lines_are_kept_in_at_most_so_many_pieces_the_newest_first(tmp_path: Path) -> None:
    file = RotatingFile(tmp_path / "a.log", limit=30, pieces=3)
    for number in range(20):
        file.append(b"line %03d!\n" % number)
    file.close()
    kept = [(tmp_path / name).read_text().split() for name in ("a.log.2", "a.log.1", "a.log")]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.log", "a.log.1", "a.log.2"]
    numbers = [int(word[:3]) for piece in kept for word in piece if word != "line"]
    assert numbers == list(range(12, 20))
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in tmp_path.iterdir())


def test_a_line_longer_than_a_piece_is_written_whole(tmp_path: Path) -> None:
    file = RotatingFile(tmp_path / "a.log", limit=10)
    file.append(b"x" * 50 + b"\n")
    file.append(b"y\n")
    file.close()
    assert (tmp_path / "a.log").read_bytes() == b"y\n"
    assert (tmp_path / "a.log.1").stat().st_size == 51
    assert not (tmp_path / "a.log.2").exists()


def test_what_was_there_before_is_gone_on_with(tmp_path: Path) -> None:
    for text in (b"a\n", b"b\n"):
        file = RotatingFile(tmp_path / "a.log")
        file.append(text)
        file.close()
    assert (tmp_path / "a.log").read_bytes() == b"a\nb\n"


def test_a_file_that_someone_removed_is_made_again(tmp_path: Path) -> None:
    file = RotatingFile(tmp_path / "a.log")
    file.append(b"a\n")
    (tmp_path / "a.log").unlink()
    file.append(b"b\n")
    file.close()
    assert (tmp_path / "a.log").read_bytes() == b"b\n"


def test_a_fifo_in_its_place_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.log")
    with pytest.raises(OSError, match=r"a\.log"):
        RotatingFile(tmp_path / "a.log").append(b"x\n")


def test_lines_from_many_threads_are_not_mixed(tmp_path: Path) -> None:
    file = RotatingFile(tmp_path / "a.log", limit=100, pieces=250)
    start = threading.Barrier(4)

    def write(name: int) -> None:
        start.wait(10)
        for number in range(100):
            file.append(f"{name}:{number}:{'x' * 40}\n".encode())

    threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    file.close()
    lines = [line for path in tmp_path.iterdir() for line in path.read_text().splitlines()]
    assert sorted(lines) == sorted(f"{name}:{number}:{'x' * 40}" for name in range(4) for number in range(100))
