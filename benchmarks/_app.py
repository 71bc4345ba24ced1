"""The real app in this process, painting into nothing: what a terminal would get is counted and timed."""

import asyncio
import gc
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ClassVar

from textual.driver import Driver
from textual.events import Key, Resize
from textual.geometry import Size

from rune.bootstrap import build
from rune.surface.surface import Surface
from rune.tui.app import RuneApp
from rune.tui.app_start import AppStart

WIDTH, HEIGHT = 120, 40
SECONDS = 60.0


class Nowhere(Driver):
    """A terminal that nobody looks at. All of `painted` are called with every piece that would have been written."""

    painted: ClassVar[list[Callable[[str], None]]] = []

    def write(self, data: str) -> None:
        """Take what would be painted."""
        for see in self.painted:
            see(data)

    def start_application_mode(self) -> None:
        """Say how large the terminal is."""
        size = Size(WIDTH, HEIGHT)
        self._app.post_message(Resize(size, size))

    def disable_input(self) -> None:
        """There is none."""

    def stop_application_mode(self) -> None:
        """Nothing was changed."""


@asynccontextmanager
async def running_app(environ: dict[str, str], folder: Path) -> AsyncGenerator[RuneApp]:
    """Open the app on a home, wait until it can be talked to, and leave it in the end."""
    services = build({"PATH": "", **environ}, surface_kind="app")

    async def opening(tell: Callable[[str], None]) -> Surface:
        del tell
        await services.start()
        return services.surface

    app = RuneApp(opening, start=AppStart(folder=str(folder)))
    app.driver_class = Nowhere
    running = asyncio.create_task(app.run_async(size=(WIDTH, HEIGHT), mouse=False))
    try:
        await until(lambda: app.chat.desk is not None)
        gc.freeze()  # as the command line does once the app stands
        yield app
    finally:
        app.leave()
        await running
        await services.close()


async def until(condition: Callable[[], bool]) -> None:
    """Let everything else run until the condition holds. Raises TimeoutError."""
    async with asyncio.timeout(SECONDS):
        while not condition():  # noqa: ASYNC110  # what is waited for is of many parts, and none has an event
            await asyncio.sleep(0.002)


def press(app: RuneApp, text: str) -> None:
    """Type on the app's keyboard; a line feed is Enter."""
    for character in text:
        key = Key("enter", "\r") if character == "\n" else Key(character, character)
        key.set_sender(app)
        app.post_message(key)


class Sight:
    """When a text first came to be painted. Textual paints what changed, so `mark` must come in one piece."""

    def __init__(self, mark: str) -> None:
        self.at: float | None = None
        self._mark = mark

    def __enter__(self) -> "Sight":
        Nowhere.painted.append(self._see)
        return self

    def __exit__(self, *_: object) -> None:
        Nowhere.painted.remove(self._see)

    def _see(self, data: str) -> None:
        if self.at is None and self._mark in data:
            self.at = time.perf_counter()


class Lateness:
    """How late the event loop comes back from sleeping a millisecond, in milliseconds."""

    def __init__(self) -> None:
        self.seen: list[float] = []
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Lateness":
        self._task = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _watch(self) -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.001)
            self.seen.append((time.perf_counter() - began) * 1000 - 1)
