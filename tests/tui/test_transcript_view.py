"""The transcript on a screen: it follows, it stays, it is selected, and it costs what is looked at."""

import asyncio
from collections.abc import Callable

import pytest
from textual.events import MouseScrollUp
from textual.pilot import Pilot

from rune.tui.transcript_state import Answer, CommandOutput, Entry, Said, Thought, Transcript
from rune.tui.widgets.transcript import TranscriptView
from tests.tui.small_app import HOSTILE, SmallApp, is_safe, screen_rows, screen_text

SECONDS = 20.0
WORDS = "Some **words** about it, and `code` too. " * 10


def _conversation(pairs: int, text: str = WORDS) -> tuple[Entry, ...]:
    entries: list[Entry] = []
    for number in range(pairs):
        entries.append(Said(key=f"s{number}", text=f"question {number}"))
        entries.append(Answer(key=f"a{number}", text=f"# answer {number}\n\n{text}\n\n- one\n- two\n"))
    return tuple(entries)


def _streaming(settled: tuple[Entry, ...], text: str) -> Transcript:
    return Transcript(settled=settled, live=(Answer(key="live", text=text, running=True),))


def _app() -> tuple[SmallApp, TranscriptView]:
    view = TranscriptView()
    return SmallApp(view, listens=(TranscriptView.FollowChanged, TranscriptView.CopyAsked)), view


def _wheel(view: TranscriptView) -> MouseScrollUp:
    """Return a turn of the wheel away from the person."""
    return MouseScrollUp(
        view, x=10, y=10, delta_x=0, delta_y=0, button=0, shift=False, meta=False, ctrl=False, screen_x=10, screen_y=10
    )


