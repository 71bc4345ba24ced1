"""What is pasted into a prompt: one block, whole when it is sent, harmless as it is drawn."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from textual.pilot import Pilot

from rune.surface.prompt_history import Sent
from rune.text.safe_text import safe_text
from rune.tui.pasting import normalised
from rune.tui.widgets.prompt import Prompt
from tests.tui.prompt_app import PromptApp, burst, paste, shown

ODD = st.text(st.sampled_from("ab /!\n\r\t\x1b\x07\x9b\u202e\u200d\u0301\U000e0041\U000f0000\U00100041\U0010fff0"))


async def until_sent(app: PromptApp, pilot: Pilot[None], count: int = 1) -> None:
    while len(app.sent) < count:
        await pilot.pause()


async def until_text(app: PromptApp, pilot: Pilot[None], text: str) -> None:
    while app.prompt.text != text:
        await pilot.pause()


async def test_many_lines_are_one_block_that_is_sent_whole() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        await pilot.press(*"see ")
        paste(app.prompt, "a\r\nb\rc\n" * 14)
        await pilot.press(*" ok")
        assert shown(app.prompt) == ["> see [Pasted 42 lines] ok"]
        await pilot.press("enter")
        assert app.sent == [("see " + "a\nb\nc\n" * 14 + " ok", False)]


async def test_a_few_lines_are_text() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        paste(app.prompt, "a\r\nb")
        await pilot.pause()
        assert shown(app.prompt) == ["> a", "  b"]


async def test_one_backspace_deletes_a_block_and_undo_brings_it_back() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        for count in (10, 20):
            paste(app.prompt, "x\n" * count)
        await pilot.press("backspace")
        assert shown(app.prompt) == ["> [Pasted 10 lines]"]
        await pilot.press("ctrl+z")
        assert shown(app.prompt) == ["> [Pasted 10 lines][Pasted 20 lines]"]
        await pilot.press("home", "delete")
        assert app.prompt.text == "x\n" * 20


async def test_the_cursor_steps_over_a_block_at_once() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        await pilot.press("a")
        paste(app.prompt, "x\n" * 10)
        await pilot.press("b", "left", "left", "c", "right", "d")
        assert shown(app.prompt) == ["> ac[Pasted 10 lines]db"]
        assert await pilot.click(app.prompt, offset=(8, 0))
        await pilot.press("e")
        assert app.prompt.text.replace("x\n" * 10, "#") in ("ace#db", "ac#edb")


async def test_words_deleted_into_a_block_take_all_of_it() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        await pilot.press("a", "space")
        paste(app.prompt, "x\n" * 10)
        await pilot.press("ctrl+w")
        assert app.prompt.text in ("a ", "a")


async def test_the_same_words_typed_are_no_block() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        paste(app.prompt, "x\n" * 10)
        await pilot.press("enter", *"[Pasted 10 lines]", "enter")
        assert [text for text, _ in app.sent] == ["x\n" * 10, "[Pasted 10 lines]"]


async def test_what_was_pasted_comes_back_from_the_history_as_text() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        paste(app.prompt, "\n".join("abcdefg"))
        await pilot.press("enter", "up")
        assert shown(app.prompt)[0] == "> a"
        app.prompt.use_history([Sent("x" * 30_000)])
        app.prompt.set_text("")
        await pilot.press("up", "up")
        assert shown(app.prompt) == ["> [Pasted 30,000 characters]"]
        assert app.prompt.text == "x" * 30_000


async def test_that_something_was_pasted_is_told_until_the_prompt_is_empty() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        paste(app.prompt, "x")
        await pilot.press("y", "enter", "z", "enter")
        paste(app.prompt, "x")
        await pilot.press("ctrl+u", "z", "enter")
        assert [event.pasted for event in app.told if isinstance(event, Prompt.Submitted)] == [True, False, False]


async def test_the_whole_text_holds_what_is_not_shown_yet() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        burst(app.prompt, "a long line of text")
        await pilot.pause()
        assert app.prompt.whole_text == "a long line of text"


async def test_to_ask_for_the_whole_text_does_not_cut_a_paste_in_two() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        lines = "a line\r" * 9
        await pilot.press(*"()", "left")
        for start in range(0, len(lines), 10):
            burst(app.prompt, lines[start : start + 10], start=1000 + start * 0.0002)
            await app.prompt.wait_for_refresh()
            assert app.prompt.whole_text == "(" + normalised(lines[: start + 10]) + ")"
        await until_text(app, pilot, "(" + normalised(lines) + ")")
        assert shown(app.prompt) == ["> ([Pasted 9 lines])"]
        assert app.sent == []


async def test_the_rest_of_a_paste_that_halted_joins_its_block() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        burst(app.prompt, "a line\r" * 7 + "a li")
        await until_text(app, pilot, "a line\n" * 7 + "a li")
        burst(app.prompt, "ne\r", start=1000.7)
        await until_text(app, pilot, "a line\n" * 8)
        assert shown(app.prompt) == ["> [Pasted 8 lines]"]
        assert app.sent == []


async def test_one_line_and_enter_in_one_write_is_sent_and_may_be_a_command() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        burst(app.prompt, "/help\r")
        await until_sent(app, pilot)
        burst(app.prompt, "what is in this folder?\r", start=2000)
        await until_sent(app, pilot, 2)
        assert app.sent == [("/help", True), ("what is in this folder?", False)]


async def test_several_lines_that_come_as_keys_are_a_paste_and_send_nothing() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        text = "/one\n" + "line\n" * 8
        await pilot.press(*"see ")
        burst(app.prompt, text.replace("\n", "\r"))
        await until_text(app, pilot, "see " + text)
        assert shown(app.prompt) == ["> see [Pasted 9 lines]"]
        await pilot.press("enter")
        assert app.sent == [("see " + text, False)]


async def test_a_paste_that_comes_as_keys_makes_no_command() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        burst(app.prompt, "/etc/hosts\rx")
        await until_text(app, pilot, "/etc/hosts\nx")
        assert not app.prompt.is_command
        app.prompt.set_text("")
        burst(app.prompt, "!rm -rf /\r", start=2000)
        await until_text(app, pilot, "!rm -rf /\n")
        assert not app.prompt.is_command
        assert app.sent == []


async def test_another_key_ends_a_burst() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        burst(app.prompt, "a long line of text")
        await pilot.press("left", "x")
        assert app.prompt.text == "a long line of texxt"


async def test_keys_that_come_apart_are_typed_one_by_one() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        burst(app.prompt, "hello\rworld", gap=0.05)
        await pilot.pause()
        assert app.sent == [("hello", False)]
        assert app.prompt.text == "world"


async def test_what_is_typed_or_inserted_is_drawn_harmlessly_too() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        burst(app.prompt, "a\u202e")
        await pilot.pause()
        app.prompt.insert("\x1b[2J\r\nb")
        await pilot.pause()
        assert app.prompt.text == "a\u202e\x1b[2J\nb"
        assert shown(app.prompt) == ["> a<U+202E>\\x1b[2J", "  b"]


async def test_undoing_a_paste_that_was_higher_than_the_prompt_is_no_crash() -> None:
    app = PromptApp()
    async with app.run_test(size=(40, 15)) as pilot:
        paste(app.prompt, "x " * 200 + "\n" + "y " * 100)
        await pilot.press("ctrl+z")
        assert app.prompt.text == ""


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(ODD, st.text(max_size=40)), min_size=1, max_size=4))
async def test_whatever_is_pasted_comes_out_whole_and_is_drawn_harmlessly(texts: list[str]) -> None:
    app = PromptApp()
    async with app.run_test(size=(40, 15)) as pilot:
        for text in texts:
            app.prompt.paste(text, *app.prompt.selection)
        assert app.prompt.text == "".join(normalised(text) for text in texts)
        await pilot.pause()
        for row in shown(app.prompt):
            assert safe_text(row, newlines=False, tabs=False) == row
        app.prompt.post_message(app.prompt.Submitted(app.prompt, app.prompt.whole_text, command=False, pasted=True))
        await until_sent(app, pilot)
        assert app.sent == [("".join(normalised(text) for text in texts), False)]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ODD, st.lists(st.sampled_from(["left", "right", "home", "delete", "backspace", "ctrl+w", "ctrl+z"]), max_size=8))
async def test_whatever_is_left_of_a_text_is_drawn_harmlessly(text: str, keys: list[str]) -> None:
    app = PromptApp()
    async with app.run_test(size=(40, 15)) as pilot:
        prompt = app.prompt
        prompt.paste(text, *prompt.selection)
        actions = {
            "left": prompt.action_cursor_left,
            "right": prompt.action_cursor_right,
            "home": prompt.action_cursor_line_start,
            "delete": prompt.action_delete_right,
            "backspace": prompt.action_delete_left,
            "ctrl+w": prompt.action_delete_word_left,
            "ctrl+z": prompt.action_undo,
        }
        for key in keys:
            actions[key]()
        await pilot.pause()
        for row in shown(prompt):
            assert safe_text(row, newlines=False, tabs=False) == row
