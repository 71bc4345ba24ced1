"""How far a model is that is fetched or measured is one row, with the key that stops it."""

import pytest

from rune.surface.model_text import pull_line
from rune.surface.model_values import PullRow
from rune.text.safe_text import SafeText
from rune.tui.widgets.errand_bar import ErrandBar, errand_line
from tests.tui.small_app import SmallApp, is_safe, screen_text

ROW = PullRow(
    model="qwen3:4b",
    status="pulling",
    done=1_000_000_000,
    total=2_500_000_000,
    bytes_per_second=20_000_000.0,
    seconds_left=75.0,
)


def half(cells: int) -> SafeText:
    return pull_line(ROW, cells)


def test_it_says_bytes_speed_and_what_is_left_in_80_columns() -> None:
    shown = errand_line(half, "esc", 80).text
    for part in ("qwen3:4b", " 40 %", "1.0 GB of 2.5 GB", "20 MB/s", "2 min left", "esc stops it"):
        assert part in shown


@pytest.mark.parametrize("key", ["esc", "f8"])
@pytest.mark.parametrize("width", [16, 24, 40, 47, 48, 60, 80, 160])
def test_however_narrow_it_names_the_key(width: int, key: str) -> None:
    row = errand_line(half, key, width)
    assert row.cells <= width
    assert key in row.text
    assert row.text.startswith(" qwen3")


def test_foreign_text_stays_text() -> None:
    hostile = PullRow(model="m", status="\x1b]52;c;aGk=\x07\u202e[/x]")
    assert is_safe(errand_line(lambda cells: pull_line(hostile, cells), "esc", 80).text)


async def test_it_takes_no_room_until_something_is_done() -> None:
    bar = ErrandBar()
    app = SmallApp(bar)
    async with app.run_test() as pilot:
        assert not bar.display
        bar.show(half, "esc")
        await pilot.pause()
        assert "esc stops it" in screen_text(app)
        bar.show(half, "f8")
        await pilot.pause()
        assert "f8 stops it" in screen_text(app)
        bar.show(None)
        await pilot.pause()
        assert not bar.display
