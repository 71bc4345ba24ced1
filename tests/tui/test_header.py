"""The header says what is known, keeps what matters where it is narrow, and never passes foreign text on raw."""

import re
import subprocess
import sys
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.surface.rows import ContextUse
from rune.tui.header_state import HeaderState, header_line, percentage, short_folder
from rune.tui.widgets.header import Header
from tests.tui.small_app import HOSTILE, SIZES, SmallApp, is_safe, screen_rows

USE = ContextUse(used=42, budget=100, window=128, level="green", served=True)
STATE = HeaderState(model="qwen3:8b", where="local", context=USE, folder="/home/ann/work/shop", home="/home/ann")


def text(state: HeaderState, width: int = 120) -> str:
    return header_line(state, width).text


def test_a_wide_header_says_everything() -> None:
    shown = text(STATE)
    for part in ("rune", "qwen3:8b · local", "ctx ▓▓▓░░░░░  42% green", "● healthy", "[task]  chat", "~/work/shop"):
        assert part in shown


def test_before_anything_is_known_it_says_opening_and_claims_nothing() -> None:
    shown = text(HeaderState())
    assert "opening" in shown
    assert "healthy" not in shown
    assert "ctx \N{EN DASH}" in shown


def test_no_model_is_said_and_nothing_beside_it_is_called_healthy() -> None:
    line = header_line(STATE._replace(model=""), 120)
    assert "no model" in line.text
    assert "●" not in line.text
    assert next(span.style for span in line.spans if "no model" in span.text) == "bad"
    assert "✖ journal" in text(STATE._replace(model="", failing=("journal",), worst_tier=0))


@pytest.mark.parametrize("width", [60, 80, 120])
def test_how_much_the_model_thinks_is_said_as_long_as_there_is_room(width: int) -> None:
    state = STATE._replace(model="qwen3-coder:30b-a3b-" + "x" * 40, where="remote", title="a long title of many words")
    crowded = state._replace(thinking="medium", failing=("embedding",), worst_tier=1, folder="/srv/" + "y" * 60)
    assert "think medium" in text(crowded, width) or "thinking medium" in text(crowded, width)
    assert "remote" in text(crowded, width)
    assert "qwen3:8b · local · thinking high" in text(STATE._replace(thinking="high"))
    assert "think" not in text(STATE)
    assert "think" not in text(STATE._replace(thinking="high", model=""))


@pytest.mark.parametrize("width", [40, 50, 60, 70, 80, 100, 120, 160])
@pytest.mark.parametrize("model", ["qwen3:8b", "qwen3-coder:30b-a3b-", "x" * 60])
@pytest.mark.parametrize("folder", ["/home/ann", "/home/ann/work/shop", "/srv/" + "y" * 60])
def test_nothing_moves_or_goes_when_the_figure_comes(width: int, model: str, folder: str) -> None:
    state = STATE._replace(model=model, folder=folder)
    before, after = text(state._replace(context=None), width), text(state, width)
    figure = re.compile(r"(ctx )?[▓░]* +42% green")
    found = figure.search(after)
    assert found is not None
    start, end = found.span()
    assert after[:start].rstrip() == before[:start].rstrip()
    assert after[end:] == before[end:]


@pytest.mark.parametrize("width", range(40, 161))
def test_a_mark_of_health_never_stands_without_its_word(width: int) -> None:
    healthy, failing = text(STATE, width), text(STATE._replace(failing=("memory",), worst_tier=1), width)
    assert ("●" in healthy) == ("● healthy" in healthy)
    assert "▲ memory" in failing


def test_eighty_columns_with_long_names_keep_what_matters() -> None:
    state = STATE._replace(model="qwen3-coder:30b-a3b-", folder="/home/ann/work/12345678901234567890")
    failing = state._replace(failing=("memory", "graph"), worst_tier=1)
    for shown in (text(state, 80), text(failing, 80)):
        for part in (" rune ", "qwen3-coder:30b-a3b- · local", "ctx ", "42% green", "[task]  chat"):
            assert part in shown
    assert "▲ memory+1" in text(failing, 80)