async def _until(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not condition():
            await pilot.pause()


def _rows(app: SmallApp) -> list[str]:
    """Return what stands on the screen but for the scroll bar."""
    return [row[: app.size.width - 1].rstrip() for row in screen_rows(app)]


async def _shown(pilot: Pilot[None], view: TranscriptView, transcript: Transcript) -> None:
    view.show(transcript)
    await pilot.pause()


async def test_the_end_of_a_conversation_is_seen_first() -> None:
    app, view = _app()
    async with app.run_test(size=(80, 24)) as pilot:
        await _shown(pilot, view, Transcript(settled=_conversation(50)))
        assert _rows(app)[-1].strip() == "- two"
        assert view.following


async def test_what_was_given_before_it_is_laid_out_is_seen() -> None:
    app, view = _app()
    view.show(Transcript(settled=_conversation(1)))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert "question 0" in screen_text(app)


async def test_at_the_end_it_follows_what_streams() -> None:
    app, view = _app()
    async with app.run_test(size=(80, 24)) as pilot:
        settled = _conversation(5)
        for number in range(30):
            await _shown(pilot, view, _streaming(settled, "\n\n".join(f"line {line}" for line in range(number + 1))))
            assert f"line {number}" in screen_rows(app)[-1]


async def test_scrolled_up_nothing_moves_while_it_streams() -> None:
    app, view = _app()
    async with app.run_test(size=(80, 24)) as pilot:
        settled = _conversation(30)
        await _shown(pilot, view, _streaming(settled, "begin"))
        view.page(-1)
        await pilot.pause()
        seen = _rows(app)
        assert not view.following
        for number in range(30):
            await _shown(pilot, view, _streaming(settled, "word " * 40 * number))
            assert _rows(app) == seen
        assert view.below > 0


async def test_drawing_ahead_moves_nothing_and_comes_to_an_end() -> None:
    app, view = _app()
    async with app.run_test(size=(80, 24)) as pilot:
        await _shown(pilot, view, Transcript(settled=_conversation(400, "word " * 300)))
        view.page(-200)
        before = view.scroll_offset.y
        await pilot.pause()
        seen = _rows(app)
        await _until(pilot, lambda: not view.busy)
        assert _rows(app) == seen
        assert view.scroll_offset.y != before


async def test_nothing_is_left_running_when_there_is_nothing_to_do() -> None:
    app, view = _app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await _until(pilot, lambda: not view.busy)
        tasks = len(asyncio.all_tasks())
        await _shown(pilot, view, Transcript(settled=_conversation(20)))
        await _until(pilot, lambda: not view.busy)
        await pilot.pause()
        assert len(asyncio.all_tasks()) == tasks


async def test_leaving_the_end_and_coming_back_is_told_with_what_came_below() -> None:
    app, view = _app()
    async with app.run_test(size=(80, 24)) as pilot:
        settled = _conversation(20)
        await _shown(pilot, view, Transcript(settled=settled))
        view.page(-1)
        await _shown(pilot, view, _streaming(settled, "one\n\ntwo"))
        view.follow()
        await pilot.pause()
        told = [message for message in app.told if isinstance(message, TranscriptView.FollowChanged)]
        assert [(each.following, each.below > 0) for each in told] == [(False, False), (False, True), (True, False)]
        assert told[0].control is view


async def test_scrolling_down_to_the_end_follows_again() -> None:
    app, view = _app()
    async with app.run_test(size=(80, 24)) as pilot:
        await _shown(pilot, view, Transcript(settled=_conversation(20)))
        view.focus()
        await pilot.press("pageup", "up")
        assert not view.following
        await pilot.press("pagedown", "down", "down")
        assert view.following


async def test_the_wheel_leaves_the_end() -> None:
    app, view = _app()
    async with app.run_test(size=(80, 24)) as pilot:
        await _shown(pilot, view, Transcript(settled=_conversation(20)))
        await pilot.pause()
        view.post_message(_wheel(view))
        await pilot.pause()
        assert not view.following


async def test_home_and_end_reach_the_first_and_the_last_line() -> None:
    app, view = _app()
    async with app.run_test(size=(80, 24)) as pilot:
        await _shown(pilot, view, Transcript(settled=_conversation(300)))
        view.focus()
        await pilot.press("home")
        assert screen_rows(app)[0].startswith("you    question 0")
        await pilot.press("end")
        assert view.following
        assert "two" in screen_rows(app)[-1]


async def test_a_page_up_and_down_passes_every_line() -> None:
    app, view = _app()
    async with app.run_test(size=(80, 24)) as pilot:
        await _shown(pilot, view, Transcript(settled=_conversation(40, "word " * 100)))
        view.to_top()
        await pilot.pause()
        seen = _rows(app)
        while not view.following:
            top = view.scroll_offset.y
            view.page(1)
            await pilot.pause()
            new = _rows(app)
            seen += new[-(view.scroll_offset.y - top) :]
        assert seen == list(view.content_lines)


async def test_a_resize_in_mid_stream_keeps_the_end_in_view() -> None:
    app, view = _app()
    async with app.run_test(size=(80, 24)) as pilot:
        settled = _conversation(20)
        await _shown(pilot, view, _streaming(settled, "word " * 100 + "\n\nlast"))
        for size in ((40, 15), (160, 48), (80, 24)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert "last" in screen_rows(app)[-1]


async def test_a_resize_keeps_what_stands_at_the_top() -> None:
    app, view = _app()
    async with app.run_test(size=(80, 24)) as pilot:
        await _shown(pilot, view, Transcript(settled=_conversation(100)))
        view.page(-10)
        await pilot.pause()
        while "question" not in screen_rows(app)[0]:
            view.scroll_up()
            await pilot.pause()
        name = screen_rows(app)[0].split()[2]
        await pilot.resize_terminal(100, 30)
        await pilot.pause()
        assert screen_rows(app)[0].split()[:3] == ["you", "question", name]


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (3, 2), (40, 15), (200, 60)])
async def test_any_size_is_painted(size: tuple[int, int]) -> None:
    app, view = _app()
    async with app.run_test(size=size) as pilot:
        await _shown(pilot, view, _streaming(_conversation(5), "\n".join(HOSTILE)))
        view.to_top()
        await pilot.pause()
        view.toggle_thinking()
        view.action_copy_code()
        await pilot.pause()
        assert len(screen_rows(app)) == size[1]


async def test_with_no_room_at_all_nothing_is_drawn_until_there_is() -> None:
    app, view = _app()
    async with app.run_test(size=(80, 24)) as pilot:
        view.styles.height = 0
        await pilot.pause()
        await _shown(pilot, view, Transcript(settled=_conversation(3)))
        assert view.lines_drawn == 0
        view.styles.height = "1fr"
        await pilot.pause()
        assert "two" in screen_text(app)


