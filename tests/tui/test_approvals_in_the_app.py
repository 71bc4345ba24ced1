"""What asks for leave in the app: shown as it would run, answered by a key, now or after a restart."""

import asyncio
from contextlib import aclosing
from pathlib import Path

from rune.models.scripted import says
from rune.tui.entries import ToolCard
from rune.tui.widgets.prompt import Prompt
from tests.tui.stage import Stage
from tests.tui.tool_stage import CART, calls, edits, tool_stage


def cards(at: Stage) -> list[str]:
    return [entry.state for entry in at.talk.transcript.entries if isinstance(entry, ToolCard)]


async def test_a_change_is_shown_and_made_once_it_is_allowed(tmp_path: Path) -> None:
    async with tool_stage(tmp_path, [edits(text="I change it."), says("It is exact now.")]) as it:
        await it.at.say("fix the sum")
        await it.asked()
        assert it.at.shows("2 -     total = 0")
        assert it.at.shows("2 +     total = Decimal(0)")
        assert it.at.shows("a always edit_file(**)") or it.at.shows("a always edit_file(")
        assert it.file.read_text() == CART
        assert it.bar.has_focus
        await it.answered("y", "It is exact now.")
        assert it.file.read_text() == CART.replace("0", "Decimal(0)")
        assert not it.bar.display
        assert it.at.app.chat.query_one(Prompt).has_focus
        assert cards(it.at) == ["done"]


async def test_no_can_be_given_with_a_reason_which_the_model_reads(tmp_path: Path) -> None:
    async with tool_stage(tmp_path, [edits(), says("Then not.")]) as it:
        await it.at.say("fix the sum")
        await it.asked()
        await it.press("e")
        await it.at.until_shown("enter says no, for this reason")
        await it.at.type("use floats instead")
        await it.answered("enter", "Then not.")
        assert it.file.read_text() == CART
        assert b"use floats instead" in it.at.model.requests[-1].messages
        assert cards(it.at) == ["denied"]
        assert it.at.shows("not allowed")


async def test_esc_in_the_reason_and_at_the_question_leaves_it_waiting(tmp_path: Path) -> None:
    async with tool_stage(tmp_path, [edits(), says("Then not.")]) as it:
        await it.at.say("fix the sum")
        await it.asked()
        await it.press("e")
        await it.at.until_shown("esc goes back")
        await it.press("escape")
        await it.at.until(lambda: it.bar.has_focus, "the question")
        await it.press("escape")
        await it.at.until(lambda: not it.bar.has_focus, "the prompt")
        assert it.at.talk.asked is not None
        await it.press("tab")
        await it.at.until(lambda: it.bar.has_focus, "the question")
        await it.answered("n", "Then not.")
        assert cards(it.at) == ["denied"]


async def test_what_is_always_allowed_asks_no_more(tmp_path: Path) -> None:
    again = edits("    total = Decimal(1)", search="    total = Decimal(0)")
    async with tool_stage(tmp_path, [edits(), again, says("Both are made.")]) as it:
        await it.at.say("fix the sum")
        await it.asked()
        await it.press("a")
        await it.at.until_shown("enter allows this, and such calls for good")
        await it.answered("enter", "Both are made.")
        assert "Decimal(1)" in it.file.read_text()
        assert cards(it.at) == ["done", "done"]


