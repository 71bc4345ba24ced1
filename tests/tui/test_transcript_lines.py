"""What a person does with lines of the transcript: fold them, copy their code, select them."""

from textual.geometry import Offset
from textual.pilot import Pilot
from textual.selection import Selection

from rune.tui.line_log import Spot
from rune.tui.transcript_state import Answer, Entry, Said, Thought, Transcript
from rune.tui.widgets.transcript import TranscriptView
from tests.tui.small_app import SmallApp, screen_rows, screen_text


def _conversation(pairs: int) -> tuple[Entry, ...]:
    entries: list[Entry] = []
    for number in range(pairs):
        entries.append(Said(key=f"s{number}", text=f"question {number}"))
        entries.append(Answer(key=f"a{number}", text=f"# answer {number}\n\n{'Some words. ' * 20}"))
    return tuple(entries)


def _app() -> tuple[SmallApp, TranscriptView]:
    view = TranscriptView()
    return SmallApp(view, listens=(TranscriptView.CopyAsked,)), view


async def _shown(pilot: Pilot[None], view: TranscriptView, transcript: Transcript) -> None:
    view.show(transcript)
    await pilot.pause()


async def test_a_click_on_a_folded_thought_opens_it_and_another_folds_it() -> None:
    app, view = _app()
    async with app.run_test(size=(80, 24)) as pilot:
        entries = (Said(key="q", text="why"), Thought(key="t", text="because\nof this"), Answer(key="a", text="So."))
        await _shown(pilot, view, Transcript(settled=entries))
        await pilot.click(TranscriptView, offset=(12, 2))
        assert "because" in screen_text(app)
        await pilot.click(TranscriptView, offset=(12, 2))
        assert "because" not in screen_text(app)


async def test_opening_a_thought_at_the_end_leaves_what_is_seen_where_it_is() -> None:
    app, view = _app()
    async with app.run_test(size=(80, 24)) as pilot:
        entries = (*_conversation(10), Thought(key="t", text="deep\n" * 60), Answer(key="a", text="So."))
        await _shown(pilot, view, Transcript(settled=entries))
        row = next(number for number, text in enumerate(screen_rows(app)) if "▸ thought" in text)
        await pilot.click(TranscriptView, offset=(12, row))
        assert "▾ thought" in screen_rows(app)[row]


async def test_the_thinking_key_opens_what_is_in_view_or_else_the_newest() -> None:
    app, view = _app()
    async with app.run_test(size=(80, 24)) as pilot:
        thought, answer = Thought(key="t", text="because"), Answer(key="a", text="So.")
        await _shown(pilot, view, Transcript(settled=(thought, *_conversation(20), answer)))
        view.toggle_thinking()
        await pilot.pause()
        view.to_top()
        await pilot.pause()
        assert "because" in screen_text(app)
        view.focus()
        await pilot.press("space")
        assert "because" not in screen_text(app)


async def test_a_long_paste_opens_by_click_and_by_the_key_and_is_copied_whole() -> None:
    app, view = _app()
    async with app.run_test(size=(80, 24)) as pilot:
        said = Said(key="s", text="\n".join(f"line {number}" for number in range(1, 61)))
        await _shown(pilot, view, Transcript(settled=(said,)))
        selection = Selection(Offset(0, Spot(0).number), None)
        assert view.get_selection(selection) == (said.text, "\n")
        assert "… 48 more lines" in screen_rows(app)[12]
        await pilot.click(TranscriptView, offset=(12, 12))
        assert "line 13" in screen_text(app)
        assert view.get_selection(selection) == (said.text, "\n")
        view.toggle_thinking()
        await pilot.pause()
        assert "… 48 more lines" in screen_text(app)
        view.toggle_thinking()
        view.follow()
        await pilot.pause()
        row = next(number for number, text in enumerate(screen_rows(app)) if "fold it again" in text)
        await pilot.click(TranscriptView, offset=(12, row))
        await pilot.pause()
        assert "… 48 more lines" in screen_text(app)


