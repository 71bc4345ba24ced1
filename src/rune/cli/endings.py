"""What ends the app from outside: signals, and a terminal that is no longer there."""

import io
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

from rune.cli.descriptors import STDERR, STDIN, STDOUT
from rune.cli.signals import heeded

DEADLINE_SECONDS = 10.0
_FOCUS_LOST = b"\x1b[O"


class Endings:
    """Asks for an end in order, and sees to it that there is one.

    `end` is called once, on any thread or out of a signal handler: it must only pass the wish on. When the process
    has not left `watch` by `deadline` seconds later, it is ended with `lost`, which must not return: what hangs
    then is a terminal that takes nothing, and the thread that waits for it hears no signal.
    """

    def __init__(self, lost: Callable[[], None], deadline: float = DEADLINE_SECONDS) -> None:
        self.asked = False
        self._lost = lost
        self._deadline = deadline
        self._end: Callable[[], object] | None = None
        self._over = threading.Event()

    @contextmanager
    def watch(self, end: Callable[[], object]) -> Generator[None]:
        """Watch for signals and the terminal as long as this lasts."""
        self._end = end
        numbers = heeded()
        # Not the event loop's own handlers: a loop that hangs in a write would never call them.
        before = [signal.signal(number, lambda _number, _frame: self.ask()) for number in numbers]
        threading.Thread(target=self._watch_terminal, name="rune terminal", daemon=True).start()
        try:
            yield
        finally:
            self._over.set()
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)

    def ask(self) -> None:
        """Ask for the end; asking again changes nothing."""
        if self.asked:
            return
        self.asked = True
        threading.Thread(target=self._insist, name="rune deadline", daemon=True).start()
        if self._end is not None:
            self._end()

    def _insist(self) -> None:
        if not self._over.wait(self._deadline):
            self._lost()

    def _watch_terminal(self) -> None:
        waiting = select.poll()
        waiting.register(STDIN, 0)  # hang-ups and errors are told without being asked for
        while not self._over.is_set():
            if any(told & (select.POLLHUP | select.POLLERR) for _, told in waiting.poll()):
                leave_terminal()
                self.ask()
                return


def leave_terminal() -> None:
    """Put something quiet in the place of a terminal that is gone.

    It answers every read with the end and every write with an error: who reads it in a loop would spin. The first
    read still gets something, since whoever was told that there is something to read must not wait for it.
    """
    silent, never_closed = os.pipe()
    os.write(never_closed, _FOCUS_LOST)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, STDIN)
    for descriptor in (STDOUT, STDERR):
        if os.isatty(descriptor) or not _usable(descriptor):
            os.dup2(nowhere, descriptor)


def _usable(descriptor: int) -> bool:
    try:
        os.write(descriptor, b"")
    except OSError:
        return False
    return True


@contextmanager
def stderr_on_screen() -> Generator[None]:
    """Let stderr be the terminal of stdout as long as this lasts: the app draws there, whatever `2>` says."""
    if isinstance(sys.__stderr__, io.TextIOWrapper):
        # Whatever PYTHONIOENCODING says: a terminal that is drawn on is told in UTF-8.
        sys.__stderr__.reconfigure(encoding="utf-8", errors="replace")
    kept = os.dup(STDERR)
    try:
        os.dup2(STDOUT, STDERR)
        yield
    finally:
        os.dup2(kept, STDERR)
        os.close(kept)
