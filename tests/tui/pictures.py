"""Pictures of the app's screens, compared with those that somebody has looked at (in `__snapshots__`).

A picture that has changed fails its test, and pytest then writes snapshot_report.html with old and new side by side.
A change that is meant is accepted by `scripts/test tests/tui/test_snapshots.py --snapshot-update`; look at the
pictures before they are kept. What no two runs have in common is made the same before a picture is taken: the figures
of the clock and of the context, the version, the folder (it stands in the person's home, which is the test's). A screen
is only taken once nothing of it is still being drawn.
"""

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

import msgspec
import pytest
from textual.pilot import Pilot

from rune.bootstrap import Services
from rune.models.scripted import Answers, ScriptedTransport
from rune.models.transport import ModelInfo
from rune.surface.surface import Surface
from rune.tui.app import RuneApp
from rune.tui.app_start import AppStart
from rune.tui.widgets.footer import Footer
from rune.tui.widgets.header import Header
from tests.fakes.clock import CountedClock
from tests.tui.stage import Stage, opening_of

NARROW, USUAL, LARGE = (40, 15), (80, 24), (160, 48)
DARK, LIGHT, PLAIN = "rune-dark", "rune-light", "no-colours"
Look = tuple[tuple[int, int], str]  # a size and a theme; not every state is taken in each

FONT_FACE = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)


def in_looks(*looks: Look) -> pytest.MarkDecorator:
    """Take the picture in each of these looks, in a file that is named for it."""
    return pytest.mark.parametrize("look", looks, ids=[f"{width}x{height}-{theme}" for (width, height), theme in looks])


class PicturedApp(RuneApp):
    """The app, whose pictures show no clock and no version."""

    CSS_PATH = Path(inspect.getfile(RuneApp)).with_name("rune.tcss")

    def export_screenshot(self, *, title: str | None = None, simplify: bool = False) -> str:
        """Return the picture as SVG."""
        footer = self.chat.query_one(Footer)
        state = footer._state  # pyright: ignore[reportPrivateUsage]  # tests look inside
        pace = state.pace and msgspec.structs.replace(state.pace, since=0.0, first_at=0.0, last_at=1.0)
        footer.show(state._replace(version="0.0.0", now=1.0, pace=pace))
        header = self.chat.query_one(Header)
        above = header._state  # pyright: ignore[reportPrivateUsage]  # tests look inside
        # How much the schemas of the tools take is none of a picture's business.
        use = above.context and msgspec.structs.replace(above.context, used=above.context.budget // 5, level="green")
        header.show(above._replace(context=use))
        self.screen.refresh()  # a footer that lies behind another screen is seen through that one
        svg = super().export_screenshot(title=title, simplify=simplify)
        # A browser would fetch these from the network.
        return FONT_FACE.sub("", svg).replace("Fira Code, monospace", "monospace")


class Shows(Protocol):
    """Plays a scene and says whether the screen looks as it did."""

    def __call__(
        self,
        scene: Callable[[Stage], Awaitable[None]],
        look: Look,
        answers: Answers = (),
        models: tuple[ModelInfo, ...] = (),
    ) -> bool: ...


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "rivers"
    folder.mkdir()
    return folder


@pytest.fixture
def clock() -> CountedClock:
    return CountedClock()


@pytest.fixture
def shows(
    snap_compare: Callable[..., bool],
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    clock: CountedClock,
) -> Shows:
    monkeypatch.setenv("HOME", str(tmp_path.resolve()))

    def compare(
        scene: Callable[[Stage], Awaitable[None]],
        look: Look,
        answers: Answers = (),
        models: tuple[ModelInfo, ...] = (),
    ) -> bool:
        size, theme = look
        monkeypatch.setenv("NO_COLOR", "1" if theme == PLAIN else "")
        model = ScriptedTransport(answers, models=models)
        services: list[Services] = []
        ends: list[asyncio.Task[None]] = []
        open_services = opening_of(tmp_path / "home", [model], services)

        async def opening(tell: Callable[[str], None]) -> Surface:
            surface = await open_services(tell)
            ends.append(asyncio.create_task(close_at_the_end(services)))
            return surface

        app = PicturedApp(opening, start=AppStart(folder=str(folder.resolve())), clock=clock)

        async def play(pilot: Pilot[None]) -> None:
            at = Stage(app, pilot, model, services)
            await at.until(lambda: app.chat.desk is not None, "the desk")
            if theme != PLAIN:
                app.theme = theme
            await at.until(lambda: at.talk.model is not None, "the model")
            await scene(at)
            await at.settled()

        return snap_compare(app, terminal_size=size, run_before=play)

    return compare


async def close_at_the_end(services: list[Services]) -> None:
    """Close what the app was opened with when its loop ends, which cancels this."""
    try:
        await asyncio.Event().wait()
    finally:
        for each in services:
            await each.close()
