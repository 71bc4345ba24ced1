"""The prompt: what its keys do, what it tells, and what counts as a command."""

from textual.app import ComposeResult
from textual.events import Key
from textual.geometry import Region
from textual.pilot import Pilot
from textual.widgets import Static

from rune.surface.prompt_history import Sent
from rune.tui.widgets.prompt import Prompt
from tests.tui.prompt_app import PromptApp, paste, shown


async def settled(pilot: Pilot[None]) -> None:
    await pilot.pause()


async def test_it_says_what_goes_in_and_grows_with_its_text_up_to_eight_rows() -> None:
    app = PromptApp()
    async with app.run_test(size=(80, 24)) as pilot:
        assert shown(app.prompt) == ["> message, /command, !shell"]
        await pilot.press("a", "ctrl+j", "b")
        assert shown(app.prompt) == ["> a", "  b"]
        app.prompt.set_text("x\n" * 20)
        await settled(pilot)
        assert app.prompt.size.height == 8
        app.prompt.set_text("word " * 30)
        await settled(pilot)
        assert app.prompt.size.height == 2


async def test_it_says_where_there_is_more_than_is_seen() -> None:
    app = PromptApp()
    async with app.run_test(size=(80, 24)) as pilot:
        app.prompt.set_text("\n".join(str(number) for number in range(10)))
        await settled(pilot)
        assert shown(app.prompt) == ["\u2191 2", *(f"  {number}" for number in range(3, 10))]
        await pilot.press(*["up"] * 9)
        assert shown(app.prompt) == ["> 0", *(f"  {number}" for number in range(1, 7)), "\u2193 7"]


async def test_the_cursor_stays_in_sight_whatever_changes_the_text() -> None:
    app = PromptApp()
    async with app.run_test(size=(80, 24)) as pilot:
        for keys in (["x", "ctrl+j"] * 11, ["backspace"] * 9, ["ctrl+z"] * 2, ["alt+z"], ["enter", "up"]):
            for key in keys:
                await pilot.press(key)
                await settled(pilot)
                assert app.prompt.region.contains_point(app.cursor_position), key


async def test_it_leaves_room_for_the_rest_on_a_low_screen() -> None:
    app = PromptApp()
    async with app.run_test(size=(40, 12)) as pilot:
        app.prompt.set_text("x\n" * 20)
        await settled(pilot)
        assert app.prompt.size.height == 4
        await pilot.resize_terminal(40, 5)
        assert app.prompt.size.height == 2


async def test_enter_sends_and_the_other_enters_begin_a_line() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        await pilot.press("a", "ctrl+j", "b", "shift+enter", "c", "alt+enter", "d", "enter")
        assert app.sent == [("a\nb\nc\nd", False)]
        assert app.prompt.text == ""


async def test_enter_on_nothing_is_told_too_and_is_no_history() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        await pilot.press("enter", "up")
        assert app.sent == [("", False)]
        assert app.prompt.text == ""


async def test_a_slash_or_exclamation_mark_typed_first_makes_a_command() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        for text in ("/help", "!ls", "a/b"):
            await pilot.press(*text, "enter")
        assert app.sent == [("/help", True), ("!ls", True), ("a/b", False)]


async def test_a_slash_that_was_pasted_or_set_makes_none() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        paste(app.prompt, "/etc/hosts is wrong")
        await pilot.press("enter")
        paste(app.prompt, "!rm -rf /")
        await pilot.press("enter")
        app.prompt.set_text("/help")
        await pilot.press("enter")
        assert app.sent == [("/etc/hosts is wrong", False), ("!rm -rf /", False), ("/help", False)]


async def test_a_command_can_be_set_as_one() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        app.prompt.set_text("/help", as_command=True)
        assert app.prompt.is_command
        await pilot.press("enter")
        app.prompt.set_text("help", as_command=True)
        await pilot.press("enter")
        assert app.sent == [("/help", True), ("help", False)]


