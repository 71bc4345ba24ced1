"""The process that stands between Rune and a command: whatever the command starts is ended with it.

`process_group` starts this file as a program of its own, with the standard library only, and of that
neither `pathlib` nor `typing`: it must be there in milliseconds. Linux gives orphans to their nearest
subreaper, which is this process, so that a double fork, a new session or a new group leads nowhere
else: as long as `waitpid` knows a child, something is left, and when it knows none, nothing is. When
Rune ends, however it ends, the life line closes and all is killed. Where there is no subreaper (not
Linux) the command's process group is what is reached.

Order: `command_warden.py LIFE REPORT FOLDER LOCALE ARGV...`: three descriptors, and what LC_CTYPE shall
be (`=value`, or `-` for unset). On LIFE Rune writes `s` to stop the command; its end kills. REPORT
gets lines: `C errno` or `F errno` (the folder cannot be entered, the program cannot be run), `X
status` (the command ended, as waitpid says it), at last `D count`: all are gone, and that many had
to be ended after the command.
"""

import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

GRACE_SECONDS = 1.0
"""From SIGTERM to SIGKILL: for what cleans up behind itself, and short for a person who waits."""

LINGER_SECONDS = 0.5
"""What the command left running may still write that long; then it is ended."""

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
# Between two rounds of killing: what forks faster than it is found has to be met again at once.
_ROUND_MILLISECONDS = 1
# Several, for what was started, or became an orphan, during the search before.
_SEARCHES = 4
# Python ignores the first two, and what Rune was started under may ignore the others: programs expect neither.
_DEFAULTS = ("SIGPIPE", "SIGXFSZ", "SIGINT", "SIGQUIT", "SIGHUP", "SIGTERM", "SIGCHLD", "SIGUSR1", "SIGUSR2")
# A program that signals everything it may signal must not end its warden.
_OUTLIVED = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2")


