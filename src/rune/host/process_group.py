"""Runs one command and all that it starts, and is through only when none of it is left (threats T16, T17).

The command has no terminal and no input, a session and a process group of its own, and a warden
(`command_warden`) that ends with it what it started, also what double-forked or left its group, and
ends everything at once when Rune goes, however it goes.

What works without a warden's help: it can be killed by what it watches. Then whatever bears the mark
of this call in its environment, or belongs to its session, is looked for and killed.
"""

import asyncio
import errno
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from rune.errors import CommandNotStartedError
from rune.host import command_warden

Stream = Literal["stdout", "stderr"]

MARK: Final = "RUNE_COMMAND"
"""The variable by which a command's processes are known; programs may ask it whether Rune runs them."""

# What is no text takes a millisecond for 2 KB to make safe, and keys have to be heard meanwhile.
_CHUNK_BYTES: Final = 16_384
# No pipe of an ordinary user holds more: what is left when nobody can write any more.
_PIPE_BYTES: Final = 1_048_576
# More than a warden needs, its grace included. One that takes longer was stopped or waits for what cannot be killed.
_PATIENCE_SECONDS: Final = command_warden.GRACE_SECONDS + 1.0
_ROUNDS: Final = 20
_ROUND_SECONDS: Final = 0.005
_WHY: Final[dict[int | None, str]] = {
    errno.ENOENT: "there is no such program",
    errno.EACCES: "it is not a program that may be run",
    errno.ENOEXEC: "it is neither a program nor a script that names its interpreter",
    errno.E2BIG: "its arguments are too long",
    errno.ENOTDIR: "part of its path is no folder",
}


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a command ended. One of `exit_code` and `signal` is set; `milliseconds` run to the command's own end.

    `swept`: how many processes it had left running, which were ended after it. `survivors`: something of it could
    not be ended (another user's process, one that hangs in the kernel).
    """

    exit_code: int | None
    signal: int | None
    timed_out: bool
    cancelled: bool
    milliseconds: int
    swept: int
    survivors: bool


async def run(
    argv: Sequence[str],
    *,
    cwd: int | Path,
    environment: Mapping[str, str],
    timeout: float | None,  # noqa: ASYNC109 - not the caller's wait is limited but the command, which ends in order
    on_output: Callable[[Stream, bytes], None],
    stop: asyncio.Event | None = None,
) -> Ended:
    """Run a command to its end and return how it was.

    `cwd` is a folder or an open descriptor of one. `timeout` is in seconds, None for no limit. `on_output` is called
    on the loop with at most 64 KB at a time, as the command writes; what arrives on both streams at once is given
    in either order. After the last call nothing of the command runs (but see `Ended.survivors`).

    `stop`, when it is set, ends the command as a time-out does: SIGTERM to all of it, SIGKILL a second later. When
    the task is cancelled or `on_output` raises, the same is done, and then the error goes on; a second
    cancellation takes the second away.

    Raises `CommandNotStartedError` where the program cannot be run.
    """
    command = _Command(argv, cwd=cwd, environment=environment, on_output=on_output)
    failure: BaseException | None = None
    try:
        await command.watch(timeout, stop)
    except asyncio.CancelledError as error:
        failure = error
    failure = await command.finish() or failure
    if failure is not None:
        raise failure
    return command.ended()


class _Command:
    """A command that was started, its warden and its pipes."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: int | Path,
        environment: Mapping[str, str],
        on_output: Callable[[Stream, bytes], None],
    ) -> None:
        self._argv = tuple(argv)
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._milliseconds = 0
        self._on_output = on_output
        self._token = secrets.token_hex(8)
        self._reports = b""
        self._due = asyncio.Event()  # there is no more to wait for
        self._gone = asyncio.Event()  # the warden is
        self._failure: Exception | None = None
        self._timed_out = self._cancelled = self._survivors = False
        self._pipes: dict[int, Stream] = {}
        try:
            self._warden = self._start(cwd, {**environment, MARK: self._token})
        except (OSError, ValueError) as error:  # ValueError: a NUL in a word
            raise self._not_started(error) from error
        self._loop.add_reader(self._report, self._hear)
        for descriptor in self._pipes:
            self._loop.add_reader(descriptor, self._read, descriptor)

    def _start(self, cwd: int | Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
        if not any(self._argv[:1]):
            raise ValueError("no program is named")
        with ExitStack() as theirs, ExitStack() as ours:
            life, self._life = _pipe(reading=theirs, writing=ours)
            self._report, report = _pipe(reading=ours, writing=theirs)
            stdout, stdout_end = _pipe(reading=ours, writing=theirs)
            stderr, stderr_end = _pipe(reading=ours, writing=theirs)
            folder = cwd if isinstance(cwd, int) else _open_folder(cwd, theirs)
            for descriptor in (self._report, stdout, stderr):
                os.set_blocking(descriptor, False)
            warden = subprocess.Popen(  # noqa: S603 - the words that were approved, without a shell
                [
                    *(sys.executable, "-I", "-S", command_warden.__file__, str(life), str(report), str(folder)),
                    *(f"={environment['LC_CTYPE']}" if "LC_CTYPE" in environment else "-", *self._argv),
                ],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=stdout_end,
                stderr=stderr_end,
                pass_fds=(life, report, folder),
                start_new_session=True,
            )
            ours.pop_all()
        self._pipes = {stdout: "stdout", stderr: "stderr"}
        return warden

    async def watch(self, timeout: float | None, stop: asyncio.Event | None) -> None:  # noqa: ASYNC109 - see `run`
        """Wait for the end, and no longer than that or until `stop` is set."""
        due = asyncio.ensure_future(self._due.wait())
        stopped = asyncio.ensure_future(stop.wait() if stop is not None else asyncio.Event().wait())
        try:
            await asyncio.wait((due, stopped), timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if not due.done() and b"X" not in self._reports:
                self._cancelled = stopped.done()
                self._timed_out = not self._cancelled
        finally:
            due.cancel()
            stopped.cancel()

    async def finish(self) -> BaseException | None:
        """See all of it gone, whatever cancels the caller; return what is to be raised then."""
        ending = asyncio.ensure_future(self._end())
        cancelled: asyncio.CancelledError | None = None
        while not ending.done():
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError as error:
                cancelled = error
                self._cut_life_line()
        ending.result()
        return self._failure or cancelled

    def ended(self) -> Ended:
        """Return how it was, or raise that it never was."""
        status: int | None = None
        swept = 0
        for kind, number in (line.split() for line in self._reports.decode("ascii").splitlines()):
            match kind:
                case "C":
                    raise _no_folder(int(number))
                case "F":
                    raise self._not_started(OSError(int(number), os.strerror(int(number))))
                case "X":
                    status = int(number)
                case _:
                    swept = int(number)
        # A warden that was killed took the command along and could not say so.
        code = -signal.SIGKILL if status is None else os.waitstatus_to_exitcode(status)
        return Ended(
            exit_code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            timed_out=self._timed_out,
            cancelled=self._cancelled,
            milliseconds=self._milliseconds,
            swept=swept,
            survivors=self._survivors,
        )

    async def _end(self) -> None:
        if not self._gone.is_set():
            self._ask_to_stop()
            with suppress(TimeoutError):  # what that means is looked into at once
                await asyncio.wait_for(self._gone.wait(), _PATIENCE_SECONDS)
        if not self._gone.is_set() or not (b"D" in self._reports or b"C" in self._reports):
            # It was killed or stopped by what it watched, or waits for what it cannot kill.
            self._warden.kill()
            mark = f"{MARK}={self._token}".encode("ascii")
            self._survivors = await asyncio.to_thread(_kill_marked, mark, self._warden.pid)
        self._close()
        await asyncio.to_thread(self._warden.wait)  # a matter of microseconds: its last descriptor is closed

    def _ask_to_stop(self) -> None:
        with suppress(BrokenPipeError):  # it is gone already, and its report ends in a moment
            if self._life is not None:
                os.write(self._life, b"s")
        self._warden.send_signal(signal.SIGCONT)  # the command may have stopped it

    def _cut_life_line(self) -> None:
        if self._life is not None:
            os.close(self._life)
            self._life = None

    def _hear(self) -> None:
        said = os.read(self._report, _CHUNK_BYTES)
        running = b"X" not in self._reports
        self._reports += said
        if running and (not said or b"X" in said):
            self._milliseconds = round((self._loop.time() - self._began) * 1000)
            # The rest has its own time, which the warden keeps. One that is hindered is not waited for without end.
            self._loop.call_later(command_warden.LINGER_SECONDS + _PATIENCE_SECONDS, self._due.set)
        if not said:
            self._loop.remove_reader(self._report)
            self._gone.set()
            self._due.set()

    def _read(self, descriptor: int) -> int:
        """Hand on what one reading gives; return how much that was."""
        try:
            data = os.read(descriptor, _CHUNK_BYTES)
        except BlockingIOError:
            return 0
        if not data:
            self._loop.remove_reader(descriptor)
        elif self._failure is None:
            try:
                self._on_output(self._pipes[descriptor], data)
            except Exception as error:  # noqa: BLE001 - `run` raises it when the command is gone
                self._failure = error
                self._due.set()
        return len(data)

    def _close(self) -> None:
        """Take what is still in the pipes: nobody writes any more, but for one outside who was given an end."""
        for descriptor in self._pipes:
            taken = 0
            while taken < _PIPE_BYTES and (size := self._read(descriptor)):
                taken += size
        for descriptor in (self._report, *self._pipes):
            self._loop.remove_reader(descriptor)
            os.close(descriptor)
        self._cut_life_line()

    def _not_started(self, error: OSError | ValueError) -> CommandNotStartedError:
        number = error.errno if isinstance(error, OSError) else None
        name = self._argv[0] if self._argv else ""
        return CommandNotStartedError(f"{name!r} could not be started: {_WHY.get(number, error)}.")


def _pipe(*, reading: ExitStack, writing: ExitStack) -> tuple[int, int]:
    """Return a pipe's two ends, each closed by its stack."""
    ends = os.pipe()
    reading.callback(os.close, ends[0])
    writing.callback(os.close, ends[1])
    return ends


def _open_folder(path: Path, closing: ExitStack) -> int:
    try:
        folder = os.open(path, os.O_DIRECTORY | getattr(os, "O_PATH", os.O_RDONLY))
    except OSError as error:
        raise _no_folder(error.errno) from error
    closing.callback(os.close, folder)
    return folder


def _no_folder(number: int | None) -> CommandNotStartedError:
    return CommandNotStartedError(f"The folder to run in cannot be entered: {os.strerror(number or 0)}.")


def _kill_marked(mark: bytes, session: int) -> bool:
    """Kill a session and what bears a mark; return whether some of it lives on."""
    for _ in range(_ROUNDS):
        found = list(command_warden.marked(mark, session))
        if not found:
            return False
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_ROUND_SECONDS)
    return True