async def test_whether_it_is_a_command_stays_with_the_typed_slash() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        await pilot.press("/", "x", "home", "a")
        assert not app.prompt.is_command
        await pilot.press("backspace")
        assert app.prompt.is_command
        await pilot.press("f7")
        paste(app.prompt, "/pasted over it")
        await pilot.press("enter")
        assert app.sent == [("/pasted over it", False)]


async def test_undo_brings_a_command_back_as_one_and_redo_takes_it_away() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        await pilot.press("/", "x", "ctrl+c")
        assert app.prompt.text == ""
        await pilot.press("ctrl+z")
        assert (app.prompt.text, app.prompt.is_command) == ("/x", True)
        await pilot.press("ctrl+shift+z")
        assert app.prompt.text == ""


async def test_up_brings_what_was_sent_and_down_what_was_being_typed() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        app.prompt.use_history([Sent("first"), Sent("two\nlines"), Sent("/help", command=True)])
        await pilot.press(*"new")
        seen: list[tuple[str, bool]] = []
        for key in ("up", "up", "up", "up", "down", "down", "down", "down"):
            await pilot.press(key)
            seen.append((app.prompt.text, app.prompt.is_command))
    texts = ["/help", "two\nlines", "first", "first", "two\nlines", "/help", "new", "new"]
    assert seen == [(text, text == "/help") for text in texts]


async def test_text_from_the_history_that_was_no_command_is_none() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        app.prompt.use_history([Sent("/etc/hosts")])
        await pilot.press("up", "enter")
        assert app.sent == [("/etc/hosts", False)]


async def test_what_is_sent_is_in_the_history_at_once_and_stays_when_the_history_comes() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        await pilot.press(*"/one", "enter", "up")
        assert (app.prompt.text, app.prompt.is_command) == ("/one", True)
        app.prompt.set_text("")
        app.prompt.use_history([Sent("older")])
        await pilot.press("up", "up")
        assert app.prompt.text == "older"


async def test_what_was_changed_in_the_history_is_there_until_something_is_sent() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        app.prompt.use_history([Sent("one"), Sent("two")])
        await pilot.press("up", "x", "up", "down")
        assert app.prompt.text == "twox"
        await pilot.press("enter", "up", "up")
        assert app.prompt.text == "two"


async def test_a_block_that_was_being_typed_comes_back_as_one() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        app.prompt.use_history([Sent("old")])
        paste(app.prompt, "x\n" * 9)
        await pilot.press("up", "down")
        assert shown(app.prompt) == ["> [Pasted 9 lines]"]
        assert app.prompt.text == "x\n" * 9


async def test_arrows_move_within_several_lines_and_within_a_wrapped_one() -> None:
    app = PromptApp()
    async with app.run_test(size=(20, 20)) as pilot:
        app.prompt.use_history([Sent("old")])
        await pilot.press("a", "ctrl+j", "b", "up", "up")
        assert (app.prompt.cursor_location[0], app.prompt.text) == (0, "a\nb")
        app.prompt.set_text("word " * 8)
        await settled(pilot)
        await pilot.press("up")
        assert app.prompt.text == "word " * 8
        await pilot.press("up", "up")
        assert app.prompt.text == "old"


async def test_ctrl_c_clears_and_on_nothing_is_told() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        await pilot.press("a", "ctrl+c")
        assert (app.prompt.text, app.told) == ("", [])
        await pilot.press("ctrl+c")
        assert isinstance(app.told.pop(), Prompt.InterruptAsked)


async def test_ctrl_c_on_a_selection_copies_it_as_it_is() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        paste(app.prompt, "a\x1bb")
        await pilot.press("f7", "ctrl+c")
        assert app.clipboard == "a\x1bb"
        assert app.prompt.text == "a\x1bb"
        await pilot.press("f7", "ctrl+x")
        assert app.prompt.text == ""
        await pilot.press("ctrl+v")
        assert app.prompt.text == "a\x1bb"


