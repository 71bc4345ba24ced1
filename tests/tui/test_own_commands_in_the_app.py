"""`!cmd` in the app: only what was typed so, run as the person, shown as theirs; and the permission mode of tools."""

import os
import shlex
import sys
from pathlib import Path

import pytest

from rune.models.scripted import says
from rune.tui.entries import ToolCard
from rune.tui.widgets.prompt import Prompt
from tests.tui.stage import Stage, said
from tests.tui.tool_stage import CART, edits, tool_stage


def own(at: Stage) -> list[ToolCard]:
    return [entry for entry in at.talk.transcript.entries if isinstance(entry, ToolCard) and entry.own]


async def test_a_command_of_the_person_runs_in_the_folder_and_says_that_no_sandbox_held_it(tmp_path: Path) -> None:
    async with tool_stage(tmp_path, []) as it:
        await it.press("!")
        await it.at.until_shown("shell: runs as you, outside the sandbox")
        await it.at.say('while read line; do echo "> $line"; done < cart.py; exit 3')
        await it.at.until_shown("> total = 0", "ran as you, outside the sandbox", "✗ exit 3")
        await it.at.until_gone("shell: runs as you")
        assert [card.state for card in own(it.at)] == ["failed"]
        assert it.at.model.requests == []
        await it.press("up")
        assert it.at.app.chat.query_one(Prompt).is_command
        await it.at.until_shown("shell: runs as you")


async def test_what_was_pasted_or_begins_otherwise_is_a_message(tmp_path: Path) -> None:
    async with tool_stage(tmp_path, lambda _: says("I read it.")) as it:
        await it.at.paste("!echo pasted > cart.py")
        await it.press("enter")
        await it.at.until_shown("I read it.")
        await it.at.idle()
        assert not it.at.shows("shell: runs as you")
        assert own(it.at) == []
        assert it.file.read_text() == CART


async def test_esc_stops_it_and_nothing_of_it_is_left(tmp_path: Path) -> None:
    line = "import os, time; print('begun', os.getpid(), flush=True); time.sleep(60)"
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(line)}"
    async with tool_stage(tmp_path, []) as it:
        prompt = it.at.app.chat.query_one(Prompt)
        await it.press("!")
        await it.at.until(lambda: prompt.is_command, "the command")
        prompt.insert(command)
        await it.press("enter")
        await it.at.until(lambda: bool(own(it.at)) and "begun" in own(it.at)[0].output, "its output")
        process = int(own(it.at)[0].output.split()[1])
        await it.at.until_shown("your command runs", "esc stops")
        await it.press("escape")
        await it.at.until(lambda: own(it.at)[0].state == "cancelled", "its end")
        await it.at.until_shown("cancelled")
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


async def test_shift_tab_changes_the_mode_which_the_header_shows_and_a_restart_keeps(tmp_path: Path) -> None:
    async with tool_stage(tmp_path, [edits(), says("It is exact now.")]) as it:
        await it.at.until_shown("· ask")
        await it.press("shift+tab")
        await it.at.until_shown("· edits")
        await it.at.say("fix the sum")
        await it.at.until_shown("It is exact now.")
        await it.at.idle()
        assert "Decimal(0)" in it.file.read_text()
        assert it.at.shows("2 +     total = Decimal(0)")
        await it.press("shift+tab")
        await it.at.until_shown("· read")
        identity = it.at.talk.conversation_id
        assert identity is not None
        assert await it.at.surface.operator.permission(identity) == "read"
        await it.at.say("/new")
        await it.at.until_shown("· ask")
    async with tool_stage(tmp_path, [], resume=identity) as it:
        await it.at.until_shown("· read")
        await it.press("shift+tab")
        await it.at.until_shown("· ask")


async def test_the_mode_of_the_start_holds_for_the_first_message(tmp_path: Path) -> None:
    async with tool_stage(tmp_path, [edits(), says("I may not.")], permission="read") as it:
        await it.at.until_shown("· read")
        await said(it.at, "fix the sum", "I may not.")
        assert it.file.read_text() == CART
        assert it.at.shows("not allowed")


async def test_a_diff_that_a_command_shows_is_drawn_as_one_and_ctrl_o_opens_what_tools_did(tmp_path: Path) -> None:
    async with tool_stage(tmp_path, [edits(), says("It is exact now.")], permission="edits") as it:
        await said(it.at, "fix the sum", "It is exact now.")
        await it.at.say("/diff")
        await it.at.until(lambda: it.at.text().count("2 +     total = Decimal(0)") == 2, "the diff")
        await it.press("ctrl+home", "ctrl+o")
        await it.at.until_shown("▾ edit_file")
        opened = it.at.text()
        await it.press("ctrl+o")
        await it.at.until(lambda: it.at.text() != opened, "the fold")