async def test_while_something_is_typed_the_question_takes_no_key(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with tool_stage(tmp_path, [[gate, *edits()], says("As you like.")]) as it:
        await it.at.say("fix the sum")
        await it.at.type("wh")
        gate.set()
        await it.asked()
        assert not it.bar.has_focus
        await it.at.type("y not floats")
        assert it.at.app.chat.query_one(Prompt).text == "why not floats"
        await it.at.until_shown("enter sends your message instead: this is not done")
        await it.answered("enter", "As you like.")
        assert it.file.read_text() == CART
        assert cards(it.at) == ["denied"]
        assert it.at.shows("something else instead")


async def test_a_message_is_written_only_behind_a_tab(tmp_path: Path) -> None:
    async with tool_stage(tmp_path, [edits(), says("As you like.")]) as it:
        prompt = it.at.app.chat.query_one(Prompt)
        await it.at.say("fix the sum")
        await it.asked()
        await it.at.type("yet another way")
        await it.at.until_shown("tab writes a message instead")
        assert prompt.text == ""
        assert it.at.talk.asked is not None
        await it.press("tab")
        await it.at.until_shown("tab: answer")
        await it.at.type("x")
        await it.press("backspace")
        await it.at.type("use floats")
        assert prompt.text == "use floats"
        await it.answered("enter", "As you like.")
        assert it.file.read_text() == CART
        assert cards(it.at) == ["denied"]


async def test_a_letter_that_is_sent_as_a_message_is_kept(tmp_path: Path) -> None:
    async with tool_stage(tmp_path, [edits(), says("Done.")]) as it:
        prompt = it.at.app.chat.query_one(Prompt)
        await it.at.say("fix the sum")
        await it.asked()
        await it.at.paste("y")
        await it.at.until(lambda: prompt.text == "y", "the paste in the prompt")
        assert prompt.has_focus
        await it.press("enter")
        await it.at.until_shown("tab, then y")
        assert prompt.text == "y"
        assert it.at.talk.asked is not None
        await it.press("tab")
        it.clock.advance(1)
        await it.answered("y", "Done.")


async def test_a_question_survives_a_restart_and_is_told_of_in_its_folder(tmp_path: Path) -> None:
    async with tool_stage(tmp_path, [edits()]) as it:
        await it.at.say("fix the sum")
        await it.asked()
        identity = it.at.talk.conversation_id
        desk = it.at.app.chat.desk
        assert desk is not None
        assert desk.goodbye() == (f"rune -r {identity}   # waits for your answer",)
    async with tool_stage(tmp_path, [says("It is exact now.")]) as it:
        await it.at.until_shown("“fix the sum” waits for your answer", "cart.py")
        await it.at.say(f"/resume {identity}")
        await it.asked()
        assert it.at.shows("2 +     total = Decimal(0)")
        assert cards(it.at) == ["waiting"]
        await it.answered("y", "It is exact now.")
        assert "Decimal(0)" in it.file.read_text()
        assert cards(it.at) == ["done"]
    async with tool_stage(tmp_path, [], resume=identity) as it:
        await it.at.until_shown("It is exact now.", "edit_file")
        assert cards(it.at) == ["done"]
        assert it.at.talk.asked is None


async def test_after_a_restart_the_question_is_there_at_once_where_its_conversation_is_opened(tmp_path: Path) -> None:
    async with tool_stage(tmp_path, [edits()]) as it:
        await it.at.say("fix the sum")
        await it.asked()
    async with tool_stage(tmp_path, [says("Then not.")], carry_on=True) as it:
        await it.asked()
        await it.answered("n", "Then not.")
        assert it.file.read_text() == CART


async def test_what_was_answered_elsewhere_is_told_kindly_and_shown(tmp_path: Path) -> None:
    async with tool_stage(tmp_path, [edits(), says("It is exact now.")]) as it:
        await it.at.say("fix the sum")
        await it.asked()
        asked = it.at.talk.asked
        assert asked is not None
        async with aclosing(it.at.surface.operator.answer(asked.approval_id, "allow")) as events:
            async for _ in events:
                pass
        await it.answered("n", "your answer was not needed")
        assert it.at.shows("It is exact now.")
        assert not it.bar.display
        assert cards(it.at) == ["done"]


async def test_a_command_that_ends_what_waits_takes_the_question_away(tmp_path: Path) -> None:
    for command in ("/done", "/new"):
        async with tool_stage(tmp_path, [edits()]) as it:
            await it.at.say("fix the sum")
            await it.asked()
            await it.press("tab")
            await it.at.say(command)
            await it.at.until(lambda it=it: not it.bar.display, "the end of the question")
            assert it.at.talk.asked is None
            assert it.at.app.chat.query_one(Prompt).has_focus
            assert "waiting" not in cards(it.at)
            await it.at.until_shown("what waited for your answer is not done")


async def test_what_another_rune_has_open_is_answered_there(tmp_path: Path) -> None:
    async with tool_stage(tmp_path, [edits()]) as first:
        await first.at.say("fix the sum")
        await first.asked()
        identity = first.at.talk.conversation_id
        async with tool_stage(tmp_path, [], resume=identity) as it:
            await it.at.until_shown("answer it there, or `rune approve", "apr_", "once it is closed")
            assert not it.at.shows("y allow")
            assert not it.bar.has_focus
            await it.press("tab")
            await it.at.type("y")
            assert it.at.app.chat.query_one(Prompt).text == "y"
            assert first.file.read_text() == CART


async def test_the_end_is_followed_again_once_it_is_answered(tmp_path: Path) -> None:
    long = "".join(f"{number}\n" for number in range(40))
    first = calls("write_file", "I write it.", path="new.txt", content=long)
    async with tool_stage(tmp_path, [first, says("That is all.")]) as it:
        await it.at.say("write it")
        await it.asked()
        await it.press("ctrl+o", "ctrl+home", "end")
        await it.answered("y", "That is all.")


async def test_esc_stops_what_was_allowed(tmp_path: Path) -> None:
    async with tool_stage(
        tmp_path, [calls("run_command", command="echo begun; while :; do read x; done < /dev/zero")]
    ) as it:
        await it.at.say("run it")
        await it.asked()
        await it.press("y")
        await it.at.until_shown("begun", "running", "step 1/")
        await it.press("escape")
        await it.at.idle()
        assert cards(it.at) == ["cancelled"]
        assert it.at.shows("cancelled")


async def test_in_forty_columns_all_of_it_is_there(tmp_path: Path) -> None:
    async with tool_stage(tmp_path, [edits(), says("Done.")], size=(40, 15)) as it:
        await it.at.say("fix the sum")
        await it.asked()
        text = it.at.text()
        assert all(words in text for words in ("y allow", "a always", "n no", "e no, because", "ask"))
        await it.press("y")
        await it.at.until_shown("more below: y again")
        await it.answered("y", "Done.")


async def test_the_other_channel_keeps_its_question(tmp_path: Path) -> None:
    async with tool_stage(tmp_path, [edits(), says("Done.")]) as it:
        await it.at.say("fix the sum")
        await it.asked()
        await it.press("f4")
        await it.at.until_gone("y allow")
        await it.press("f3")
        await it.at.until_shown("y allow")
        it.clock.advance(1)
        await it.answered("y", "Done.")