class Warden:
    """Watches one command from its start until nothing of it is left."""

    def __init__(self, *, life: int, report: int, command: int, wake: int) -> None:
        self._life = life
        self._report = report
        self._command = command
        self._wake = wake
        self._killing = False
        self._stopping = False
        self._left = 0
        self._deadline: float | None = None

    def watch(self) -> None:
        """Return when no child is left; only what no signal reaches (another user's) is waited for without end."""
        poll = select.poll()
        poll.register(self._life, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        while not self._reap():
            for descriptor, _ in poll.poll(self._patience()):
                if descriptor == self._wake:
                    os.read(self._wake, 512)
                elif os.read(self._life, 1):
                    self._stop()
                else:
                    poll.unregister(self._life)
                    self._killing = True
            if self._deadline is not None and time.monotonic() >= self._deadline:
                self._deadline = None
                if self._stopping:
                    self._killing = True
                else:
                    self._left = sum(1 for _ in descendants(os.getpid()))
                    self._stop()
            if self._killing:
                signal_all(self._command, signal.SIGKILL)
        os.write(self._report, b"D %d\n" % self._left)

    def _patience(self) -> float | None:
        if self._killing:
            return _ROUND_MILLISECONDS
        return None if self._deadline is None else max(0.0, (self._deadline - time.monotonic()) * 1000 + 1)

    def _stop(self) -> None:
        if not self._stopping:
            self._stopping = True
            self._deadline = time.monotonic() + GRACE_SECONDS
            self._ask()

    def _ask(self) -> None:
        signal_all(self._command, signal.SIGTERM)
        signal_all(self._command, signal.SIGCONT)  # one that is stopped hears nothing else

    def _reap(self) -> bool:
        """Take the ends of children; return whether there is none any more."""
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return False
                if pid == self._command:
                    os.write(self._report, b"X %d\n" % status)
                    if self._stopping:
                        self._ask()  # once more: what it started on its way out
                    else:
                        self._deadline = time.monotonic() + LINGER_SECONDS
        return True


def signal_all(group: int, number: int) -> None:
    """Send a signal to a process group and to every descendant of this process, whatever its group, each once."""
    # Found before the first is signalled: what loses its parent during the search is missed.
    found = list(descendants(os.getpid()))
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
    reached: set[int] = set()
    for _ in range(_SEARCHES):
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                if pid not in reached and os.getpgid(pid) != group:
                    os.kill(pid, number)
        reached.update(found)
        found = [pid for pid in descendants(os.getpid()) if pid not in reached]
        if not found:
            break


def descendants(root: int) -> Iterator[int]:
    """Yield the pids below a process, parents first; a process that is started meanwhile may be missed."""
    try:
        os.close(os.open(f"/proc/{root}/task/{root}/children", os.O_RDONLY))
        children = _children
    except OSError:
        children = children_by_stat()
    waiting = [root]
    while waiting:
        for pid in children(waiting.pop()):
            waiting.append(pid)
            yield pid


def _children(pid: int) -> list[int]:
    found: list[int] = []
    # A process that is gone has no children: they are somebody else's by now.
    with suppress(OSError), os.scandir(f"/proc/{pid}/task") as threads:
        for thread in threads:
            with suppress(OSError):
                found += map(int, _read(f"{thread.path}/children").split())
    return found


def children_by_stat() -> Callable[[int], list[int]]:
    """Return what says whose child a process was just now, for a kernel that keeps no list of children."""
    of: dict[int, list[int]] = {}
    for pid in processes():
        with suppress(OSError, IndexError, ValueError):
            of.setdefault(int(_status(pid)[1]), []).append(pid)
    return lambda pid: of.get(pid, [])


def processes() -> Iterator[int]:
    """Yield the pids of this machine; none where there is no /proc."""
    with suppress(OSError), os.scandir("/proc") as entries:
        yield from [int(entry.name) for entry in entries if entry.name.isdecimal()]


def marked(mark: bytes, session: int) -> Iterator[int]:
    """Yield what lives of a session, and what has this line in the environment it was started with."""
    for pid in processes():
        with suppress(OSError, IndexError):
            ours = os.getsid(pid) == session or mark in _read(f"/proc/{pid}/environ").split(b"\0")
            if ours and _status(pid)[0] != b"Z":
                yield pid


def _status(pid: int) -> list[bytes]:
    """Return the state of a process, its parent and what else `stat` says after its name, which may hold anything."""
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        parts: list[bytes] = []
        while part := os.read(descriptor, 65_536):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _start(argv: list[str], report: int) -> int:
    """Start the command in a process group of its own; how that failed is reported by the child."""
    warden = os.getpid()
    pid = os.fork()
    if pid == 0:
        _become(argv, report, warden)
    with suppress(OSError):  # the child does the same: whoever comes first
        os.setpgid(pid, pid)
    return pid


def _become(argv: list[str], report: int, warden: int) -> None:
    try:
        os.setpgid(0, 0)
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == warden:
            signal.set_wakeup_fd(-1)
            for name in _DEFAULTS:
                signal.signal(getattr(signal, name), signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            os.execvp(argv[0], argv)  # noqa: S606 - argv as it was approved, no shell
    except OSError as error:
        os.write(report, b"F %d\n" % (error.errno or 0))
    finally:
        os._exit(127)


def main() -> None:
    """Do what the order says; see the top of this file."""
    life, report, folder = map(int, sys.argv[1:4])
    # Where the locale is "C", Python has set it to something else.
    os.environ.pop("LC_CTYPE", None)
    if sys.argv[4].startswith("="):
        os.environ["LC_CTYPE"] = sys.argv[4][1:]
    # They came without it, as must be for this process; the command gets neither.
    for descriptor in (life, report, folder):
        os.set_inheritable(descriptor, False)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    # The life line says that Rune is gone; a warden that somebody stopped has to be woken to hear it.
    _prctl(_PR_SET_PDEATHSIG, signal.SIGCONT)
    try:
        os.fchdir(folder)
    except OSError as error:
        os.write(report, b"C %d\n" % (error.errno or 0))
        return
    wake, woken = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    for name in (*_OUTLIVED, "SIGCHLD"):
        signal.signal(getattr(signal, name), lambda _signal, _frame: None)
    command = _start(sys.argv[5:], report)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):  # the ends of the pipes are the command's alone
        os.dup2(null, descriptor)
    Warden(life=life, report=report, command=command, wake=wake).watch()


if __name__ == "__main__":
    with suppress(BrokenPipeError):  # Rune is gone; so is the command
        main()
    os._exit(0)
