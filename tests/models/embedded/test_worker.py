"""The worker as a process: what it does when its life line ends, on any system."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from rune.models.embedded.worker import WorkerOrder

_FAKES = Path(__file__).parents[2] / "fakes" / "llama"


def _start(folder: Path, parent: int) -> subprocess.Popen[bytes]:
    order = WorkerOrder(
        model="any.gguf", socket=str(folder / "run" / "llm.sock"), key="k", num_ctx=512, parent=parent, threads=None
    )
    folder.joinpath("run").mkdir(mode=0o700)
    environ = {**os.environ, "PYTHONPATH": str(_FAKES), "RUNE_FAKE_LLAMA": str(folder)}
    command = [sys.executable, "-P", "-m", "rune.models.embedded.worker"]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ)
    assert worker.stdin is not None
    worker.stdin.write(msgspec.json.encode(order) + b"\n")
    worker.stdin.flush()
    return worker


@pytest.mark.parametrize("end", ["life line", "SIGTERM"])
def test_it_ends_with_its_life_line_or_when_asked_and_removes_its_socket(tmp_path: Path, end: str) -> None:
    with _start(tmp_path, os.getpid()) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"ready\n"
        assert tmp_path.joinpath("run", "llm.sock").is_socket()
        if end == "SIGTERM":
            worker.terminate()
        else:
            worker.stdin.close()
        assert worker.wait(5) == 0
    assert not tmp_path.joinpath("run").exists()


def test_a_worker_whose_parent_was_gone_before_it_began_does_not_serve(tmp_path: Path) -> None:
    with _start(tmp_path, 1) as worker:
        assert worker.stdout is not None
        assert worker.stdout.read() == b""
        assert worker.wait(5) == 5


def test_an_interrupt_from_the_keyboard_is_not_for_it(tmp_path: Path) -> None:
    with _start(tmp_path, os.getpid()) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"ready\n"
        status = Path(f"/proc/{worker.pid}/status").read_text(encoding="ascii")
        (ignored,) = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigIgn:")]
        assert ignored & 1 << (signal.SIGINT - 1)
        worker.stdin.close()
        assert worker.wait(5) == 0
