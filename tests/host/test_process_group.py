"""A command runs without a terminal, says how it ended, and is gone when it is said to be (threats T16, T17)."""

import asyncio
import os
import signal
import sys
import tracemalloc
from pathlib import Path

import pytest

from rune.errors import CommandNotStartedError
from rune.host.process_group import MARK, Stream, run
from tests.host.commands import (
    ENVIRONMENT,
    Ran,
    alive,
    answer_into,
    own_descendants,
    own_descriptors,
    ran,
    shell,
    stop_at,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands orphans to a warden")

PYTHON = (sys.executable, "-I", "-S", "-c")


async def test_the_exit_code_and_both_streams_come_back() -> None:
    this = await ran(*shell("echo out; echo err >&2; exit 3"))
    assert this.ended is not None
    assert (this.ended.exit_code, this.ended.signal) == (3, None)
    assert (this.ended.timed_out, this.ended.cancelled, this.ended.swept, this.ended.survivors) == (
        False,
        False,
        0,
        False,
    )
    assert (this.text("stdout"), this.text("stderr")) == ("out\n", "err\n")


async def test_an_end_by_a_signal_is_told_from_an_exit_code() -> None:
    this = await ran(*shell("kill -SEGV $$"))
    assert this.ended is not None
    assert (this.ended.exit_code, this.ended.signal) == (None, signal.SIGSEGV)


async def test_output_arrives_while_the_command_runs_and_in_order(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    go = os.open(tmp_path / "go", os.O_RDWR)
    script = f"echo a; read x < {tmp_path}/go; echo b >&2; read x < {tmp_path}/go; echo c"
    # Each line is written only after the one before it was heard.
    this = await ran(*shell(script), on_text=answer_into(go))
    os.close(go)
    assert this.chunks == [("stdout", b"a\n"), ("stderr", b"b\n"), ("stdout", b"c\n")]


async def test_two_commands_run_at_a_time(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "one")
    one, other = await asyncio.gather(
        ran(*shell(f"echo hello > {tmp_path}/one")), ran(*shell(f"read x < {tmp_path}/one; echo $x"))
    )
    assert one.text() == ""
    assert other.text() == "hello\n"


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (("cat",), 0, ""),
        ((*PYTHON, "input()"), 1, "EOFError"),
        (shell("read answer || echo nobody; read again < /dev/tty"), 2, "No such device"),
        ((*PYTHON, "import getpass; getpass.getpass()"), 1, "EOFError"),
    ],
)
async def test_a_program_that_asks_gets_the_end_of_its_input_and_no_terminal(
    argv: tuple[str, ...], code: int, said: str
) -> None:
    this = await ran(*argv)
    assert this.ended is not None
    assert this.ended.exit_code == code
    assert said in this.text("stderr")


async def test_it_has_a_session_and_a_group_of_its_own() -> None:
    this = await ran(*PYTHON, "import os; print(os.getpid(), os.getpgid(0), os.getsid(0))")
    pid, group, session = map(int, this.text().split())
    assert pid == group
    assert session not in (os.getsid(0), os.getpgid(0))


async def test_signals_have_their_usual_effect_in_it() -> None:
    this = await ran("cat", "/proc/self/status")
    masks = dict(line.split(":\t") for line in this.text().splitlines() if line.startswith("Sig"))
    assert {int(masks[name], 16) for name in ("SigIgn", "SigBlk", "SigCgt")} == {0}


async def test_a_folder_is_entered_by_its_descriptor_whatever_became_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    folder = os.open(tmp_path / "old", os.O_PATH | os.O_DIRECTORY)
    (tmp_path / "old").rename(tmp_path / "new")
    (tmp_path / "old").mkdir()
    this = await ran("pwd", "-P", cwd=folder)
    os.close(folder)
    assert this.text() == f"{tmp_path}/new\n"
    assert (await ran("pwd", "-P", cwd=tmp_path / "new")).text() == f"{tmp_path}/new\n"


@pytest.mark.parametrize("environment", [{}, {"LC_CTYPE": "C"}, {"LANG": "C"}, {"LC_ALL": "C", "X": "a=b\nc\udcff"}])
async def test_the_environment_is_what_was_given_and_the_mark(environment: dict[str, str]) -> None:
    this = await ran("/usr/bin/env", "-0", environment=environment)
    given = b"".join(data for _, data in this.chunks).split(b"\0")[:-1]
    assert [line for line in given if not line.startswith(MARK.encode())] == [
        os.fsencode(f"{name}={value}") for name, value in environment.items()
    ]