async def test_a_click_on_the_head_of_a_code_block_copies_it() -> None:
    app, view = _app()
    async with app.run_test(size=(80, 24)) as pilot:
        code = "".join(f"print({number})\n" for number in range(300))
        await _shown(pilot, view, Transcript(settled=(Answer(key="a", text=f"Look:\n\n```python\n{code}```\n"),)))
        view.to_top()
        await pilot.pause()
        await pilot.click(TranscriptView, offset=(12, 2))
        (asked,) = app.said(TranscriptView.CopyAsked)
        assert isinstance(asked, TranscriptView.CopyAsked)
        assert (asked.text, asked.control) == (code.removesuffix("\n"), view)


async def test_a_key_copies_the_code_that_is_in_view() -> None:
    app, view = _app()
    async with app.run_test(size=(80, 24)) as pilot:
        await _shown(
            pilot, view, Transcript(settled=(Answer(key="a", text="```sh\nls\n```\n\nor\n\n```\npwd\n```\n"),))
        )
        view.focus()
        await pilot.press("c")
        (asked,) = app.said(TranscriptView.CopyAsked)
        assert isinstance(asked, TranscriptView.CopyAsked)
        assert asked.text == "pwd"


def _select(view: TranscriptView, start: tuple[Spot, int], end: tuple[Spot, int]) -> str:
    offsets = [Offset(character, spot.number) for spot, character in (start, end)]
    selected = view.get_selection(Selection(*offsets))
    return selected[0] if selected is not None else ""


async def test_a_part_selected_whole_is_copied_as_its_source() -> None:
    app, view = _app()
    async with app.run_test(size=(80, 24)) as pilot:
        source = "# A head\n\nSome **bold** words.\n\n- one\n- two"
        await _shown(pilot, view, Transcript(settled=(Answer(key="a", text=source),)))
        assert _select(view, (Spot(0, 0, 0), 0), (Spot(0, 1, 1), 79)) == "# A head\n\nSome **bold** words."
        selected = view.get_selection(Selection(None, None))
        assert selected == (source, "\n")


async def test_a_part_selected_in_part_is_copied_as_it_is_seen() -> None:
    app, view = _app()
    async with app.run_test(size=(80, 24)) as pilot:
        text = "Some **bold** words that go on until the line has no more room for any of them, and on."
        await _shown(pilot, view, Transcript(settled=(Answer(key="a", text=text),)))
        assert _select(view, (Spot(0, 0, 0), 12), (Spot(0, 0, 1), 16)).startswith("bold words that go on until")
        assert "\n" not in _select(view, (Spot(0, 0, 0), 12), (Spot(0, 0, 1), 16))


async def test_a_selection_made_with_the_mouse_leaves_the_gutter_out() -> None:
    app, view = _app()
    async with app.run_test(size=(80, 24)) as pilot:
        await _shown(
            pilot, view, Transcript(settled=(Said(key="s", text="one\ntwo"), Answer(key="a", text="three four")))
        )
        await pilot.mouse_down(TranscriptView, offset=(0, 1))
        await pilot.hover(TranscriptView, offset=(11, 3))
        await pilot.mouse_up(TranscriptView, offset=(11, 3))
        assert app.screen.get_selected_text() == "two\n\nthree"
        backgrounds = [segment.style.bgcolor for segment in view.render_line(1) if segment.style is not None]
        assert len(set(backgrounds)) == 2
        assert backgrounds[0] != backgrounds[1]  # the gutter is not marked, the word is


async def test_a_selection_stays_on_its_words_while_lines_above_change() -> None:
    app, view = _app()
    async with app.run_test(size=(80, 24)) as pilot:
        settled = (*_conversation(3), Thought(key="t", text="deep\n" * 30), Answer(key="a", text="select me"))
        await _shown(pilot, view, Transcript(settled=settled))
        row = next(number for number, text in enumerate(screen_rows(app)) if "select me" in text)
        await pilot.click(TranscriptView, offset=(10, row), times=2)
        assert app.screen.get_selected_text() == "select me"
        view.toggle_thinking()
        await pilot.pause()
        assert app.screen.get_selected_text() == "select me"