async def test_hidden_it_does_nothing_and_catches_up_when_it_is_seen() -> None:
    app, view = _app()
    async with app.run_test(size=(80, 24)) as pilot:
        settled = _conversation(10)
        await _shown(pilot, view, Transcript(settled=settled))
        view.display = False
        await pilot.pause()
        drawn = view.lines_drawn
        for number in range(20):
            await _shown(pilot, view, _streaming(settled, "word " * number + "end"))
        assert view.lines_drawn == drawn
        assert not view.busy
        view.display = True
        await pilot.pause()
        assert "end" in screen_rows(app)[-1]


async def test_an_answer_that_shrinks_leaves_nothing_on_the_screen() -> None:
    app, view = _app()
    async with app.run_test(size=(80, 24)) as pilot:
        await _shown(pilot, view, _streaming((), "gone\n\n" * 40))
        await _shown(pilot, view, _streaming((), "left"))
        assert screen_text(app).split() == ["rune", "left"]


async def test_another_theme_paints_the_same_text_in_other_colours() -> None:
    app, view = _app()
    async with app.run_test(size=(80, 24)) as pilot:
        await _shown(pilot, view, Transcript(settled=_conversation(1)))
        text, dark, drawn = screen_text(app), view.render_line(0), view.lines_drawn
        app.theme = "rune-light"
        await pilot.pause()
        assert screen_text(app) == text
        assert view.render_line(0).text == dark.text
        assert [segment.style for segment in view.render_line(0)] != [segment.style for segment in dark]
        assert view.lines_drawn == drawn


@pytest.mark.parametrize("text", HOSTILE)
async def test_nothing_a_terminal_would_act_on_is_painted(text: str) -> None:
    app, view = _app()
    async with app.run_test(size=(60, 24)) as pilot:
        entries = (
            Said(key="s", text=text),
            Thought(key="t", text=text),
            Answer(key="a", text=text),
            CommandOutput(key="c", command=text, text=text),
        )
        await _shown(pilot, view, Transcript(settled=entries, live=(Thought(key="l", text=text, running=True),)))
        view.toggle_thinking()
        await pilot.pause()
        assert all(is_safe(row) for row in screen_rows(app))
        assert all(is_safe(line) for line in view.content_lines)


async def test_ten_thousand_messages_mount_no_widgets_and_draw_only_what_is_near() -> None:
    app, view = _app()
    async with app.run_test(size=(80, 24)) as pilot:
        await _shown(pilot, view, Transcript(settled=_conversation(5)))
        widgets = len(list(app.screen.walk_children()))
        await _shown(pilot, view, Transcript(settled=_conversation(5_000)))
        assert view.lines_drawn < 200
        await _until(pilot, lambda: not view.busy)
        assert view.lines_drawn < 2_000
        assert len(list(app.screen.walk_children())) == widgets


async def test_a_delta_draws_and_paints_the_same_with_ten_messages_as_with_ten_thousand() -> None:
    costs: list[int] = []
    for pairs in (5, 5_000):
        app, view = _app()
        async with app.run_test(size=(80, 24)) as pilot:
            settled, text = _conversation(pairs), ""
            await _shown(pilot, view, _streaming(settled, "begin"))
            await _until(pilot, lambda view=view: not view.busy)
            before = view.lines_drawn
            for number in range(60):
                text += f"word{number} " if number % 12 else "\n\n"
                view.show(_streaming(settled, "begin" + text))
            costs.append(view.lines_drawn - before)
    assert costs[0] == costs[1]


@pytest.mark.parametrize("size", [(40, 15), (80, 24)])
async def test_an_entry_far_up_in_ten_thousand_is_gone_to_without_drawing_all(size: tuple[int, int]) -> None:
    app, view = _app()
    async with app.run_test(size=size) as pilot:
        transcript = Transcript(settled=_conversation(5_000))
        await _shown(pilot, view, transcript)
        for key, words in (("s123", "question 123"), ("a4000", "answer 4000"), ("s4999", "question 4999")):
            drawn = view.lines_drawn
            view.show(transcript, at=key)
            await pilot.pause()
            assert words in screen_text(app)
            assert words in _rows(app)[0] or key == "s4999"
            assert view.lines_drawn - drawn < 5_000
        view.show(transcript, at="nothing")
        await pilot.pause()
        assert view.following
