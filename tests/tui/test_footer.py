"""The footer's figures are true, and it says what Esc would do."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.strip import Strip

from rune.tui.footer_state import FooterState, elapsed, footer_line, rate
from rune.tui.transcript_state import Pace
from rune.tui.widgets.footer import Footer
from tests.tui.small_app import HOSTILE, SIZES, SmallApp, is_safe, screen_rows


def text(width: int = 100, *, pace: Pace | None = None, **fields: Any) -> str:
    return footer_line(FooterState(pace=pace, version="0.1.0", **fields), width).text


def test_idle_it_names_the_keys_and_the_version() -> None:
    shown = text()
    assert shown.startswith(" enter sends · ctrl+j new line · / commands · F1 help")
    assert shown.endswith("v0.1.0 ")


@pytest.mark.parametrize(
    ("pace", "now", "said"),
    [
        (Pace(since=0, phase="sending"), 0.5, " sending   esc"),
        (Pace(since=0, phase="loading"), 12.0, " loading qwen3:8b · 12 s "),
        (Pace(since=1, phase="reading", total=3210), 5.0, " reading 3,210 tokens · 4 s "),
        (Pace(since=0, phase="reading", done=1200, total=3210), 4.0, " reading 1,200 of 3,210 tokens · 4 s "),
        (Pace(since=0, phase="reading"), 0.0, " reading   esc"),
        (Pace(since=0, phase="waiting"), 3.0, " waiting for the model · 3 s "),
        (Pace(since=0, phase="thinking", pieces=83, first_at=1.0, last_at=3.0), 3.0, " thinking · 41 tok/s "),
        (
            Pace(since=0, phase="answering", pieces=312, first_at=0.0, last_at=7.585),
            8.0,
            " answering · 41 tok/s · 312 tokens ",
        ),
        (Pace(since=0, phase="answering", pieces=1, first_at=1.0, last_at=1.0), 2.0, " answering · 1 token "),
        (Pace(since=0, phase="cancelling"), 2.0, " stopping "),
    ],
)
def test_a_running_turn_is_told_in_true_figures(pace: Pace, now: float, said: str) -> None:
    assert text(pace=pace, now=now, model="qwen3:8b").startswith(said)


@pytest.mark.parametrize(
    ("pace", "now", "said"),
    [
        (
            Pace(since=0, phase="running", doing="run_command", step=1, steps=24),
            14.0,
            " step 1/24 · running run_command",
        ),
        (Pace(since=0, phase="waiting", step=3, steps=24), 14.0, " step 3/24 · waiting for the model · 14 s "),
        (
            Pace(since=0, phase="answering", step=5, steps=24, pieces=83, first_at=12.0, last_at=14.0),
            14.0,
            " step 5/24 · answering · 14 s · 41 tok/s ",
        ),
        (Pace(since=0, phase="answering", step=1, steps=24, pieces=1), 3.0, " step 1/24 · answering · 3 s · 1 token "),
        (Pace(since=0, phase="cancelling", step=5, steps=24), 3.0, " stopping "),
    ],
)
def test_a_turn_of_several_steps_says_which_one_and_how_long_all_of_it_took(pace: Pace, now: float, said: str) -> None:
    assert text(pace=pace, now=now).startswith(said)


@pytest.mark.parametrize("width", [40, 60])
def test_a_narrow_footer_keeps_the_step(width: int) -> None:
    pace = Pace(since=0, phase="answering", step=5, steps=24, pieces=83, first_at=12.0, last_at=14.0)
    assert text(width, pace=pace, now=14.0).startswith(" step 5/24")


def test_what_the_person_runs_can_be_stopped() -> None:
    shown = text(own=True)
    assert shown.startswith(" your command runs   esc stops")
    assert "enter sends" not in shown


def test_esc_stops_a_turn_and_takes_a_waiting_message_back_first() -> None:
    pace = Pace(since=0, phase="answering")
    assert "esc stops" in text(pace=pace)
    shown = text(pace=pace, waiting=2)
    assert "esc takes back" in shown
    assert "2 waiting" in shown
    assert "esc stops" not in shown


def test_esc_is_not_offered_where_it_does_nothing() -> None:
    assert "esc" not in text()
    assert "esc" not in text(pace=Pace(since=0, phase="cancelling"))


def test_what_came_below_is_told_only_to_one_who_scrolled_up() -> None:
    assert "new below ↓ ctrl+end" in text(following=False, below=3, pace=Pace(since=0))
    assert "new below" not in text(following=False, below=0)
    assert "new below" not in text(following=True, below=3)


def test_a_hint_stands_in_place_of_what_is_known_anyway() -> None:
    shown = text(hint="ctrl+c again quits", pace=Pace(since=0, phase="answering"))
    assert "ctrl+c again quits" in shown
    assert "answering" not in shown
    assert "enter sends" not in text(hint="copied")


@pytest.mark.parametrize("width", [40, 50, 60, 80])
def test_a_narrow_footer_keeps_what_the_turn_does(width: int) -> None:
    pace = Pace(since=0, phase="answering", pieces=312, first_at=0.0, last_at=7.6)
    shown = text(width, pace=pace, now=8.0, waiting=3, following=False, below=9)
    assert "answering" in shown
    assert "esc takes back" in shown


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(-1.0, ""), (0.9, ""), (1.0, "1 s"), (59.9, "59 s"), (65.0, "1 min 05 s"), (3720.0, "1 h 02 min")],
)
def test_a_duration_is_cut_to_what_has_passed(seconds: float, said: str) -> None:
    assert elapsed(seconds) == said


@pytest.mark.parametrize(
    ("speed", "said"), [(None, ""), (3.44, "3.4 tok/s"), (41.2, "41 tok/s"), (1234.0, "1,234 tok/s")]
)
def test_a_rate_has_as_many_digits_as_it_means(speed: float | None, said: str) -> None:
    assert rate(speed) == said


@given(hint=st.text(max_size=120), model=st.text(max_size=60), waiting=st.integers(0, 999), width=st.integers(1, 200))
def test_any_state_is_safe_and_fits(hint: str, model: str, waiting: int, width: int) -> None:
    for pace in (None, Pace(since=0, phase="loading"), Pace(since=0, phase="answering", pieces=10**9)):
        line = footer_line(
            FooterState(pace=pace, now=1e6, waiting=waiting, following=False, below=1, hint=hint, model=model), width
        )
        assert line.cells <= width
        assert is_safe(line.text)


@pytest.mark.parametrize("size", SIZES)
async def test_the_footer_shows_what_it_is_given(size: tuple[int, int]) -> None:
    app = SmallApp(Footer())
    async with app.run_test(size=size) as pilot:
        app.query_one(Footer).show(FooterState(pace=Pace(since=0, phase="thinking"), version="0.1.0"))
        await pilot.pause()
        assert screen_rows(app)[-1].startswith(" thinking")


class CountedFooter(Footer):
    """Counts how often it is painted."""

    painted = 0

    def render_line(self, y: int) -> Strip:
        self.painted += 1
        return super().render_line(y)


async def test_it_is_painted_again_only_when_it_says_something_else() -> None:
    footer = CountedFooter()
    app = SmallApp(footer)
    async with app.run_test() as pilot:
        footer.show(FooterState(pace=Pace(since=0, phase="waiting"), now=3.1))
        await pilot.pause()
        before = footer.painted
        footer.show(FooterState(pace=Pace(since=0, phase="waiting"), now=3.4))
        await pilot.pause()
        assert footer.painted == before
        footer.show(FooterState(pace=Pace(since=0, phase="waiting"), now=4.0))
        await pilot.pause()
        assert footer.painted > before
        assert "4 s" in screen_rows(app)[-1]


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_words_stay_text(text: str) -> None:
    app = SmallApp(Footer())
    async with app.run_test(size=(80, 24)) as pilot:
        app.query_one(Footer).show(FooterState(hint=text, version=text))
        await pilot.pause()
        app.query_one(Footer).show(FooterState(pace=Pace(since=0, phase="loading"), model=text))
        await pilot.pause()
        assert all(is_safe(row) for row in screen_rows(app))
