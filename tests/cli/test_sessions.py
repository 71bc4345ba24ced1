"""`rune sessions` on a real home: what it prints, what it changes, what it refuses."""

import asyncio
import json
from pathlib import Path

import pytest

from rune.cli.arguments import parse
from rune.cli.output import Output
from rune.cli.sessions import run_sessions
from rune.errors import LeaseHeldError, NotFoundError, UsageError
from rune.models.scripted import says
from tests.fakes.streams import KeptStream
from tests.turn.rig import Rig, rig

NOW = 1_796_040_000_000


async def ran(it: Rig, *arguments: str) -> tuple[str, str]:
    """Return what `rune sessions ARGUMENTS` wrote to stdout and to stderr."""
    out, err = KeptStream(), KeptStream()
    options = parse(["sessions", *arguments])
    await run_sessions(it.services.surface, options, Output(out, err), lambda: str(it.folder), NOW)
    return out.text, err.text


async def test_the_list_says_what_is_a_fork_and_what_is_hidden(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", [says("The Rhine.")]) as it:
        said = await it.say("name a river")
        end = said.conversation_id[-6:]
        fork, hint = await ran(it, "fork", end)
        assert hint == f"rune: go on with it by `rune -r {fork.strip()}`\n"
        await ran(it, "hide", end)
        listed, _ = await ran(it, "list")
        assert [line.split()[0] for line in listed.splitlines()[1:]] == [fork.strip()]
        assert f"name a river  (fork of …{end})" in listed
        assert "name a river  (hidden)" in (await ran(it, "list", "--hidden"))[0]
        await ran(it, "unhide", end)
        assert len((await ran(it, "list"))[0].splitlines()) == 3


async def test_a_fork_can_end_at_a_message(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", [says("The Rhine."), says("The Elbe.")]) as it:
        first = await it.say("name a river")
        await it.say("another", first.conversation_id)
        messages = json.loads((await ran(it, "show", first.conversation_id, "--json"))[0])
        fork, _ = await ran(it, "fork", first.conversation_id, "--at", messages[1]["id"][-8:])
        shared = json.loads((await ran(it, "show", fork.strip(), "--json"))[0])
        assert shared == messages[:2]
        with pytest.raises(NotFoundError):
            await ran(it, "fork", first.conversation_id, "--at", "msg_00000000000000000000000000")


async def test_search_finds_words_in_all_folders_or_only_here(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", [says("It ends in the North Sea.")]) as it:
        said = await it.say("where does the Rhine end?")
        text, _ = await ran(it, "search", "north", "se")
        assert text.splitlines()[0].startswith(said.conversation_id)
        assert "North Sea" in text.splitlines()[1]
        (hit,) = json.loads((await ran(it, "search", "--here", "--json", "rhine"))[0])
        marked = [hit["snippet"][start:end] for start, end in hit["marks"]]
        assert (hit["role"], marked) == ("user", ["Rhine"])
        assert (await ran(it, "search", "danube"))[0] == "nothing was found\n"


async def test_a_title_is_changed(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", [says("The Rhine.")]) as it:
        said = await it.say("name a river")
        text, _ = await ran(it, "rename", said.conversation_id[-6:], "Old  rivers\n")
        assert text == f"{said.conversation_id}: {(await it.services.surface.views.rows())[0].title}\n"
        with pytest.raises(UsageError):
            await ran(it, "rename", said.conversation_id, "  ")


async def test_an_export_is_a_new_file_and_never_another_one(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", [says("The Rhine.")]) as it:
        said = await it.say("name a river")
        file = tmp_path / "rivers.md"
        _, told = await ran(it, "export", said.conversation_id, "-o", str(file))
        assert told == f"rune: 2 messages written to {file}\n"
        written = file.read_bytes()
        assert written.decode() == (await ran(it, "export", said.conversation_id))[0]
        with pytest.raises(UsageError, match="nothing is overwritten"):
            await ran(it, "export", said.conversation_id, "--format", "json", "-o", str(file))
        assert file.read_bytes() == written
        assert not await asyncio.to_thread(lambda: list(tmp_path.glob(".*")))


@pytest.mark.parametrize("action", [("rename", "x"), ("hide",)], ids=["rename", "hide"])
async def test_what_another_process_has_open_is_left_as_it_is(tmp_path: Path, action: tuple[str, ...]) -> None:
    async with rig(tmp_path / "home", [says("yes")]) as holding, rig(tmp_path / "home", []) as it:
        said = await holding.say("mine")
        name, *rest = action
        with pytest.raises(LeaseHeldError) as refused:
            await ran(it, name, said.conversation_id, *rest)
        assert refused.value.pid
        assert f"rune sessions fork {said.conversation_id}" in refused.value.hint
        assert (await ran(it, "fork", said.conversation_id))[0].startswith("cnv_")
