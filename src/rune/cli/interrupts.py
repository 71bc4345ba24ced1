"""Ctrl-C, SIGTERM, a terminal that closes: the first stops the work in order, the next stops waiting for stdout."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager

from rune.cli.signals import heeded
from rune.cli.streams import StandardStreams


class Interrupts:
    """What a signal means while the event loop runs."""

    def __init__(self, streams: StandardStreams) -> None:
        self._streams = streams
        self._stop: Callable[[], object] | None = None
        self._task: asyncio.Task[object] | None = None
        self._asked = False

    @contextmanager
    def work(self) -> Generator[None]:
        """Let the first signal cancel the current task as long as this lasts. After it, each gives stdout up."""
        loop = asyncio.get_running_loop()
        for number in heeded():
            loop.add_signal_handler(number, self._heard)
        self._task = asyncio.current_task()
        try:
            yield
        finally:
            self._task = None

    @contextmanager
    def turn(self, stop: Callable[[], object]) -> Generator[Callable[[], None]]:
        """Let the first signal call `stop` instead. Yields what is to be called when the turn has shown something:
        it stops again what began only after the signal.
        """

        def seen() -> None:
            if self._asked:
                stop()

        self._stop = stop
        try:
            yield seen
        finally:
            self._stop = None

    def hurry(self) -> None:
        """Note a signal that came while no loop ran: what was said still goes to a reader that reads."""
        self._streams.hurry()

    def _heard(self) -> None:
        first, self._asked = not self._asked, True
        self._streams.hurry()
        if first and self._stop is not None:
            self._stop()
        elif first and self._task is not None:
            self._task.cancel()
        else:
            self._streams.out.give_up()
