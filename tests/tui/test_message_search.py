"""Searching while one types: never more than one search at a time, and Enter means what was typed."""

import asyncio
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.errors import StorageUnavailableError
from rune.surface.rows import MessageHit
from rune.tui.screens.message_search import FoundTable, MessageSearch
from tests.tui.small_app import HOSTILE, SIZES, SmallApp, is_safe, screen_rows, screen_text, settled

NOW = 1_796_040_000_000  # 2026-11-30T12:00:00Z


def hit(number: int, snippet: str = "the Rhine ends", title: str = "rivers", marks: object = ((4, 9),)) -> MessageHit:
    return MessageHit(
        conversation_id=f"cnv_{number}",
        message_id=f"msg_{number}",
        ts="2026-11-30T11:57:00.000Z",
        role="user",
        title=title,
        folder="/work",
        channel="task",
        snippet=snippet,
        marks=marks,  # pyright: ignore[reportArgumentType]  # spelled as an object for the property below
    )


def table_of(*found: MessageHit) -> FoundTable:
    return FoundTable(found, now_ms=NOW)


class Searching(SmallApp):
    """Opens the search and keeps what it gave. A text is found once its `gate` is open."""

    def __init__(self, *hits: MessageHit, query: str = "", fails: bool = False) -> None:
        super().__init__()
        self.given: list[str | None] = []
        self.asked: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self._hits, self._query, self._fails = hits, query, fails

    async def search(self, text: str) -> Sequence[MessageHit]:
        self.asked.append(text)
        await self.gate.wait()
        if self._fails:
            raise StorageUnavailableError("the index cannot be read", hint="Free some space.")
        return [each for each in self._hits if text in each.snippet]

    def on_mount(self) -> None:
        super().on_mount()
        self.push_screen(MessageSearch(self.search, now_ms=NOW, query=self._query), self.given.append)


@pytest.mark.parametrize("size", SIZES)
async def test_a_row_says_in_which_conversation_and_around_which_words(size: tuple[int, int]) -> None:
    app = Searching(hit(1), query="Rhine")
    async with app.run_test(size=size) as pilot:
        await settled(app, pilot)
        assert "rivers" in screen_text(app)
        assert "the Rhine ends" in screen_text(app)
        await pilot.press("enter")
        await pilot.pause()
        assert app.given == ["cnv_1 msg_1"]


async def test_what_is_typed_while_a_search_runs_is_one_search_more() -> None:
    app = Searching(hit(1), hit(2, "the Elbe ends"))
    async with app.run_test() as pilot:
        await settled(app, pilot)
        app.gate.clear()
        await pilot.press(*"the Elbe")
        await pilot.pause()
        assert app.asked == ["t"]
        await pilot.press("enter")
        await pilot.pause()
        assert app.given == []
        app.gate.set()
        await settled(app, pilot)
        assert app.asked == ["t", "the Elbe"]
        assert app.given == ["cnv_2 msg_2"]


async def test_none_nothing_typed_and_a_failure_are_said_inside() -> None:
    app = Searching(hit(1))
    async with app.run_test() as pilot:
        await settled(app, pilot)
        assert "All words must occur" in screen_text(app)
        assert app.asked == []
        await pilot.press(*"Oder")
        await settled(app, pilot)
        assert "no message has “Oder”" in screen_text(app)
        await pilot.press("enter", "ctrl+c")
        await pilot.pause()
        assert app.given == [None]
    app = Searching(query="x", fails=True)
    async with app.run_test() as pilot:
        await settled(app, pilot)
        assert "the index cannot be read" in screen_text(app)
        assert "Free some space." in screen_text(app)


async def test_hostile_texts_stay_text() -> None:
    app = Searching(*(hit(place, text, text, ()) for place, text in enumerate(HOSTILE)), query="")
    async with app.run_test(size=(60, 24)) as pilot:
        await settled(app, pilot)
        await pilot.press("x")
        await settled(app, pilot)
        assert all(is_safe(each) for each in screen_rows(app))


@given(
    title=st.text(max_size=40),
    snippet=st.text(max_size=160),
    width=st.integers(1, 140),
    cuts=st.lists(st.integers(0, 160), max_size=6),
)
def test_any_message_fits_and_is_safe(title: str, snippet: str, width: int, cuts: list[int]) -> None:
    places = sorted(min(cut, len(snippet)) for cut in cuts)
    marks = tuple(zip(places[::2], places[1::2], strict=False))
    drawn = table_of(found := hit(1, snippet, title, marks)).line(found, width)
    assert drawn.cells <= width
    assert is_safe(drawn.text)


@pytest.mark.parametrize("width", [34, 74, 106])
def test_the_first_match_is_seen_and_marked_wherever_it_stands(width: int) -> None:
    snippet = "x " * 60 + "Rhine" + " y" * 15
    drawn = table_of(found := hit(1, snippet, "rivers", ((120, 125),))).line(found, width)
    assert [span.text for span in drawn.spans if "strong" in span.style] == ["Rhine"]


@pytest.mark.parametrize("width", [34, 74, 106])
def test_a_row_says_who_spoke_and_of_what_kind_its_conversation_is(width: int) -> None:
    mine = hit(1)
    other = msgspec.structs.replace(hit(222_222), role="assistant", forked_from="cnv_9", hidden=True)
    table = table_of(mine, msgspec.structs.replace(other, title="lakes"))
    shown = [table.line(each, width).text for each in (mine, msgspec.structs.replace(other, title="lakes"))]
    assert ("  you  " if width > 60 else " > ") in shown[0]
    assert ("  rune  " if width > 60 else " · ") in shown[1]
    assert "hidden" in shown[1]
    assert ("fork" in shown[1]) == (width > 60)
    alike = table_of(mine, other)
    assert "2222" in alike.line(other, width).text
    assert "2222" not in shown[1]


@pytest.mark.parametrize("width", [4, 10, 14, 16, 24, 46])
def test_a_narrow_row_is_cut_once(width: int) -> None:
    found = hit(1, "x " * 60 + "Rhine" + " y" * 15, "a title that goes on and on", ((120, 125),))
    assert "……" not in table_of(found).line(found, width).text


async def test_how_much_more_a_conversation_has_is_said_below_its_last_row() -> None:
    app = Searching(hit(1), msgspec.structs.replace(hit(2), more=12), hit(3), query="Rhine")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(app, pilot)
        rows = screen_rows(app)
        place = next(number for number, row in enumerate(rows) if "and 12 more in this conversation" in row)
        assert [("rivers" in row) for row in rows[place - 2 : place + 2]] == [True, True, False, True]


async def test_that_nothing_was_found_stands_directly_below_the_filter() -> None:
    app = Searching(hit(1), query="zzzq")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(app, pilot)
        rows = screen_rows(app)
        assert "no message has" in rows[next(number for number, row in enumerate(rows) if "zzzq" in row) + 1]
