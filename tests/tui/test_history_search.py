"""Ctrl+R finds what was sent before, and gives it back as it was."""

import subprocess
import sys

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Input

from rune.surface.prompt_history import Sent
from rune.text.safe_text import safe_text
from rune.tui.screens.history_search import HistorySearch
from rune.tui.screens.picker import PickerNotes
from tests.tui.prompt_app import shown

ENTRIES = (
    Sent("fix the failing test"),
    Sent("/help", command=True),
    Sent("what does\nthis do?"),
    Sent("fix the cart"),
    Sent("/help", command=True),
)


class SearchApp(App[None]):
    """Opens a search at once. `given` is what it gave."""

    def __init__(self, *entries: Sent) -> None:
        super().__init__()
        self.given: list[Sent | None] = []
        self.search = HistorySearch(entries or ENTRIES)

    def on_mount(self) -> None:
        self.push_screen(self.search, self.given.append)

    @property
    def rows(self) -> list[str]:
        # The class is imported only when a search opens; here it has.
        from rune.tui.screens.history_matches import HistoryMatches

        found = self.search.query_one(HistoryMatches)
        options = found.option_list
        texts = [options.get_option_at_index(place).prompt for place in range(options.option_count)]
        assert found.display == bool(texts)
        assert all(str(text)[:2] in ("  ", "\u203a ") for text in texts)
        assert [str(text)[0] for text in texts].index("\u203a") == (options.highlighted or 0) if texts else True
        return [str(text)[2:] for text in texts]

    def said(self) -> str:
        return "\n".join(shown(self.search.query_one(PickerNotes)))


async def pressed(pilot: Pilot[None], *keys: str) -> None:
    await pilot.pause()
    await pilot.press(*keys)
    await pilot.pause()


async def test_everything_is_there_once_the_newest_first() -> None:
    app = SearchApp()
    async with app.run_test() as pilot:
        await pilot.pause()
        assert app.rows == ["/help", "fix the cart", "what does \u23ce this do?", "fix the failing test"]


async def test_typing_narrows_it_and_enter_gives_what_is_chosen() -> None:
    app = SearchApp()
    async with app.run_test() as pilot:
        await pressed(pilot, *"fix")
        assert app.rows == ["fix the cart", "fix the failing test"]
        await pressed(pilot, "down", "enter")
        assert app.given == [Sent("fix the failing test")]


async def test_a_command_comes_back_as_one_and_lines_as_lines() -> None:
    for keys, sent in (("help", Sent("/help", command=True)), ("this do", Sent("what does\nthis do?"))):
        app = SearchApp()
        async with app.run_test() as pilot:
            await pressed(pilot, *keys, "enter")
            assert app.given == [sent]


@pytest.mark.parametrize("key", ["escape", "ctrl+c"])
async def test_a_key_leaves_at_once_with_nothing(key: str) -> None:
    app = SearchApp()
    async with app.run_test() as pilot:
        await pressed(pilot, "f", key)
        assert app.given == [None]


async def test_ctrl_c_copies_what_is_selected_and_then_leaves() -> None:
    app = SearchApp()
    async with app.run_test() as pilot:
        await pressed(pilot, *"this", "shift+home", "ctrl+c")
        assert (app.clipboard, app.given) == ("this", [])
        await pressed(pilot, "ctrl+c")
        assert app.given == [None]


async def test_enter_with_nothing_that_matches_stays() -> None:
    app = SearchApp()
    async with app.run_test() as pilot:
        await pressed(pilot, *"zzz", "enter")
        assert (app.rows, app.given) == ([], [])
        assert app.said() == " nothing here matches \u201czzz\u201d"
        await pressed(pilot, *["backspace"] * 3, "enter")
        assert app.given == [Sent("/help", command=True)]


async def test_two_that_look_alike_are_two() -> None:
    app = SearchApp(Sent("a\nb"), Sent("a b"))
    async with app.run_test() as pilot:
        await pressed(pilot, "down", "enter")
        assert app.given == [Sent("a\nb")]


async def test_with_no_history_it_can_be_left() -> None:
    app = SearchApp()
    app.search = HistorySearch(())
    async with app.run_test() as pilot:
        await pressed(pilot, "enter")
        assert app.said() == " nothing was sent here yet"
        await pressed(pilot, "escape")
        assert app.given == [None]


async def test_what_is_shown_and_what_is_pasted_into_it_is_harmless() -> None:
    app = SearchApp(Sent("[red]a\x1b[31m\u202e[/] [@click=app.bell]b"))
    async with app.run_test(size=(40, 15)) as pilot:
        await pilot.pause()
        assert app.rows == ["[red]a\\x1b[31m<U+202E>[/] [@click=app.bell]b"]
        line = app.search.query_one(Input)
        line.insert_text_at_cursor("a\x1b\u202e")
        assert safe_text(line.value) == line.value == "a\\x1b<U+202E>"


async def test_it_is_a_frame_with_the_line_on_top_and_the_list_in_all_its_width() -> None:
    for width, height in ((40, 15), (80, 24), (160, 48)):
        app = SearchApp(*(Sent(f"entry {number} " + "long " * 40) for number in range(100)))
        async with app.run_test(size=(width, height)) as pilot:
            await pressed(pilot)
            from rune.tui.screens.history_matches import HistoryMatches

            matches, frame = app.search.query_one(HistoryMatches), app.search.query_one("#history-search")
            assert frame.region.width == min(width, 110)
            assert frame.region.bottom <= height
            assert matches.region.width == frame.region.width - 2
            assert app.search.query_one(Input).region.bottom == matches.region.y
            assert matches.region.bottom == frame.region.bottom - 1
            rows = shown(matches.option_list)
            assert rows[0].startswith("\u203a entry 99 long")
            assert len(rows) == matches.region.height
            assert all(row.endswith("\u2026") for row in rows)


async def test_a_short_history_makes_a_low_frame_that_stays_while_one_types() -> None:
    app = SearchApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pressed(pilot)
        frame = app.search.query_one("#history-search")
        assert frame.region.height == 2 + 2 + 4
        await pressed(pilot, *"zzz")
        assert frame.region.height == 2 + 2 + 4


def test_the_library_is_loaded_only_when_one_searches() -> None:
    code = "import sys, rune.tui.screens.history_search; sys.exit('textual_autocomplete' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
