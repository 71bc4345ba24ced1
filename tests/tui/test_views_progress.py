"""The app says how far the views are when they are made anew: while it opens, and also later."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from rune.bootstrap import build
from rune.models.scripted import ScriptedTransport, says
from rune.models.transport import Completed
from rune.records.usage import Usage
from rune.surface.surface import Surface
from rune.tui.app import RuneApp
from rune.tui.app_start import AppStart
from tests.tui.stage import Stage, stage

MORE = "reading the journal anew  60 %"
HALF = "reading the journal anew  \u2595\u2588\u2588\u2591\u2591\u258f 50 %  500 of 1,000 events"


async def test_the_opening_screen_shows_the_bar(tmp_path: Path) -> None:
    let_open = asyncio.Event()

    async def opening(tell: Callable[[str], None]) -> Surface:
        await asyncio.to_thread(tell, HALF)
        await let_open.wait()
        return services.surface

    services = build({"RUNE_HOME": str(tmp_path / "home"), "PATH": ""}, surface_kind="app", transports=())
    await services.start()
    app = RuneApp(opening, start=AppStart(folder=str(tmp_path)))
    async with app.run_test(size=(80, 24)) as pilot:
        running = Stage(app, pilot, ScriptedTransport(()), [services])
        await running.until_shown(HALF)
        let_open.set()
        await running.until_gone("reading the journal anew")
        app.leave()
    await services.close()


async def test_views_that_are_made_anew_later_are_told_too(tmp_path: Path) -> None:
    async with stage(tmp_path) as running:
        await asyncio.to_thread(running.app.call_from_thread, running.app.chat.show_opening, HALF)
        await running.until_shown("reading the journal anew  \u2595\u2588\u2588\u2591\u2591\u258f 50 %")


async def test_once_they_are_made_they_are_told_no_more(tmp_path: Path) -> None:
    async with stage(tmp_path) as running:
        running.app.chat.show_opening(HALF)
        await running.until_shown("50 %")
        running.app.chat.show_opening("")
        await running.paint()
        assert not running.shows("reading the journal anew")


async def test_they_are_not_told_over_an_answer(tmp_path: Path) -> None:
    go_on = asyncio.Event()
    answer = [*says("the Danube")[:-1], go_on, Completed("stop", Usage(calls=1))]
    async with stage(tmp_path, [answer]) as running:
        await running.say("river?")
        await running.until_shown("the Danube")
        running.app.chat.show_opening(HALF)
        await running.paint()
        assert not running.shows("reading the journal anew")
        go_on.set()
        await running.idle()


async def test_one_can_leave_while_they_are_made_anew(tmp_path: Path) -> None:
    async with stage(tmp_path) as running:
        chat = running.app.chat
        chat.show_opening(HALF)
        await running.pilot.press("ctrl+c")
        chat.show_opening(MORE)
        await running.until_shown("ctrl+c again leaves")
        await running.pilot.press("ctrl+c")
        await running.until(lambda: running.app.return_code is not None, "the end")


async def test_how_far_they_are_is_shown_again_when_nothing_else_is_said(tmp_path: Path) -> None:
    async with stage(tmp_path) as running:
        await running.pilot.press("ctrl+y")
        await running.until_shown("no answer to copy")
        while running.shows("no answer to copy"):
            running.app.chat.show_opening(MORE)
            await running.pilot.pause(0.05)
        await running.until_shown(MORE)
