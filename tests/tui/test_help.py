"""What F1 shows can be read at any size and is left by the key that opened it."""

import pytest

from rune.tui.screens.help import HelpScreen
from rune.tui.screens.reading import ScrolledText
from tests.tui.small_app import HOSTILE, SIZES, SmallApp, is_safe, screen_rows, screen_text, settled

TEXT = "\n".join(f"/command{number:02} [NAME]  does number {number}, and says what came of it" for number in range(60))


@pytest.mark.parametrize("size", SIZES)
async def test_it_scrolls_to_its_end_and_names_the_keys(size: tuple[int, int]) -> None:
    app = SmallApp()
    async with app.run_test(size=size) as pilot:
        app.push_screen(HelpScreen("Keys and commands", TEXT))
        await settled(app, pilot)
        for part in ("Keys and commands", "/command00 [NAME]", "esc leaves", "↑↓ scroll"):
            assert part in screen_text(app)
        await pilot.press("down", "pagedown")
        assert "/command00" not in screen_text(app)
        await pilot.press("end")
        await pilot.pause()
        assert "/command59 [NAME]" in screen_text(app)
        await pilot.press("home")
        await pilot.pause()
        assert "/command00 [NAME]" in screen_text(app)
        text = app.screen.query_one(ScrolledText)
        assert text.virtual_size.width <= text.size.width


async def test_columns_stay_columns_where_it_is_narrow() -> None:
    app = SmallApp()
    async with app.run_test(size=(46, 15)) as pilot:
        app.push_screen(HelpScreen("Help", TEXT))
        await settled(app, pilot)
        rows = screen_rows(app)
        first = next(row for row in rows if "/command00" in row)
        assert rows[rows.index(first) + 1].index("says") == first.index("does")


@pytest.mark.parametrize("key", ["escape", "ctrl+c", "f1", "q"])
async def test_it_is_left_by_its_keys(key: str) -> None:
    app = SmallApp()
    left: list[None] = []
    async with app.run_test() as pilot:
        app.push_screen(HelpScreen("Help", TEXT), left.append)
        await settled(app, pilot)
        await pilot.press("x", key)
        await pilot.pause()
        assert left == [None]


@pytest.mark.parametrize("size", SIZES)
async def test_hostile_text_stays_text(size: tuple[int, int]) -> None:
    app = SmallApp()
    async with app.run_test(size=size) as pilot:
        app.push_screen(HelpScreen(HOSTILE[0], "\n".join(HOSTILE)))
        await settled(app, pilot)
        for _ in range(10):
            assert all(is_safe(row) for row in screen_rows(app))
            await pilot.press("pagedown")