@pytest.mark.parametrize("where", ["local", "remote", "stand-in"])
def test_forty_columns_show_a_failure_in_words_beside_where_the_words_go(
    where: Literal["local", "remote", "stand-in"],
) -> None:
    shown = text(STATE._replace(where=where, failing=("memory", "graph"), worst_tier=0), 40)
    for part in ("✖ memory+1", "42%", "[task]", *((where,) if where != "local" else ())):
        assert part in shown


def test_forty_columns_keep_model_context_with_level_and_channel() -> None:
    shown = text(STATE, 40)
    for part in ("qwen3:8b local", "ctx  42% green", "[task]"):
        assert part in shown


@pytest.mark.parametrize("width", [40, 80, 160])
def test_a_remote_model_is_always_said_to_be_remote_where_forty_columns_are(width: int) -> None:
    assert "remote" in text(STATE._replace(where="remote"), width)


def test_nothing_moves_when_the_level_or_the_health_changes() -> None:
    red = USE.__class__(used=99, budget=100, window=128, level="red", served=True)
    before, after = text(STATE), text(STATE._replace(context=red, failing=("memory",), worst_tier=1))
    assert [before.index(part) for part in ("ctx", "[task]", "~/")] == [after.index(p) for p in ("ctx", "[task]", "~/")]


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("mode", ["ask", "edits", "read"])
def test_what_tools_may_do_is_said_in_every_width(width: int, mode: str) -> None:
    state = STATE._replace(
        model="hf.co/bartowski/Qwen2.5-Coder-7B-Instruct-GGUF:Q4_K_M",
        where="remote",
        permission=mode,
        thinking="high",
        title="fix the failing test",
        elsewhere="/home/ann/elsewhere/far/away",
        failing=("journal", "model"),
        worst_tier=0,
        busy=True,
        unread=True,
    )
    words = text(state, width).replace("·", " ").split()
    assert mode in words
    assert "remote" in words


def test_what_changes_files_without_asking_stands_out() -> None:
    spans = header_line(STATE._replace(permission="edits"), 80).spans
    assert next(span.style for span in spans if span.text == "edits") == "warning"


def test_what_fails_is_named_with_how_many_more() -> None:
    assert "▲ memory +1" in text(STATE._replace(failing=("memory", "graph"), worst_tier=1))
    assert "✖ journal" in text(STATE._replace(failing=("journal",), worst_tier=0))


def test_a_failure_is_not_dropped_for_the_folder_or_the_bar() -> None:
    shown = text(STATE._replace(failing=("memory",), worst_tier=1), 60)
    assert "▲" in shown
    assert "~/work/shop" not in shown


def test_the_other_channel_shows_its_news_and_that_it_works() -> None:
    assert "[task]  chat•…" in text(STATE._replace(busy=True, unread=True))
    assert "task… [chat]" in text(STATE._replace(channel="chat", busy=True))


def test_the_channel_in_front_is_told_without_colour() -> None:
    assert "[chat]" in text(STATE._replace(channel="chat"), 40)


@pytest.mark.parametrize(
    ("used", "budget", "said"),
    [
        (0, 100, "0%"),
        (1, 1000, "<1%"),
        (9, 1000, "1%"),
        (425, 1000, "42%"),
        (996, 1000, "100%"),
        (100, 100, "100%"),
        (5, 0, "full"),
        (120, 100, "120%"),
    ],
)
def test_a_percentage_is_rounded_and_what_is_there_is_never_nothing(used: int, budget: int, said: str) -> None:
    assert percentage(ContextUse(used=used, budget=budget, window=0, level="red", served=True)) == said


def test_an_estimate_is_marked() -> None:
    estimate = ContextUse(used=42, budget=100, window=128, level="green", served=False)
    assert "~42%" in text(STATE._replace(context=estimate))


