"""Whatever a command starts, and however it hides, is gone when the command is said to be gone (threats T17)."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rune.host import command_warden
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
    wait_gone,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands orphans to a warden")

PYTHON = (sys.executable, "-I", "-S", "-c")

# Names itself and waits. `hide` comes before, `ready` after all of a script's processes have said who they are.
STAY = "import os, signal, sys, time\ndef stay():\n    os.write(1, b'pid %d\\n' % os.getpid())\n    signal.pause()\n"
IGNORE = (
    "for s in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:\n"
    "    signal.signal(s, signal.SIG_IGN)\n"
)
DOUBLE_FORK = (
    "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        stay()\n    os._exit(0)\nos.wait()\n"
)
OWN_GROUP = "if os.fork() == 0:\n    os.setpgid(0, 0)\n    stay()\n"
IN_A_THREAD = (
    "import _thread\ndef work():\n    if os.fork() == 0:\n        stay()\n_thread.start_new_thread(work, ())\n"
)
CLEAN_ENVIRONMENT = (
    "if os.fork() == 0:\n    os.setsid()\n"
    "    os.execve('/bin/sh', ['sh', '-c', 'echo pid $$; exec sleep 60'], {'PATH': '/usr/bin:/bin'})\n"
)


def stop_when(processes: int) -> Callable[[Ran], None]:
    """Stop a command when that many of its processes have said who they are."""
    return lambda this: stop_at("pid")(this) if len(this.pids()) == processes else None


def python(*parts: str) -> tuple[str, ...]:
    return (*PYTHON, STAY + "".join(parts))


@pytest.mark.parametrize(
    ("parts", "processes"),
    [
        (("stay()",), 1),
        ((DOUBLE_FORK, "stay()"), 2),
        ((OWN_GROUP, "stay()"), 2),
        ((IN_A_THREAD, "stay()"), 2),
        ((CLEAN_ENVIRONMENT, "stay()"), 2),
        ((DOUBLE_FORK, OWN_GROUP, DOUBLE_FORK, "stay()"), 4),
    ],
)
async def test_what_heeds_signals_is_gone_at_once(parts: tuple[str, ...], processes: int) -> None:
    before = own_descriptors(), own_descendants()

    this = await ran(*python(*parts), on_text=stop_when(processes))
    took = this.seconds_since_stop()
    assert len(this.pids()) == processes
    assert alive(this.pids()) == []
    assert took < 0.1
    assert (own_descriptors(), own_descendants()) == before


@pytest.mark.parametrize(
    ("parts", "processes"), [((IGNORE, "stay()"), 1), ((IGNORE, DOUBLE_FORK, OWN_GROUP, "stay()"), 3)]
)
async def test_what_ignores_every_signal_is_gone_within_two_seconds(parts: tuple[str, ...], processes: int) -> None:
    this = await ran(*python(*parts), on_text=stop_when(processes))
    assert this.seconds_since_stop() < 2
    assert this.ended is not None
    assert (this.ended.cancelled, this.ended.signal) == (True, signal.SIGKILL)
    assert len(this.pids()) == processes
    assert alive(this.pids()) == []


@pytest.mark.parametrize("number", ["STOP", "TSTP", "TTIN"])
async def test_one_that_stopped_itself_is_ended_all_the_same(number: str) -> None:
    this = await ran(*shell(f"sh -c 'echo pid $$; kill -{number} $$; exit' & echo pid $$; kill -STOP $$"), timeout=0.3)
    assert this.ended is not None
    assert (this.ended.timed_out, this.ended.signal) == (True, signal.SIGTERM)
    assert len(this.pids()) == 2
    assert alive(this.pids()) == []


async def test_what_it_starts_on_its_way_out_is_asked_to_end_as_well() -> None:
    # What it starts is ready before it leaves itself.
    leave = (
        "r, w = os.pipe()\ndef leave(*_):\n    if os.fork():\n        os.read(r, 1)\n        os._exit(4)\n"
        "    signal.signal(signal.SIGTERM, signal.SIG_DFL)\n    os.write(w, b'r')\n    stay()\n"
        "signal.signal(signal.SIGTERM, leave)\nos.write(1, b'ready\\n')\nsignal.pause()\n"
    )
    this = await ran(*python(leave), on_text=stop_at("ready"))
    assert this.seconds_since_stop() < 0.6  # the grace is a second
    assert this.ended is not None
    assert this.ended.exit_code == 4
    assert alive(this.pids()) == []


async def test_what_was_left_running_ends_soon_after_the_command_and_is_counted() -> None:
    this = await ran(*shell("sleep 60 & echo pid $!; (setsid sleep 60 & echo pid $!); echo done"))
    assert this.ended is not None
    assert (this.ended.exit_code, this.ended.swept, this.ended.timed_out) == (0, 2, False)
    assert this.ended.milliseconds < 400  # of the command itself
    assert "done" in this.text()
    assert alive(this.pids()) == []


async def test_what_ends_by_itself_soon_after_the_command_may_finish_its_words(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    go = os.open(tmp_path / "go", os.O_RDWR)
    script = f"(read x < {tmp_path}/go; echo late) & echo early"
    this = await ran(*shell(script), on_text=answer_into(go))
    os.close(go)
    assert this.text() == "early\nlate\n"
    assert this.ended is not None
    assert this.ended.swept == 0


async def test_output_that_a_stranger_could_still_write_is_not_waited_for(tmp_path: Path) -> None:
    # The write end of the pipe is handed to a process that is not the command's.
    listener = "import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.bind(sys.argv[1])\ns.listen()\nprint()\n"
    take = "sys.stdout.flush()\nc, _ = s.accept()\nkept = socket.recv_fds(c, 1, 1)\nc.send(b'k')\nsys.stdin.read()\n"
    give = (
        "import socket, sys\nc = socket.socket(socket.AF_UNIX)\nc.connect(sys.argv[1])\n"
        "socket.send_fds(c, [b'x'], [1])\nc.recv(1)\nprint('given')\n"
    )
    place = str(tmp_path / "s")
    stranger = subprocess.Popen(  # noqa: ASYNC220 - it starts at once
        [sys.executable, "-I", "-c", listener + take, place], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert stranger.stdout is not None
    stranger.stdout.readline()
    this = await ran(sys.executable, "-I", "-c", give, place)
    assert this.text() == "given\n"
    assert this.ended is not None
    assert this.ended.milliseconds < 5_000
    stranger.communicate(b"")


@pytest.mark.parametrize("parts", [(DOUBLE_FORK,), (CLEAN_ENVIRONMENT,), (IGNORE, DOUBLE_FORK)])
async def test_a_warden_that_is_stopped_by_its_command_does_not_save_it(parts: tuple[str, ...]) -> None:
    stop_warden = "os.kill(os.getppid(), signal.SIGSTOP)\nstay()\n"
    this = await ran(*python(*parts, stop_warden), on_text=stop_when(2))
    assert this.seconds_since_stop() < 2
    assert this.ended is not None
    assert this.ended.cancelled
    assert alive(this.pids()) == []


@pytest.mark.parametrize("parts", [(DOUBLE_FORK,), (OWN_GROUP,), (IGNORE, DOUBLE_FORK)])
async def test_a_warden_that_is_killed_by_its_command_is_replaced(parts: tuple[str, ...], tmp_path: Path) -> None:
    before = own_descriptors()
    os.mkfifo(tmp_path / "go")
    go = os.open(tmp_path / "go", os.O_RDWR)
    kill_warden = f"open({str(tmp_path / 'go')!r}).readline()\nos.kill(os.getppid(), signal.SIGKILL)\nstay()\n"
    # Only when the hidden one has said who it is.
    this = await ran(*python(*parts, kill_warden), on_text=answer_into(go))
    os.close(go)
    assert this.ended is not None
    assert (this.ended.signal, this.ended.survivors) == (signal.SIGKILL, False)
    assert this.pids() != []
    assert alive(this.pids()) == []
    assert own_descriptors() == before


async def test_a_fork_bomb_is_put_out() -> None:
    # Each forks and forks; at most 300 live at a time.
    bomb = (
        "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (20, 20))\nos.write(1, b'lit\\n')\n"
        "depth = 0\nwhile True:\n    try:\n        if depth < 8 and os.fork() == 0:\n            depth += 1\n"
        "            os.setpgid(0, 0)\n        else:\n            depth += 1\n    except OSError:\n        pass\n"
    )
    before = own_descendants()
    this = await ran(sys.executable, "-I", "-c", STAY + bomb, on_text=stop_at("lit"))
    assert this.seconds_since_stop() < 5
    assert own_descendants() == before


async def test_one_that_flees_from_fork_to_fork_is_caught() -> None:
    # Never more than two at a time, each in a session of its own, none older than a moment.
    flee = IGNORE + "os.write(1, b'off\\n')\nwhile True:\n    if os.fork():\n        os._exit(0)\n    os.setsid()\n"
    before = own_descendants()
    this = await ran(*python(flee), on_text=stop_at("off"))
    assert this.ended is not None
    assert not this.ended.survivors
    assert own_descendants() == before


RUNE = """
import asyncio, os, sys
from pathlib import Path
from rune.host.process_group import run

