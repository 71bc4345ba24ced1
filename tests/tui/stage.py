"""The real app on a real home, with a scripted model, driven through Textual's pilot."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.driver import Driver
from textual.events import Paste, Resize
from textual.geometry import Size
from textual.pilot import Pilot

from rune.bootstrap import Services, build
from rune.host.clock import Clock
from rune.models.scripted import Answer, Answers, ScriptedTransport, says
from rune.models.transport import ChatTransport
from rune.surface.surface import Surface
from rune.tui.app import RuneApp
from rune.tui.app_start import AppStart
from rune.tui.desk import Desk
from rune.tui.outbox import Outbox
from rune.tui.talk import Talk
from rune.tui.widgets.transcript import TranscriptView

SECONDS = 20.0


class Stage:
    """The running app, and short ways to use and read it."""

    def __init__(self, app: RuneApp, pilot: Pilot[None], model: ScriptedTransport, services: list[Services]) -> None:
        self.app = app
        self.pilot = pilot
        self.model = model
        self._services = services

    @property
    def surface(self) -> Surface:
        return self._services[0].surface

    @property
    def talk(self) -> Talk:
        return self._desk.talk

    @property
    def outbox(self) -> Outbox:
        return self._desk.outbox

    @property
    def _desk(self) -> Desk:
        desk = self.app.chat.desk
        assert desk is not None
        return desk

    async def paint(self) -> None:
        """Let what was told arrive, and paint it now: much quicker than waiting until nothing else is to do."""
        for _ in range(4):
            await asyncio.sleep(0)
        self.app.screen._on_timer_update()  # pyright: ignore[reportPrivateUsage]  # what Textual's own pilot calls

    def text(self) -> str:
        """Return what stands on the screen, a line each."""
        # There is no public way to read the screen as text; this is what is painted.
        strips = self.app.screen._compositor.render_strips()  # pyright: ignore[reportPrivateUsage]  # tests look inside
        return "\n".join(strip.text.rstrip() for strip in strips)

    @property
    def written(self) -> list[str]:
        """Everything that was written to the terminal, piece by piece."""
        # There is no public way to the driver.
        driver = self.app._driver  # pyright: ignore[reportPrivateUsage]  # tests look inside
        assert isinstance(driver, RecordingDriver)
        return driver.written

    def shows(self, text: str) -> bool:
        return text in self.text()

    async def until(self, condition: Callable[[], bool], what: str = "it") -> None:
        """Let the app go on until the condition holds; fails with the screen after a deadline."""
        deadline = asyncio.get_running_loop().time() + SECONDS
        while not condition():
            assert asyncio.get_running_loop().time() < deadline, f"{what} never came:\n{self.text()}"
            await self.pilot.pause()

    async def until_shown(self, *texts: str) -> None:
        for text in texts:
            await self.until(lambda text=text: self.shows(text), repr(text))

    async def until_gone(self, text: str) -> None:
        await self.until(lambda: not self.shows(text), f"the end of {text!r}")

    async def type(self, text: str) -> None:
        await self.pilot.press(*text)

    async def paste(self, text: str) -> None:
        event = Paste(text)
        event.set_sender(self.app)
        self.app.post_message(event)
        await self.pilot.pause()

    async def say(self, text: str) -> None:
        await self.type(text)
        await self.pilot.press("enter")

    async def idle(self) -> None:
        await self.until(lambda: not self.talk.busy, "the end of the turn")
        await self.pilot.pause()

    async def settled(self) -> None:
        """Wait until nothing of the screen is still being found out or drawn; a turn may run on."""
        workers = self.app.workers
        # What lies behind another screen may wait for the person.
        behind = [each for each in workers if each.node.screen is not self.app.screen]
        await self.until(lambda: all(each.is_finished or each in behind for each in workers), "the end of all workers")
        views = self.app.chat.query(TranscriptView)
        await self.until(lambda: not any(view.busy for view in views), "the end of drawing ahead")
        await self.pilot.pause()


async def said(at: Stage, text: str, answer: str) -> str:
    """Say something and wait for the end of its answer; returns the conversation's id."""
    await at.say(text)
    await at.until_shown(answer)
    await at.idle()
    assert at.talk.conversation_id is not None
    return at.talk.conversation_id


