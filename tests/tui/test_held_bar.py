"""That another Rune has a conversation open is said in one row, with the key that branches off."""

import pytest

from rune.errors import LeaseHeldError
from rune.tui.widgets.held_bar import HeldBar, brief_line, held_line
from tests.tui.small_app import SmallApp, screen_text


def held(pid: int = 4711) -> LeaseHeldError:
    return LeaseHeldError("cnv_1", pid=pid, since="2026-11-30T12:00:00.000Z")


def text(width: int, *, pid: int = 4711, waits: bool = False) -> str:
    row = held_line(held(pid), width, waits=waits)
    assert row.cells <= width
    return row.text.rstrip()


def test_it_says_who_has_it_and_what_the_keys_do() -> None:
    assert text(80).startswith(" open in process 4711; it can be read ")
    assert text(80).endswith("   f6 goes on in a fork  esc: only read")
    assert text(80, waits=True).startswith(" open in process 4711; what you sent waits ")
    assert text(80, waits=True).endswith("   f6 sends it in a fork")
    assert text(80, pid=0).startswith(" open elsewhere; it can be read ")


@pytest.mark.parametrize("waits", [True, False], ids=["waits", "reads"])
@pytest.mark.parametrize("width", [14, 20, 30, 40, 60, 80, 160])
def test_however_narrow_it_names_the_key(width: int, *, waits: bool) -> None:
    shown = text(width, pid=10**7, waits=waits)
    assert shown.startswith(" open")
    assert "f6" in shown


@pytest.mark.parametrize("width", [14, 20, 40, 80])
def test_who_reads_on_is_told_in_a_few_words(width: int) -> None:
    row = brief_line(held(10**7), width)
    assert row.cells <= width
    assert row.text.startswith(" open")
    assert row.text.endswith("f6 fork")


async def test_it_takes_no_room_until_there_is_something_to_offer() -> None:
    bar = HeldBar()
    app = SmallApp(bar)
    async with app.run_test() as pilot:
        assert not bar.display
        bar.offer(held(), waits=False)
        await pilot.pause()
        assert "open in process 4711" in screen_text(app)
        bar.offer(None, waits=False)
        await pilot.pause()
        assert not bar.display
