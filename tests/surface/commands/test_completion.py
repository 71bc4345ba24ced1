"""What can be typed next in a slash command."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from rune.errors import UsageError
from rune.models.scripted import says
from rune.surface.commands.command import Command, CommandCall
from rune.surface.commands.completion import Completion
from rune.surface.results import CommandResult
from tests.surface.test_views import Down
from tests.turn.rig import Rig, rig

VERBS = ("pull", "rm", "show", "probe", "protocol")


def call(it: Rig, conversation_id: str | None = None) -> CommandCall:
    return CommandCall(argument="", folder=str(it.folder), channel="task", conversation_id=conversation_id)


async def texts(it: Rig, line: str, conversation_id: str | None = None) -> list[str]:
    found = await it.services.surface.commands.candidates(line, call(it, conversation_id))
    return [option.text for option in found.options]


class ThemeCommand:
    """A command of a surface's own."""

    name = "theme"
    usage = "/theme [NAME]"
    summary = "list the themes, or choose one; a summary that is long enough to need a second line on a screen"

    async def run(self, call: CommandCall) -> CommandResult:
        return CommandResult(text=f"theme {call.argument}", data={})

    async def complete(self, call: CommandCall) -> Sequence[Completion]:
        del call
        return (Completion(text="dark"),)


async def test_the_name_is_completed_first_and_then_the_argument(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", []) as it:
        commands = it.services.surface.commands
        names = await commands.candidates("/tr", call(it))
        assert names.start == 0
        assert Completion(text="/trust", note=commands.by_name["trust"].summary) in names.options
        assert await texts(it, "/") == sorted(f"/{name}" for name in commands.by_name)
        argument = await commands.candidates("/trust  y", call(it))
        assert (argument.start, [option.text for option in argument.options]) == (8, ["yes", "no"])
        assert (await commands.candidates("/trust ", call(it))).start == 7


@pytest.mark.parametrize(
    "line", ["", "hello", "/nonsense x", "/etc/hosts x", "/new ", "/done ", "/health ", "/context "]
)
async def test_where_there_is_nothing_to_choose_nothing_is_offered(tmp_path: Path, line: str) -> None:
    async with rig(tmp_path / "home", []) as it:
        assert await texts(it, line) == []


async def test_arguments_are_what_is_there(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", lambda _: says("yes")) as it:
        one, two = await it.say("about rivers"), await it.say("about lakes")
        trace = await it.services.surface.views.trace(None)
        assert await texts(it, "/help ") == sorted(it.services.surface.commands.by_name)
        assert await texts(it, "/model ") == ["scripted", *VERBS]
        assert await texts(it, "/model rm ") == await texts(it, "/model rm scr") == ["rm scripted"]
        assert await texts(it, "/model pull ") == ["scripted", *VERBS]
        assert await texts(it, "/trace ", two.conversation_id) == ["list", trace.id]
        assert await texts(it, "/resume ") == [two.conversation_id, one.conversation_id]
        assert await texts(it, "/resume ", two.conversation_id) == [one.conversation_id]
        (offered,) = (await it.services.surface.commands.candidates("/resume ", call(it, two.conversation_id))).options
        assert offered.note == "about rivers, just now"


async def test_a_server_that_is_down_offers_no_model_and_raises_nothing(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", [], model=Down()) as it:
        assert await texts(it, "/model ") == list(VERBS)


async def test_a_surface_s_own_commands_are_found_completed_and_suggested(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", []) as it:
        own: Command = ThemeCommand()
        commands = it.services.surface.commands.extended([own])
        assert (await commands.run("/theme dark", call(it))).text == "theme dark"
        assert "/theme [NAME]" in (await commands.run("/help", call(it))).text
        assert [option.text for option in (await commands.candidates("/theme d", call(it))).options] == ["dark"]
        with pytest.raises(UsageError) as refused:
            await commands.run("/themes", call(it))
        assert refused.value.hint == "Did you mean /theme?"
        assert "theme" not in it.services.surface.commands.by_name
        with pytest.raises(ValueError, match="one name"):
            commands.extended([own])


async def test_help_is_aligned_and_fits_80_columns(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", []) as it:
        commands = it.services.surface.commands.extended([ThemeCommand()])
        lines = (await commands.run("/help", call(it))).text.splitlines()
        assert max(len(line) for line in lines) <= 80
        column = len("/fork [MESSAGE|N back]") + 2
        assert {line[column - 2 : column] for line in lines} == {"  "}
        assert all(line[column] != " " for line in lines)
        assert any(line.startswith(" " * column) for line in lines)