async def test_ctrl_d_deletes_and_on_nothing_is_told() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        await pilot.press("a", "home", "ctrl+d")
        assert (app.prompt.text, app.told) == ("", [])
        await pilot.press("ctrl+d")
        assert isinstance(app.told.pop(), Prompt.QuitAsked)


async def test_escape_and_ctrl_r_are_told_and_leave_the_text() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        await pilot.press("a", "escape", "ctrl+r")
        assert [type(told) for told in app.told] == [Prompt.EscapePressed, Prompt.HistorySearchAsked]
        assert app.prompt.text == "a"


async def test_the_keys_of_a_shell_line_work() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        await pilot.press(*"one two three", "ctrl+w")
        assert app.prompt.text == "one two "
        await pilot.press("ctrl+a", *"x ", "ctrl+e", "y", "ctrl+left", "ctrl+k")
        assert app.prompt.text == "x one two "
        await pilot.press("ctrl+u")
        assert app.prompt.text == ""


async def test_other_keys_go_on_to_the_screen() -> None:
    app = PromptApp()
    keys = ["pageup", "pagedown", "ctrl+home", "ctrl+end", "ctrl+l", "ctrl+t", "ctrl+y", "f1", "ctrl+1"]
    async with app.run_test() as pilot:
        await pilot.press("a", *keys)
        assert app.keys == keys
        assert app.prompt.text == "a"


async def test_edits_are_told() -> None:
    edits: list[str] = []

    class Watching(PromptApp):
        def on_prompt_edited(self, event: Prompt.Edited) -> None:
            edits.append(event.control.whole_text)

    app = Watching()
    async with app.run_test() as pilot:
        await pilot.press("a", "b", "backspace")
        app.prompt.set_text("x")
        await settled(pilot)
    assert edits == ["a", "ab", "a", "x"]


async def test_keys_of_an_emoji_and_of_a_combined_letter_come_one_by_one() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        text = "e\u0301\U0001f468\u200d\U0001f469"
        for place, char in enumerate(text):
            key = Key("x", char)
            key.time = float(place)
            app.prompt.post_message(key)
        await settled(pilot)
        assert app.prompt.text == text
        assert shown(app.prompt) == [f"> {text}"]


async def test_the_terminals_cursor_goes_where_the_text_cursor_is_even_when_only_the_layout_changes() -> None:
    class Below(PromptApp):
        def compose(self) -> ComposeResult:
            yield from super().compose()
            below = Static("below\nbelow", markup=False, id="below")
            below.styles.height = 2
            below.display = False
            yield below

    app = Below()
    async with app.run_test(size=(80, 24)) as pilot:
        assert app.cursor_position == (2, 23)
        await pilot.press("a", "ctrl+j", "b")
        assert app.cursor_position == (3, 23)
        app.query_one("#below").display = True
        await settled(pilot)
        assert app.cursor_position == app.prompt.cursor_screen_offset == (3, 21)
        paste(app.prompt, "\n".join("x" * 5))
        await settled(pilot)
        assert app.cursor_position == app.prompt.cursor_screen_offset == (3, 21)


async def test_a_selection_and_the_cursor_are_drawn_where_they_are() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        await pilot.press(*"ab", "ctrl+j", *"c\td", "shift+left", "shift+up")
        prompt = app.prompt
        selection = prompt.get_component_rich_style("text-area--selection").bgcolor
        cursor = prompt.get_component_rich_style("text-area--cursor").bgcolor
        rows = [
            [(segment.text, segment.style.bgcolor) for segment in strip if segment.style]
            for strip in prompt.render_lines(Region(0, 0, 80, 2))
        ]
    marked = [[(text, colour) for text, colour in row[1:] if colour in (selection, cursor)] for row in rows]
    assert marked[0][0][1] == cursor
    assert all(colour == selection for row in marked for _, colour in row[1:])
    assert "".join(text for text, _ in marked[1]).startswith("c")
