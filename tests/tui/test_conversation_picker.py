"""A conversation is found by what it was about, and who else has it open is said."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.errors import StorageUnavailableError
from rune.surface.rows import ConversationRow
from rune.tui.screens.conversation_picker import NO_CONVERSATION, ConversationPicker, ConversationTable
from tests.tui.small_app import HOSTILE, SIZES, SmallApp, is_safe, screen_rows, screen_text, settled

NOW = 1_796_040_000_000  # 2026-11-30T12:00:00Z


def row(identity: str, title: str, *, held_by: int | None = None, last_active: str = "") -> ConversationRow:
    return ConversationRow(
        id=identity,
        title=title,
        channel="task",
        folder="/work",
        last_active=last_active or "2026-11-30T11:57:00.000Z",
        messages=12,
        held_by=held_by,
    )


ROWS = (row("c1", "fix the failing test"), row("c2", "name the shop", held_by=4711), row("c3", ""))


def text(conversation: ConversationRow, width: int, rows: Sequence[ConversationRow]) -> str:
    line = ConversationTable(rows, now_ms=NOW).line(conversation, width)
    assert line.cells <= width
    return line.text


class Resuming(SmallApp):
    """Opens the picker and keeps what it gave."""

    def __init__(self, rows: Sequence[ConversationRow] = ROWS, *, fails: bool = False, current: str = "") -> None:
        super().__init__()
        self.given: list[str | None] = []
        self._rows, self._fails, self._current = rows, fails, current

    async def load(self) -> Sequence[ConversationRow]:
        if self._fails:
            raise StorageUnavailableError("the index cannot be read", hint="Free some space.")
        return self._rows

    def on_mount(self) -> None:
        super().on_mount()
        self.push_screen(ConversationPicker(self.load, now_ms=NOW, current=self._current), self.given.append)


@pytest.mark.parametrize("size", SIZES)
async def test_each_row_says_how_old_what_about_and_who_has_it(size: tuple[int, int]) -> None:
    app = Resuming(current="c1")
    async with app.run_test(size=size) as pilot:
        await settled(app, pilot)
        shown = screen_text(app)
        assert "3 min ago" in shown
        assert "fix the" in shown
        assert "4711" in shown
        assert "here" in shown
        assert "untitled" in shown


def test_a_wide_row_says_it_in_words() -> None:
    shown = text(ROWS[1], 90, ROWS)
    for part in ("3 min ago", "name the shop", "open in process 4711", "12 messages", "task"):
        assert part in shown


@pytest.mark.parametrize("width", [46, 74])
def test_columns_stand_below_each_other(width: int) -> None:
    texts = [text(each, width, ROWS) for each in ROWS]
    assert len({text.rindex("12") for text in texts}) == 1


async def test_ctrl_c_copies_what_is_selected_of_the_filter_and_else_leaves() -> None:
    app = Resuming()
    async with app.run_test() as pilot:
        await settled(app, pilot)
        await pilot.press(*"shop", "shift+home", "ctrl+c")
        await pilot.pause()
        assert (app.clipboard, app.given) == ("shop", [])
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert app.given == [None]


async def test_enter_gives_the_id_and_esc_and_ctrl_c_give_none() -> None:
    leaving = ((("escape",), None), (("ctrl+c",), None), ((*"shop", "ctrl+c"), None))
    for keys, chosen in ((("down", "enter"), "c2"), *leaving, ((*"failing", "enter"), "c1")):
        app = Resuming()
        async with app.run_test() as pilot:
            await settled(app, pilot)
            await pilot.press(*keys)
            await pilot.pause()
            assert app.given == [chosen]


@pytest.mark.parametrize("size", SIZES)
async def test_none_and_a_failure_are_said_inside(size: tuple[int, int]) -> None:
    app = Resuming(rows=())
    async with app.run_test(size=size) as pilot:
        await settled(app, pilot)
        assert NO_CONVERSATION[:24] in screen_text(app)
    app = Resuming(fails=True)
    async with app.run_test(size=size) as pilot:
        await settled(app, pilot)
        assert "the index cannot be read" in screen_text(app)
        assert "Free some space." in screen_text(app)


async def test_hostile_titles_stay_text() -> None:
    app = Resuming(rows=[row(f"c{place}", text) for place, text in enumerate(HOSTILE)])
    async with app.run_test(size=(60, 24)) as pilot:
        await settled(app, pilot)
        assert all(is_safe(each) for each in screen_rows(app))


@given(title=st.text(max_size=80), width=st.integers(1, 140), held_by=st.none() | st.integers(1, 10**7))
def test_any_conversation_fits_and_is_safe(title: str, width: int, held_by: int | None) -> None:
    rows = [row("c", title, held_by=held_by), row(title, title)]
    assert all(is_safe(text(each, width, rows)) for each in rows)


@pytest.mark.parametrize("width", [34, 56, 74, 106])
def test_equal_titles_are_told_apart_by_the_ends_of_their_ids(width: int) -> None:
    rows = [row("01JXAAAAAAAAAA111111", "hello"), row("01JXAAAAAAAAAA222222", "hello", held_by=7), row("c", "other")]
    shown = [text(each, width, rows) for each in rows]
    assert "…111111" in shown[0]
    assert "…222222" in shown[1]
    assert "…" not in shown[2]
    assert all(" hel" in each for each in shown[:2])


def test_titles_that_differ_only_out_of_sight_are_told_apart_too() -> None:
    rows = [row(f"id-00000{number}", f"a title that goes on for very long and ends in {number}") for number in (1, 2)]
    assert ["…00000" in text(each, 40, rows) for each in rows] == [True, True]
    assert ["…" in text(each, 106, rows) for each in rows] == [False, False]


@pytest.mark.parametrize("width", [34, 40, 46, 56])
def test_who_has_it_open_is_said_also_where_its_title_is_like_another_one_s(width: int) -> None:
    rows = [row("01JXAAAAAAAAAA111111", "hello there"), row("01JXAAAAAAAAAA222222", "hello there", held_by=1234567)]
    assert "pid 1234567" in text(rows[1], width, rows)


@pytest.mark.parametrize("anywhere", [False, True])
@pytest.mark.parametrize("width", [34, 46, 56, 74, 96, 106])
def test_how_many_messages_is_said_with_its_word_or_not_at_all(width: int, *, anywhere: bool) -> None:
    shown = ConversationTable(ROWS, now_ms=NOW, anywhere=anywhere).line(ROWS[0], width).text
    assert ("12 m" in shown) == ("12" in shown)
    assert ("12 m" in shown) == (width >= (96 if anywhere and width >= 60 else 46))