async def test_it_holds_no_descriptor_but_its_three() -> None:
    script = "import os; print(sorted(os.listdir('/proc/self/fd')), os.readlink('/proc/self/fd/0'))"
    assert (await ran(*PYTHON, script)).text() == "['0', '1', '2', '3'] /dev/null\n"  # 3 is the listing itself


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("no-such-program-here",), "no such program"),
        (("/etc/passwd",), "may be run"),
        (("/",), "may be run"),
        (("echo", "a\0b"), "null byte"),
        (("echo", "x" * 200_000), "too long"),
        ((), "no program is named"),
        (("", "x"), "no program is named"),
    ],
)
async def test_what_cannot_be_started_says_why(argv: tuple[str, ...], said: str) -> None:
    before = own_descriptors(), own_descendants()
    with pytest.raises(CommandNotStartedError, match=said):
        await ran(*argv)
    assert (own_descriptors(), own_descendants()) == before


async def test_a_folder_that_cannot_be_entered_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "none", tmp_path / "file"):
        with pytest.raises(CommandNotStartedError, match="folder"):
            await ran("true", cwd=folder)
    descriptor = os.open(tmp_path / "file", os.O_RDONLY)
    with pytest.raises(CommandNotStartedError, match="folder"):
        await ran("true", cwd=descriptor)
    os.close(descriptor)


async def test_a_time_out_ends_it_and_what_it_said_is_kept() -> None:
    this = await ran(*shell("echo before; sleep 60"), timeout=0.2)
    assert this.ended is not None
    assert (this.ended.timed_out, this.ended.cancelled, this.ended.signal) == (True, False, signal.SIGTERM)
    assert this.text() == "before\n"
    assert this.ended.milliseconds >= 200


async def test_what_it_writes_while_it_is_stopped_is_kept() -> None:
    script = "trap 'echo cleaned up; exit 4' TERM; echo ready; while :; do sleep 60 & wait; done"
    this = await ran(*shell(script), on_text=stop_at("ready"))
    assert this.ended is not None
    assert (this.ended.cancelled, this.ended.exit_code) == (True, 4)
    assert this.text() == "ready\ncleaned up\n"


async def test_a_cancelled_task_ends_the_command_first() -> None:
    this = Ran()
    ready = asyncio.Event()

    def take(stream: Stream, data: bytes) -> None:
        this.chunks.append((stream, data))
        ready.set()

    before = own_descriptors(), own_descendants()
    script = "echo pid $$; exec sleep 60"
    task = asyncio.create_task(run(shell(script), cwd=Path("/"), environment=ENVIRONMENT, timeout=None, on_output=take))
    await ready.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert alive(this.pids()) == []
    assert len(this.pids()) == 1
    assert (own_descriptors(), own_descendants()) == before


async def test_a_second_cancellation_takes_the_grace_away() -> None:
    ready = asyncio.Event()
    loop = asyncio.get_running_loop()
    argv = shell("trap '' TERM; echo ready; while :; do sleep 60; done")

    def take(_stream: Stream, _data: bytes) -> None:
        ready.set()

    task = asyncio.create_task(run(argv, cwd=Path("/"), environment=ENVIRONMENT, timeout=None, on_output=take))
    await ready.wait()
    began = loop.time()
    task.cancel()
    loop.call_soon(loop.call_soon, task.cancel)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert loop.time() - began < 0.8  # the grace is a second


async def test_an_error_of_who_takes_the_output_ends_the_command_and_is_raised() -> None:
    before = own_descriptors(), own_descendants()

    def take(_stream: Stream, _data: bytes) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        await run(
            shell("while :; do echo y; done"), cwd=Path("/"), environment=ENVIRONMENT, timeout=None, on_output=take
        )
    assert (own_descriptors(), own_descendants()) == before


async def test_a_flood_is_taken_in_pieces_and_not_kept() -> None:
    size = largest = 0

    def take(_stream: Stream, data: bytes) -> None:
        nonlocal size, largest
        size += len(data)
        largest = max(largest, len(data))

    tracemalloc.start()
    argv = ("head", "-c", "100000000", "/dev/zero")
    ended = await run(argv, cwd=Path("/"), environment=ENVIRONMENT, timeout=60, on_output=take)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (ended.exit_code, size) == (0, 100_000_000)
    assert largest <= 65_536
    assert peak < 2_000_000


async def test_all_that_was_in_the_pipes_at_the_end_arrives() -> None:
    for _ in range(10):
        this = await ran(*shell("head -c 60000 /dev/zero; head -c 60000 /dev/zero >&2"))
        assert sorted((s, sum(len(d) for n, d in this.chunks if n == s)) for s in ("stdout", "stderr")) == [
            ("stderr", 60_000),
            ("stdout", 60_000),
        ]


async def test_nothing_is_left_open_after_many_commands() -> None:
    before = own_descriptors(), own_descendants()
    await asyncio.gather(*(ran(*shell("echo $$; exit 1")) for _ in range(20)))
    assert (own_descriptors(), own_descendants()) == before
