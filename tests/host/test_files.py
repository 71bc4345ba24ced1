import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from rune.host.files import create_private, is_locked, lock_file, private_folder, replace_file, write_all


@pytest.fixture(autouse=True)
def open_mask() -> object:
    old = os.umask(0)
    yield
    os.umask(old)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_private_folder_is_made_with_its_parents_and_left_as_it_is_when_there(tmp_path: Path) -> None:
    private_folder(tmp_path / "a" / "b" / "c")
    assert {mode(tmp_path / "a"), mode(tmp_path / "a" / "b"), mode(tmp_path / "a" / "b" / "c")} == {0o700}
    (tmp_path / "a").chmod(0o755)
    private_folder(tmp_path / "a")
    assert mode(tmp_path / "a") == 0o755


def test_a_file_where_a_folder_should_be_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(OSError, match="not a folder"):
        private_folder(tmp_path / "a")
    with pytest.raises(OSError):
        private_folder(tmp_path / "a" / "b")


def test_a_file_is_replaced_whole_and_stays_private(tmp_path: Path) -> None:
    path = tmp_path / "trust.yaml"
    for data in (b"first", b"", b"x" * 3_000_000):
        replace_file(path, data)
        assert path.read_bytes() == data
        assert mode(path) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_replacement_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    code = """
import resource, sys
from pathlib import Path
from rune.host.files import replace_file
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    replace_file(Path(sys.argv[1]), b"x" * 5000)
except OSError:
    sys.exit(7)
"""
    replace_file(tmp_path / "file", b"old")
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path / "file")], check=False).returncode == 7
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]


def test_a_link_is_replaced_and_what_it_points_to_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"precious")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    replace_file(tmp_path / "link", b"new")
    assert (tmp_path / "target").read_bytes() == b"precious"
    assert not (tmp_path / "link").is_symlink()


def test_a_new_private_file_never_takes_the_place_of_another(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("link", "file"):
        (tmp_path / "file").touch()
        with pytest.raises(FileExistsError):
            create_private(tmp_path / name)
    descriptor = create_private(tmp_path / "fresh")
    assert mode(tmp_path / "fresh") == 0o600
    assert not os.get_inheritable(descriptor)
    os.close(descriptor)


def test_everything_is_written_although_the_system_takes_it_in_parts(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    data = os.urandom(1_000_000)
    if child := os.fork():
        os.close(writing)
        with os.fdopen(reading, "rb") as file:
            assert file.read() == data
        os.waitpid(child, 0)
    else:
        write_all(writing, data)
        os._exit(0)


def test_a_lock_is_held_once_and_the_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not is_locked(path)
    lock = lock_file(path)
    assert lock is not None
    assert lock_file(path) is None
    assert is_locked(path)
    # Any other descriptor of the file may come and go: the lock is not the process's but the descriptor's.
    path.read_bytes()
    assert is_locked(path)
    lock.write(b"a longer note")
    lock.write(b"a note")
    assert path.read_bytes() == b"a note"
    lock.release()
    lock.release()
    assert path.read_bytes() == b""
    assert not is_locked(path)
    with pytest.raises(ValueError, match="released"):
        lock.write(b"too late")
    again = lock_file(path)
    assert again is not None
    with again:
        assert is_locked(path)
    assert not is_locked(path)


def test_a_lock_is_not_taken_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(OSError):
        lock_file(tmp_path / "link")
    assert not (tmp_path / "target").exists()
