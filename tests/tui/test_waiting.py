"""What waits and what was left unsent is seen in few rows, with the way to have it back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.tui.widgets.notice_bar import NoticeBar, unsent_line
from rune.tui.widgets.waiting import ROWS, WaitingMessages, waiting_lines
from tests.tui.small_app import HOSTILE, SIZES, SmallApp, is_safe, screen_rows, screen_text


def rows(*texts: str, width: int = 80) -> list[str]:
    return [line.text.rstrip() for line in waiting_lines(texts, width)]


def test_each_message_says_its_place() -> None:
    assert [row[:20].rstrip() for row in rows("a", "b", "c")] == [
        " waiting 1/3  a",
        " waiting 2/3  b",
        " waiting 3/3  c",
    ]


def test_only_the_newest_is_the_one_that_esc_takes_back() -> None:
    shown = rows("a", "b")
    assert "esc takes it back" not in shown[0]
    assert shown[1].endswith("esc takes it back")


@pytest.mark.parametrize("width", [55, 80, 160])
def test_what_waits_for_the_person_says_which_key_sends_it(width: int) -> None:
    (line,) = waiting_lines(["a" * 200], width, held=True)
    assert line.cells == width
    assert line.text.rstrip().endswith("enter sends it   esc takes it back" if width >= 80 else "enter sends it")


def test_of_many_the_first_and_the_newest_are_shown() -> None:
    shown = rows(*"abcdefg")
    assert len(shown) == ROWS
    assert shown[0].startswith(" waiting 1/7  a")
    assert shown[1] == " … and 5 more"
    assert shown[2].startswith(" waiting 7/7  g")


def test_a_long_message_of_many_lines_is_one_row_cut_with_an_ellipsis() -> None:
    (row,) = rows("one\n\ntwo\tthree " + "x" * 5000, width=40)
    assert row.startswith(" waiting 1/1  one two three xx")
    assert "…" in row
    assert len(row) <= 40


def test_what_was_left_unsent_is_offered_in_one_row() -> None:
    shown = unsent_line(["hello there", "b", "c"], 80).text.rstrip()
    assert shown.startswith(" unsent from before: “hello there”   and 2 more")
    assert shown.endswith("up takes it, ctrl+x drops it")


@pytest.mark.parametrize("width", [40, 60, 80])
def test_the_offer_names_its_keys_however_narrow(width: int) -> None:
    line = unsent_line(["hello there " * 9], width)
    assert line.cells == width
    for part in (" up takes", "ctrl+x drops", "“hello"):
        assert part in line.text
    assert "+11" in unsent_line(["hello there"] * 12, 40).text


@given(texts=st.lists(st.text(max_size=60), min_size=1, max_size=5), width=st.integers(1, 120))
def test_any_texts_are_safe_and_fit(texts: list[str], width: int) -> None:
    for line in (*waiting_lines(texts, width), unsent_line(texts, width)):
        assert line.cells <= width
        assert is_safe(line.text)


@pytest.mark.parametrize("size", SIZES)
async def test_waiting_messages_take_only_the_room_they_need(size: tuple[int, int]) -> None:
    app = SmallApp(WaitingMessages())
    async with app.run_test(size=size) as pilot:
        waiting = app.query_one(WaitingMessages)
        assert not waiting.display
        for many in (1, 2, 3, 9, 1):
            waiting.show([f"message {place}" for place in range(many)])
            await pilot.pause()
            assert waiting.size.height == min(many, ROWS)
            assert f"waiting {many}/{many}" in screen_text(app)
        waiting.show([])
        await pilot.pause()
        assert not waiting.display
        assert "waiting" not in screen_text(app)


@pytest.mark.parametrize("size", SIZES)
async def test_the_offer_goes_when_it_is_let_go(size: tuple[int, int]) -> None:
    app = SmallApp(NoticeBar())
    async with app.run_test(size=size) as pilot:
        bar = app.query_one(NoticeBar)
        bar.offer(["hello", "more"])
        await pilot.pause()
        assert "“hello”" in screen_text(app)
        assert "ctrl+x" in screen_text(app)
        bar.offer([])
        await pilot.pause()
        assert not bar.display


async def test_hostile_messages_stay_text() -> None:
    app = SmallApp(WaitingMessages(), NoticeBar())
    async with app.run_test(size=(40, 15)) as pilot:
        for text in HOSTILE:
            app.query_one(WaitingMessages).show([text])
            app.query_one(NoticeBar).offer([text, text])
            await pilot.pause()
            assert all(is_safe(row) for row in screen_rows(app))