@pytest.mark.parametrize(
    ("folder", "cells", "said"),
    [
        ("/home/ann", 40, "~"),
        ("/home/ann/shop", 40, "~/shop"),
        ("/home/anna/shop", 40, "/home/anna/shop"),
        ("/home/ann/a/b/c/d/shop", 12, "~/…/c/d/shop"),
        ("/srv/" + "x" * 40, 11, "xxxxx…xxxxx"),
        ("/", 10, "/"),
    ],
)
def test_a_folder_is_shortened_in_its_middle(folder: str, cells: int, said: str) -> None:
    assert short_folder(folder, "/home/ann", cells) == said


@given(
    model=st.none() | st.text(max_size=80),
    folder=st.text(max_size=120),
    failing=st.lists(st.text(max_size=30), max_size=3),
    where=st.sampled_from(["", "local", "remote", "stand-in"]),
    used=st.integers(0, 300_000),
    width=st.integers(1, 220),
)
def test_any_state_is_safe_and_fits(
    model: str | None,
    folder: str,
    failing: list[str],
    where: Literal["", "local", "remote", "stand-in"],
    used: int,
    width: int,
) -> None:
    use = ContextUse(used=used, budget=8_000, window=16_384, level="yellow", served=True)
    state = HeaderState(model=model, where=where, context=use, failing=tuple(failing), folder=folder)
    line = header_line(state, width)
    assert line.cells <= width
    assert is_safe(line.text)


def test_drawing_it_loads_no_screen_library() -> None:
    code = (
        "import sys, rune.tui.header_state; print([m for m in sys.modules if m in ('textual', 'msgspec', 'asyncio')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("size", SIZES)
async def test_the_header_shows_what_it_is_given(size: tuple[int, int]) -> None:
    app = SmallApp(Header())
    async with app.run_test(size=size) as pilot:
        app.query_one(Header).show(STATE)
        await pilot.pause()
        assert "qwen3:8b" in screen_rows(app)[0]
        await pilot.resize_terminal(120, 20)
        await pilot.pause()
        assert "● healthy" in screen_rows(app)[0]


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_name_stays_text(name: str) -> None:
    app = SmallApp(Header())
    async with app.run_test(size=(80, 24)) as pilot:
        app.query_one(Header).show(STATE._replace(model=name, folder="/" + name, failing=(name,), worst_tier=1))
        await pilot.pause()
        assert all(is_safe(row) for row in screen_rows(app))
        assert app.is_running


TITLED = STATE._replace(title="an old conversation about rivers")


@pytest.mark.parametrize("width", [80, 90])
def test_the_title_has_room_at_the_usual_widths(width: int) -> None:
    assert "  an old conversa" in text(TITLED, width)
    for part in (" rune ", "qwen3:8b · local", "ctx ▓", "42%", "[task]  chat"):
        assert part in text(TITLED, width)


@pytest.mark.parametrize("width", range(40, 161))
def test_a_title_takes_no_room_from_what_matters_more(width: int) -> None:
    failing = TITLED._replace(failing=("memory",), worst_tier=1)
    for state in (TITLED, failing):
        titled, untitled = text(state, width), text(state._replace(title=""), width)
        for part in ("rune", "qwen3:8b", "local", "ctx", "42%", "green", "▲ memory", "[task]", " chat"):
            assert (part in titled) == (part in untitled)
        assert "healthy" not in titled or "  an old conversa" in titled
    assert "▲ memory" in text(failing, width)


def test_a_title_gets_longer_by_what_is_left_over() -> None:
    assert "an old conversation about rivers" in text(TITLED, 160)
    assert "rivers" in text(STATE._replace(title="rivers"), 80)


@pytest.mark.parametrize("width", [80, 100, 160])
def test_another_folder_that_the_conversation_belongs_to_is_said(width: int) -> None:
    assert " in ~/lakes" in text(STATE._replace(title="rivers", elsewhere="/home/ann/lakes"), width)


@given(title=st.text(max_size=80), elsewhere=st.text(max_size=80), width=st.integers(1, 220))
def test_any_title_is_safe_and_fits(title: str, elsewhere: str, width: int) -> None:
    line = header_line(STATE._replace(title=title, elsewhere=elsewhere), width)
    assert line.cells <= max(width, header_line(STATE, width).cells)
    assert is_safe(line.text)
