import errno
import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from rune.host.beneath import sha256_of

# Lets this process be refused one system call, as a container's filter does it.
FILTERED = """
import ctypes, errno, struct, sys
from pathlib import Path
from rune.host.beneath import Beneath
from rune.host.linux_calls import openat2
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, 437), (0x06, 0, 0, 0x50000 | int(sys.argv[2])), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("@HP", len(steps), ctypes.addressof(code)))
prctl = ctypes.CDLL(None, use_errno=True).prctl
if prctl(38, 1, 0, 0, 0) or prctl(22, 2, program, 0, 0):
    sys.exit(77)
try:
    openat2(-100, b".", 0, 0)
except OSError as error:
    assert error.errno == int(sys.argv[2])
else:
    sys.exit("not refused")
with Beneath(Path(sys.argv[1])) as beneath:
    assert beneath.open("code/a.py").place == b"src/a.py"
    for path in ("out.txt", "../outside.txt"):
        try:
            beneath.open(path)
        except OSError as error:
            assert error.errno == errno.EXDEV
        else:
            sys.exit(f"{path} was opened")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="filters of system calls are Linux' own")
@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOSYS])
def test_where_the_kernel_refuses_the_call_the_walk_is_taken(tmp_path: Path, number: int) -> None:
    root = tmp_path / "root"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").touch()
    (root / "code").symlink_to("src")
    (tmp_path / "outside.txt").touch()
    (root / "out.txt").symlink_to("../outside.txt")
    ended = subprocess.run([sys.executable, "-c", FILTERED, str(root), str(number)], check=False)
    if ended.returncode == 77:
        pytest.skip("this system installs no filters")
    assert ended.returncode == 0


def test_the_hash_of_an_open_file_does_not_move_its_position(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"a = 1\n")
    with (tmp_path / "a.py").open("rb") as file:
        assert sha256_of(file.fileno()) == hashlib.sha256(b"a = 1\n").hexdigest()
        assert file.read() == b"a = 1\n"
