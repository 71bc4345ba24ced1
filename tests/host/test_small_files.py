"""Small files are read whole or not at all, and changed by one process at a time."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rune.host.small_files import locked, read_bounded


def test_a_file_of_just_the_limit_is_read_and_one_byte_more_is_not(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"x" * 10)
    assert read_bounded(file, 10) == b"x" * 10
    with pytest.raises(OSError, match="larger than 9 bytes") as caught:
        read_bounded(file, 9)
    assert caught.value.errno == errno.EFBIG


def test_what_is_not_a_regular_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(OSError, match="not a regular file"):
            read_bounded(place, 10)


def test_a_lock_is_waited_for_and_its_file_stays(tmp_path: Path) -> None:
    lock = tmp_path / "a.lock"
    code = (
        "import sys\nfrom pathlib import Path\nfrom rune.host.small_files import locked\n"
        "print('ready', flush=True)\nwith locked(Path(sys.argv[1])): print('mine', flush=True)"
    )
    with locked(lock):
        other = subprocess.Popen([sys.executable, "-c", code, str(lock)], stdout=subprocess.PIPE, text=True)
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(0.2)
    assert other.communicate(timeout=30)[0] == "mine\n"
    assert lock.exists()


def test_a_lock_is_let_go_when_its_holder_fails(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="x"), locked(tmp_path / "a.lock"):
        raise ValueError("x")
    with locked(tmp_path / "a.lock"):
        pass


def test_a_link_in_the_place_of_a_lock_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r"a\.lock"), locked(tmp_path / "a.lock"):
        pass
    assert not (tmp_path / "elsewhere").exists()