@asynccontextmanager
async def open_in_two(
    tmp_path: Path, answers: Answers = (), *, there: Sequence[Answer] = ()
) -> AsyncGenerator[tuple[Stage, Stage, str]]:
    """Have one Rune hold a conversation in which a river was named, and another one read it; gives both, and its id.

    `there` is answered further in the first, `answers` in the second.
    """
    async with stage(tmp_path, [says("The Rhine."), *there]) as first:
        identity = await said(first, "name a river", "The Rhine.")
        async with stage(tmp_path, answers, resume=identity) as second:
            await second.until_shown("The Rhine.", "esc: only read")
            yield first, second, identity


def opening_of(
    home: Path, transports: Sequence[ChatTransport], services: list[Services], environ: Mapping[str, str] | None = None
) -> Callable[[Callable[[str], None]], Any]:
    """Return what an app is opened with: real services on `home`, appended to `services` for whoever closes them."""

    async def opening(tell: Callable[[str], None]) -> Surface:
        del tell
        names = {"RUNE_HOME": str(home), "PATH": "", **(environ or {})}
        built = await asyncio.to_thread(build, names, surface_kind="app", transports=tuple(transports))
        services.append(built)
        await built.start()
        return built.surface

    return opening


class RecordingDriver(Driver):
    """A terminal that keeps everything that is written to it, in `written`, and never types."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.written: list[str] = []

    def write(self, data: str) -> None:
        self.written.append(data)

    def start_application_mode(self) -> None:
        assert self._size is not None
        size = Size(*self._size)
        self._app.post_message(Resize(size, size))

    def disable_input(self) -> None:
        pass

    def stop_application_mode(self) -> None:
        pass


@asynccontextmanager
async def on_a_terminal(app: RuneApp, size: tuple[int, int]) -> AsyncGenerator[Pilot[None]]:
    """Run the app as on a terminal: it paints, and what it writes is kept."""
    app.driver_class = RecordingDriver
    running = asyncio.create_task(app.run_async(size=size, mouse=False))
    try:
        with app._context():  # pyright: ignore[reportPrivateUsage]  # what Textual's own pilot stands in
            yield Pilot(app)
    finally:
        app.exit()
        await running
        if (error := app._exception) is not None:  # pyright: ignore[reportPrivateUsage]  # as above
            raise error


@asynccontextmanager
async def stage(
    tmp_path: Path,
    answers: Answers = (),
    *,
    size: tuple[int, int] = (80, 24),
    model: ScriptedTransport | None = None,
    transports: Sequence[ChatTransport] | None = None,
    folder: Path | None = None,
    opened: bool = True,
    painted: bool = False,
    clock: Clock | None = None,
    **start: Any,
) -> AsyncGenerator[Stage]:
    """Open the app on `tmp_path/home` in a project folder; in the end leave it and close what it was opened with.

    `painted`: it writes what a terminal would get, see `Stage.written`. `clock` says when a question could be read.
    """
    model = model or ScriptedTransport(answers)
    folder = folder or tmp_path / "project"
    folder.mkdir(exist_ok=True)
    services: list[Services] = []
    opening = opening_of(tmp_path / "home", [model] if transports is None else transports, services)
    app = RuneApp(opening, start=AppStart(folder=str(folder.resolve()), **start), clock=clock)
    try:
        async with on_a_terminal(app, size) if painted else app.run_test(size=size) as pilot:
            running = Stage(app, pilot, model, services)
            if opened:
                await running.until(lambda: app.chat.desk is not None, "the desk")
                await pilot.pause()
            yield running
            app.leave()
            async with asyncio.timeout(SECONDS):
                while app.is_running and app.return_code is None:  # noqa: ASYNC110  # of this end there is no event
                    await asyncio.sleep(0.005)
    finally:
        for each in services:
            await each.close()
