"""stdout and stderr without waiting for them: a thread writes, everybody else goes on.

A turn runs on the event loop, and so do the signals that stop it; a reader that does not read must hold up
neither. What is written waits in memory, in order, until its reader takes it or is given up.
"""

import errno
import os
import select
import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

from rune.cli.descriptors import STDERR, STDOUT, put

# What one write may hold. A blocking pipe takes all of it before `put` returns, and only then is it known that
# somebody reads.
CHUNK = 16 * 1024
PATIENCE_SECONDS = 0.7


class Stream(Protocol):
    """Where bytes go. `lost` says why they no longer arrive; what is written then is dropped, and `on_lost` is
    called once when that begins, on whatever thread notices. `unwritten` counts the bytes that nobody has taken.
    """

    is_terminal: bool
    lost: OSError | None
    on_lost: Callable[[], None] | None
    unwritten: int

    def write(self, data: bytes) -> None:
        """Take bytes; never waits, never raises."""
        ...

    def look(self) -> None:
        """Notice a reader that went away while nothing was written."""
        ...


class Writer:
    """Writes pieces to descriptors, one after the other, on a thread of its own that dies with the process."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[tuple[StandardStream, bytes]] = deque()
        self._busy = False
        self._thread: threading.Thread | None = None

    def append(self, stream: "StandardStream", data: bytes) -> None:
        """Queue a piece; never waits for a reader."""
        with self._changed:
            self._waiting.append((stream, data))
            stream.unwritten += len(data)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="rune streams", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def drain(self, patience: float | None = None) -> bool:
        """Wait until all of it was written or lost. False when, for `patience` seconds, no reader took anything."""
        with self._changed:
            while self._waiting or self._busy:
                if not self._changed.wait(patience):
                    return False
            return True

    def _run(self) -> None:
        while True:
            stream, data = self._next()
            failure = self._write(stream, data)
            if failure is not None:
                stream.lose(failure)

    def _next(self) -> tuple["StandardStream", bytes]:
        with self._changed:
            self._busy = False
            self._changed.notify_all()
            while not self._waiting:
                self._changed.wait()
            stream, first = self._waiting.popleft()
            pieces, size = [first], len(first)
            while self._waiting and self._waiting[0][0] is stream and size < CHUNK:
                pieces.append(self._waiting.popleft()[1])
                size += len(pieces[-1])
            self._busy = True
            return stream, b"".join(pieces)

    def _write(self, stream: "StandardStream", data: bytes) -> OSError | None:
        view = memoryview(data)
        while view and not stream.is_over:
            try:
                taken = put(stream.descriptor, view[:CHUNK])
            except OSError as error:
                return error
            view = view[taken:]
            with self._changed:
                stream.unwritten -= taken
                self._changed.notify_all()
        return None


class StandardStream:
    """stdout or stderr. `on_lost` is called once, on the writer's thread, when nothing arrives there any more;
    `unwritten` counts the bytes that nobody has taken yet.
    """

    def __init__(self, descriptor: int, writer: Writer, lost: OSError | None = None) -> None:
        self.descriptor = descriptor
        self.is_terminal = lost is None and os.isatty(descriptor)
        self.lost = lost
        self.on_lost: Callable[[], None] | None = None
        self.unwritten = 0
        self._writer = writer
        self._given_up = False

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to be written here."""
        return self._given_up or self.lost is not None

    def write(self, data: bytes) -> None:
        """Take bytes; never waits, never raises."""
        if not self.is_over:
            self._writer.append(self, data)

    def look(self) -> None:
        """Notice a reader that went away while nothing was written: a pipe says so when it is asked."""
        if not self.is_over:
            asked = select.poll()
            asked.register(self.descriptor, 0)
            if any(state & select.POLLERR for _, state in asked.poll(0)):
                self.lose(BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)))

    def lose(self, failure: OSError) -> None:
        """Note that nothing arrives any more, and why."""
        self.lost = failure
        if (tell := self.on_lost) is not None:
            tell()

    def give_up(self) -> None:
        """Write no more, whatever waits. What a write that hangs has in hand goes with the process."""
        self._given_up = True

    def drain(self, patience: float | None = None) -> bool:
        """Wait until all of it was written or lost; see `Writer.drain`. Given up, there is nothing to wait for."""
        return self._given_up or self._writer.drain(patience)


class StandardStreams:
    """Both, and the end of both. `closed` are the numbers of those that were closed at the start."""

    def __init__(self, closed: frozenset[int] = frozenset()) -> None:
        writer = Writer()
        self.out = StandardStream(STDOUT, writer, _closed(STDOUT, closed))
        # Order between the two can be seen only where they are the same thing: then one writer serves both.
        # Where they are not, one that is stuck must not hold up the other.
        self.err = StandardStream(STDERR, writer if _same(STDOUT, STDERR) else Writer(), _closed(STDERR, closed))
        self._patience: float | None = None

    def hurry(self) -> None:
        """Somebody wants an end: from now on wait only for a reader that reads."""
        self._patience = PATIENCE_SECONDS

    def drain(self) -> None:
        """Wait until both were written, lost, or, after `hurry`, not read for a moment."""
        for stream in (self.out, self.err):
            stream.drain(self._patience)


class StreamClosedError(OSError):
    """The stream was closed before Rune began."""


def _closed(descriptor: int, closed: frozenset[int]) -> OSError | None:
    return StreamClosedError() if descriptor in closed else None


def _same(one: int, other: int) -> bool:
    first, second = os.fstat(one), os.fstat(other)
    return (first.st_dev, first.st_ino) == (second.st_dev, second.st_ino)
