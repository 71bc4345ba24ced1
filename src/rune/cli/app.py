"""The terminal app out of the command line: opens it, and lets it go in order whatever ended it."""

import asyncio
import gc
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from rune.cli.endings import Endings, stderr_on_screen
from rune.cli.exit_codes import ExitCode
from rune.cli.first_frame import FirstFrame
from rune.cli.loading import Loading
from rune.cli.output import Output
from rune.cli.signals import HeldBack
from rune.errors import RuneError

if TYPE_CHECKING:
    from rune.surface.rows import ApprovalRow
    from rune.surface.surface import Surface
    from rune.tui.app import RuneApp
    from rune.tui.app_start import AppStart


# What must be written is written in milliseconds. What takes so long hangs: on a disk, on a lock that is never given
# back, and nobody is there any more to press a key.
CLOSING_SECONDS = 15.0


class Life(Protocol):
    """Everything that runs behind the app, with its beginning and its end."""

    surface: "Surface"

    async def start(self) -> None:
        """Bring it up. Raises StorageError."""
        ...

    async def close(self) -> None:
        """Let it go; may be called twice."""
        ...


# Called on a thread, with what is to be told how far it is.
Build = Callable[[Callable[[str], None]], Life]


class Opening:
    """Builds what runs behind the app while the app is already there. `close` in the end, whatever happened."""

    def __init__(self, build: Build, shown: Callable[[], None]) -> None:
        self._build = build
        self._shown = shown
        self._built: asyncio.Future[Life] | None = None
        self._surface: Surface | None = None
        self.left_waiting: Sequence[ApprovalRow] = ()
        """The questions that waited when it was closed."""

    async def __call__(self, told: Callable[[str], None]) -> "Surface":
        """Return what the app speaks with. Raises ConfigError, StorageError."""
        self._shown()
        self._built = asyncio.ensure_future(asyncio.to_thread(self._build, told))
        # Shielded: a thread cannot be stopped, and what it has built must be closed.
        life = await asyncio.shield(self._built)
        await life.start()
        # What is there now stays: a collection that looked through all of it would hold up a key for 40 ms.
        gc.freeze()
        self._surface = life.surface
        return life.surface

    async def close(self) -> None:
        """Wait for what is being built, and close it. What could not be built was told to the app already."""
        if self._built is None:
            return
        self.left_waiting = await self._waiting()
        await asyncio.wait([self._built])
        if self._built.exception() is None:
            await self._built.result().close()

    async def _waiting(self) -> Sequence["ApprovalRow"]:
        """Return the questions that wait as the app goes; none where that cannot be read, or nothing came up."""
        if self._surface is None:
            return ()
        try:
            return await self._surface.views.pending_approvals()
        except RuneError:  # nothing is lost: `rune approve` lists them, or says why it cannot
            return ()


def run_app(start: "AppStart", build: Build, frame: FirstFrame, output: Output) -> ExitCode:
    """Show the app until it ends; returns the exit code.

    `build` is called once the app stands. Raises what ended the app when that was an error; the terminal is
    then as it was.
    """
    # The larger part of the time until the app stands.
    with HeldBack(), Loading():
        from rune.tui.app import RuneApp

    def lost() -> None:
        try:
            frame.abandon()
        finally:
            os._exit(ExitCode.INTERRUPTED)

    endings = Endings(lost)
    closing = threading.Timer(CLOSING_SECONDS, lost)
    closing.daemon = True
    opening = Opening(build, lambda: _hand_over(frame, app))
    with stderr_on_screen():
        app = RuneApp(opening, start=start)
        try:
            asyncio.run(_live(app, opening, frame, endings, closing.start))
        finally:
            closing.cancel()
            frame.restore()
    for line in with_questions(app.goodbye, opening.left_waiting):
        output.own_line(line)
    if app.failure is not None:
        raise app.failure
    if endings.asked:
        return ExitCode.INTERRUPTED
    return ExitCode.FAILED if app.return_code else ExitCode.DONE


def with_questions(lines: Sequence[str], waiting: Sequence["ApprovalRow"]) -> Iterator[str]:
    """Iterate over what is printed once the app has gone: below the line that resumes a conversation, the question
    that waits there.
    """
    for line in lines:
        yield line
        resumed = line.startswith("rune -r ")
        for row in waiting:
            if resumed and row.conversation_id in line:
                yield f"a question waits there: `rune approve {row.id}`"


def _hand_over(frame: FirstFrame, app: "RuneApp") -> None:
    frame.hand_over()
    loop = asyncio.get_running_loop()

    def stop() -> None:
        with app.suspend():
            frame.lend()
            os.kill(os.getpid(), signal.SIGSTOP)

    # In the place of what Textual has set: that gives a stopped process's terminal back as the first frame has
    # set it, and takes a SIGCONT that nobody waits for (the kernel's, when a terminal goes) for a new beginning.
    if signal.getsignal(signal.SIGTSTP) != signal.SIG_IGN:
        signal.signal(signal.SIGTSTP, lambda _number, _frame: loop.call_soon_threadsafe(stop))
    signal.signal(signal.SIGCONT, signal.SIG_DFL)


async def _live(
    app: "RuneApp", opening: Opening, frame: FirstFrame, endings: Endings, left: Callable[[], None]
) -> None:
    loop = asyncio.get_running_loop()
    with endings.watch(lambda: loop.call_soon_threadsafe(app.leave)):
        try:
            await app.run_async()
        finally:
            left()
            frame.restore()  # closing may take a moment, and the person has left
            await opening.close()
