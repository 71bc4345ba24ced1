"""What would instruct can be read in full where it is decided, and nothing but an answer decides it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.events import Paste

from rune.text.safe_text import safe_text
from rune.tui.lines import MARK, Span, line
from rune.tui.screens.instructions import InstructionsScreen, wrapped
from rune.tui.screens.reading import ScrolledText
from rune.tui.widgets.choices import READING_SECONDS, Choices
from tests.fakes.clock import CountedClock
from tests.tui.small_app import HOSTILE, SIZES, SmallApp, is_safe, screen_rows, screen_text, settled
from tests.tui.trust_folder import Folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def clock() -> CountedClock:
    return CountedClock()


@pytest.mark.parametrize("size", SIZES)
async def test_the_texts_can_be_read_in_full_before_they_are_trusted(
    folder: Folder, clock: CountedClock, size: tuple[int, int]
) -> None:
    folder.write(
        "AGENTS.md", "first [b]line[/b]\n" + "a long line " * 30 + "\n" + "line\n" * 100 + "the \u202elast\x1b[2J"
    )
    app = SmallApp()
    async with app.run_test(size=size) as pilot:
        app.push_screen(InstructionsScreen(folder.status(), clock))
        await settled(app, pilot)
        assert "What would instruct Rune" in screen_text(app)
        assert "first [b]line[/b]" in screen_text(app)
        await pilot.press("end")
        await pilot.pause()
        assert "tests: pytest" in screen_text(app)
        seen = ""
        for _ in range(200):
            seen = screen_text(app) + seen
            if "the <U+202E>last\\x1b[2J" in seen:
                break
            await pilot.press("up")
        assert "the <U+202E>last\\x1b[2J" in seen
        text = app.screen.query_one(ScrolledText)
        assert text.virtual_size.width <= text.size.width
        assert all(is_safe(row) for row in screen_rows(app))


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        *((("escape",), None), (("ctrl+c",), None), (("enter",), None)),
        *((("right", "enter"), "not_now"), (("right", "right", "enter"), "trust")),
    ],
)
async def test_it_can_be_decided_where_it_was_read(
    folder: Folder, clock: CountedClock, keys: tuple[str, ...], answer: str | None
) -> None:
    app = SmallApp()
    answers: list[str | None] = []
    async with app.run_test() as pilot:
        app.push_screen(InstructionsScreen(folder.status(), clock), answers.append)
        await pilot.pause()
        await pilot.press("x", "enter")
        assert answers == []
        clock.advance(1)
        await pilot.press(*keys)
        await pilot.pause()
        assert answers == [answer]


async def test_a_change_is_shown_as_a_difference_with_its_marks(folder: Folder, clock: CountedClock) -> None:
    folder.book.grant(folder.status())
    folder.write("AGENTS.md", "# Rules\nsay no\x1b\n")
    app = SmallApp()
    async with app.run_test() as pilot:
        app.push_screen(InstructionsScreen(folder.status(), clock))
        await settled(app, pilot)
        rows = [row.strip() for row in screen_rows(app)]
        assert "What changed since you trusted it" in rows[0]
        assert "-say [b]yes[/b]" in rows
        assert "+say no\\x1b" in rows


async def test_what_may_not_instruct_is_shown_with_its_reason(folder: Folder, clock: CountedClock) -> None:
    folder.write(".rune/big.yaml", "x" * 40_000)
    app = SmallApp()
    async with app.run_test() as pilot:
        app.push_screen(InstructionsScreen(folder.status(), clock))
        await settled(app, pilot)
        await pilot.press("end")
        await pilot.pause()
        assert ".rune/big.yaml is left out:" in screen_text(app)


@given(text=st.text(max_size=60), width=st.integers(2, 30))
def test_wrapping_loses_nothing_and_fits(text: str, width: int) -> None:
    whole = line(Span(safe_text(text, newlines=False, tabs=False), "inserted"))
    rows = list(wrapped(whole, width))
    assert "".join(row.text for row in rows) == whole.text
    assert all(row.cells <= width for row in rows)


@pytest.mark.parametrize("size", SIZES)
async def test_it_says_how_to_answer_and_how_to_scroll(
    folder: Folder, clock: CountedClock, size: tuple[int, int]
) -> None:
    app = SmallApp()
    async with app.run_test(size=size) as pilot:
        app.push_screen(InstructionsScreen(folder.status(), clock))
        await settled(app, pilot)
        shown = screen_text(app)
        for part in (f"{MARK} Back   Do not trust   Trust", "←→ choose", "enter answers", "esc back", "↑↓ scroll"):
            assert part in shown
        folder.book.grant(folder.status())
        app.push_screen(InstructionsScreen(folder.status(), clock))
        await settled(app, pilot)
        assert "What instructs Rune" in screen_text(app)
        assert "esc back" in screen_text(app)
        assert "choose" not in screen_text(app)


async def test_nothing_answers_before_it_could_be_read(folder: Folder, clock: CountedClock) -> None:
    app = SmallApp()
    answers: list[str | None] = []
    async with app.run_test() as pilot:
        app.push_screen(InstructionsScreen(folder.status(), clock), answers.append)
        await pilot.pause()
        clock.advance(READING_SECONDS - 0.01)
        await pilot.press("right", "right", "enter")
        assert answers == []
        clock.advance(0.01)
        await pilot.press("enter")
        await pilot.pause()
        assert answers == ["trust"]


async def test_a_paste_never_answers_with_its_brackets_or_without(folder: Folder, clock: CountedClock) -> None:
    app = SmallApp()
    answers: list[str | None] = []
    async with app.run_test() as pilot:
        app.push_screen(InstructionsScreen(folder.status(), clock), answers.append)
        await pilot.pause()
        clock.advance(5)
        app.screen.query_one(Choices).post_message(Paste("yes\n"))
        await pilot.press("right", "right", "enter")
        clock.advance(5)
        await pilot.press("y", "enter")
        assert answers == []


@pytest.mark.parametrize("size", SIZES)
async def test_a_click_answers_once_it_could_be_read(
    folder: Folder, clock: CountedClock, size: tuple[int, int]
) -> None:
    app = SmallApp()
    answers: list[str | None] = []
    async with app.run_test(size=size) as pilot:
        app.push_screen(InstructionsScreen(folder.status(), clock), answers.append)
        await settled(app, pilot)
        row = next(place for place, text in enumerate(screen_rows(app)) if "Do not trust" in text)
        at = (screen_rows(app)[row].index("Do not"), row)
        await pilot.click(offset=at)
        assert answers == []
        clock.advance(1)
        await pilot.click(offset=at)
        await pilot.pause()
        assert answers == ["not_now"]


async def test_very_narrow_answers_stand_below_each_other(folder: Folder, clock: CountedClock) -> None:
    app = SmallApp()
    async with app.run_test(size=(26, 15)) as pilot:
        app.push_screen(InstructionsScreen(folder.status(), clock))
        await settled(app, pilot)
        rows = [row for row in screen_rows(app) if row.strip() in {f"{MARK} Back", "Do not trust", "Trust"}]
        assert len(rows) == 3


async def test_hostile_texts_stay_text(folder: Folder, clock: CountedClock) -> None:
    folder.write("AGENTS.md", "\n".join(HOSTILE).replace("\ud800", ""))
    app = SmallApp()
    async with app.run_test(size=(40, 15)) as pilot:
        app.push_screen(InstructionsScreen(folder.status(), clock))
        await settled(app, pilot)
        for _ in range(40):
            assert all(is_safe(row) for row in screen_rows(app))
            await pilot.press("pagedown")
