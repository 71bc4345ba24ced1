"""Runs real commands for tests, and looks whether something of them is left."""

import asyncio
import os
import select
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rune.host import command_warden
from rune.host.process_group import Ended, Stream, run

ENVIRONMENT = {"PATH": os.environ["PATH"]}


class Ran:
    """What a command wrote so far, and how it ended."""

    def __init__(self) -> None:
        self.chunks: list[tuple[Stream, bytes]] = []
        self.stop = asyncio.Event()
        self.ended: Ended | None = None
        self.stopped_at = 0.0

    def text(self, stream: Stream = "stdout") -> str:
        return b"".join(data for name, data in self.chunks if name == stream).decode()

    def pids(self) -> list[int]:
        """Return the pids which the command named, in lines of `pid 123`."""
        return [int(line.split()[1]) for line in self.text().splitlines() if line.startswith("pid ")]

    def seconds_since_stop(self) -> float:
        return time.monotonic() - self.stopped_at


async def ran(
    *argv: str,
    cwd: int | Path = Path("/"),
    environment: Mapping[str, str] = ENVIRONMENT,
    timeout: float | None = 30,  # noqa: ASYNC109 - handed on
    on_text: Callable[[Ran], None] | None = None,
) -> Ran:
    """Run a command to its end. `on_text` is called after each piece of output."""
    this = Ran()

    def take(stream: Stream, data: bytes) -> None:
        this.chunks.append((stream, data))
        if on_text is not None:
            on_text(this)

    this.ended = await run(argv, cwd=cwd, environment=environment, timeout=timeout, on_output=take, stop=this.stop)
    return this


def stop_at(word: str) -> Callable[[Ran], None]:
    """Stop the command when it has written a word."""

    def look(this: Ran) -> None:
        if word in this.text() and not this.stop.is_set():
            this.stopped_at = time.monotonic()
            this.stop.set()

    return look


def answer_into(fifo: int) -> Callable[[Ran], None]:
    """Write a line for the command after each piece of its output."""

    def answer(_this: Ran) -> None:
        os.write(fifo, b"\n")

    return answer


def shell(script: str) -> Sequence[str]:
    return ("sh", "-c", script)


def alive(pids: Sequence[int]) -> list[int]:
    """Return those of the pids that still run; one that is dead and not yet reaped by init does not."""
    return [pid for pid in pids if _state(pid) not in ("", "Z", "X")]


def wait_gone(pids: Sequence[int], seconds: float) -> list[int]:
    """Wait until all are gone; return those that are not."""
    poll = select.poll()
    open_ones: dict[int, int] = {}
    for pid in pids:
        try:
            open_ones[os.pidfd_open(pid)] = pid
        except ProcessLookupError:
            continue
    for descriptor in open_ones:
        poll.register(descriptor, select.POLLIN)
    until = time.monotonic() + seconds
    left = dict(open_ones)
    while left and (wait := until - time.monotonic()) > 0:
        for descriptor, _ in poll.poll(wait * 1000):
            poll.unregister(descriptor)
            del left[descriptor]
    for descriptor in open_ones:
        os.close(descriptor)
    return list(left.values())


def own_descendants() -> set[int]:
    return set(command_warden.descendants(os.getpid()))


def own_descriptors() -> list[str]:
    found: list[str] = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found.append(f"{entry.name} {entry.readlink()}")
        except FileNotFoundError:
            continue  # the descriptor of the listing itself
    return sorted(found)


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0].decode()
    except (FileNotFoundError, ProcessLookupError):
        return ""