def say(stream, data):
    os.write(1, data)

asyncio.run(run(sys.argv[1:], cwd=Path("/"), environment={"PATH": os.environ["PATH"]}, timeout=None, on_output=say))
"""


@pytest.mark.parametrize(
    ("parts", "processes"),
    [
        (("stay()",), 1),
        ((IGNORE, DOUBLE_FORK, OWN_GROUP, "stay()"), 3),
        ((CLEAN_ENVIRONMENT, "os.kill(os.getppid(), signal.SIGSTOP)\nstay()"), 2),
    ],
)
def test_nothing_outlives_rune_when_it_is_killed(parts: tuple[str, ...], processes: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", RUNE, *python(*parts)], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
    ) as rune:
        assert rune.stdout is not None
        pids = [int(rune.stdout.readline().split()[1]) for _ in range(processes)]
        everything = list(command_warden.descendants(rune.pid))
        assert set(pids) < set(everything)
        rune.kill()
        assert wait_gone(everything, 2) == []


def test_the_command_ends_with_its_warden_where_rune_can_do_nothing() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", RUNE, *python("stay()")], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
    ) as rune:
        assert rune.stdout is not None
        command = int(rune.stdout.readline().split()[1])
        warden = next(command_warden.descendants(rune.pid))
        rune.send_signal(signal.SIGSTOP)
        os.kill(warden, signal.SIGKILL)
        assert wait_gone([command], 2) == []
        rune.kill()


def test_descendants_are_found_also_where_the_kernel_keeps_no_list_of_children() -> None:
    with subprocess.Popen([*python(OWN_GROUP, "stay()")], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        pids = {int(process.stdout.readline().split()[1]) for _ in range(2)}
        children = command_warden.children_by_stat()
        assert {process.pid, *children(process.pid)} == pids
        for pid in pids:
            os.kill(pid, signal.SIGKILL)


# --- the campaign --------------------------------------------------------------------------------

CLOSE_ALL = "os.closerange(0, 64)\n"
WRITE = "while True:\n    os.write(1, b'y' * 65536)\n"
NASTY = (DOUBLE_FORK, OWN_GROUP, CLEAN_ENVIRONMENT, IGNORE, IN_A_THREAD)
ENDS = (
    "stay()\n",
    WRITE,
    CLOSE_ALL + "signal.pause()\n",
    "os.kill(0, signal.SIGSTOP)\n",
    "os.kill(os.getppid(), signal.SIGSTOP)\nstay()\n",
    "os._exit(7)\n",
    "os.abort()\n",
    "while True:\n    pass\n",
    "for _ in range(100):\n    os.fork() or os.setsid() or signal.pause()\n",
    "while True:\n    if os.fork():\n        os._exit(0)\n    os.setsid()\n",
)


@pytest.mark.slow
async def test_two_hundred_nasty_commands_leave_nothing() -> None:
    before = own_descriptors(), own_descendants()
    chance = random.Random(6)  # noqa: S311 - a campaign that can be repeated
    for number in range(200):
        parts = [*chance.sample(NASTY, chance.randrange(4)), ENDS[number % len(ENDS)]]
        environment = {**ENVIRONMENT, "NASTY": str(number)}
        this = await ran(*python(*parts), environment=environment, timeout=chance.choice((0.05, 0.2)))
        left = list(command_warden.marked(f"NASTY={number}".encode(), -1))
        assert (number, parts, alive(this.pids()), left) == (number, parts, [], [])
        assert this.ended is not None
        assert not this.ended.survivors
    assert (own_descriptors(), own_descendants()) == before
