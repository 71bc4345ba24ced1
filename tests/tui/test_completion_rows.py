"""Rows of the completion: clicked, taken in the middle of a line, and none where the source fails."""

from rune.errors import UsageError
from rune.surface.commands.completion import Candidates, Completion
from tests.tui.test_completion import CompletionApp, until


async def test_a_source_that_fails_offers_nothing() -> None:
    async def failing(line: str) -> Candidates:
        raise UsageError(line)

    app = CompletionApp(failing)
    async with app.run_test() as pilot:
        await pilot.press(*"/he", "enter")
        await pilot.pause(0.1)
        assert app.sent == [("/he", True)]


async def test_a_click_takes_a_row() -> None:
    app = CompletionApp()
    async with app.run_test() as pilot:
        await pilot.press(*"/tr")
        await until(pilot, lambda: len(app.names) == 2)
        await pilot.pause()
        assert await pilot.click(app.popup, offset=(3, 1))
        await until(pilot, lambda: app.prompt.text == "/trust ")


async def test_what_stands_behind_the_cursor_stays() -> None:
    app = CompletionApp()
    async with app.run_test() as pilot:
        await pilot.press(*"/ now", *["left"] * 4, "n")
        await until(pilot, lambda: "/new" in app.names)
        while app.popup.chosen != Completion(text="/new", note="begin anew"):
            await pilot.press("down")
        await pilot.press("tab")
        assert app.prompt.text == "/new now"
