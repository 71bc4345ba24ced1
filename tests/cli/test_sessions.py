"""`rune sessions` on a real home: what it prints, what it changes, what it refuses."""

import asyncio
import json
from pathlib import Path

import pytest

from rune.bootstrap import build
from rune.cli.arguments import parse
from rune.cli.output import Output
from rune.cli.sessions import run_sessions
from rune.errors import LeaseHeldError, NotFoundError, UsageError
from rune.models.scripted import ScriptedTransport, says
from rune.surface.commands.command import CommandCall
from rune.tui.endings import ending_words
from rune.tui.transcript_state import Ending, restored
from tests.fakes.streams import KeptStream
from tests.turn.rig import Rig, rig, until
from tests.turn.test_operator import copy_home
from tests.turn.test_recovered_calls import a_home_killed_in_mid_turn, store_calls

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


async def test_a_conversation_without_a_message_is_listed_only_with_all(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", [says("The Rhine.")]) as it:
        said = await it.say("name a river")
        fork = (await ran(it, "fork", said.conversation_id))[0].strip()
        new = CommandCall(argument="", folder=str(it.folder), channel="task", conversation_id=None)
        empty = (await it.services.surface.commands.run("/new", new)).opens
        assert empty is not None
        assert {line.split()[0] for line in (await ran(it))[0].splitlines()[1:]} == {said.conversation_id, fork}
        assert {row.id for row in await it.services.surface.views.rows()} == {said.conversation_id, fork}
        assert await it.services.surface.views.latest_free(str(it.folder), "task") != (empty, ())
        assert empty in (await ran(it, "--all"))[0]
        assert empty in (await ran(it, "list", "--all", "--json"))[0]


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


async def test_a_fork_at_a_question_says_that_it_begins_there_and_nothing_of_an_answer(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", [says("The Rhine."), says("The Elbe.")]) as it:
        first = await it.say("name a river")
        messages = json.loads((await ran(it, "show", first.conversation_id, "--json"))[0])
        fork = (await ran(it, "fork", first.conversation_id, "--at", messages[0]["id"]))[0].strip()
        shown, _ = await ran(it, "show", fork)
        assert shown.endswith("name a river\n\n[the fork begins here]\n\n")
        assert "*\\[the fork begins here\\]*" in (await ran(it, "export", fork))[0]
        await it.say("in Asia", fork)
        shown, _ = await ran(it, "show", fork)
        assert shown.count("[the fork begins here]") == 1
        assert "no answer" not in shown + (await ran(it, "show", first.conversation_id))[0]


async def test_a_turn_without_an_end_runs_while_somebody_has_it_open_and_was_cut_off_else(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with rig(home, [[asyncio.Event()]]) as talking, rig(home, []) as looking:
        turn = asyncio.create_task(talking.turn("name a river"))
        await until(lambda: bool(talking.model.requests))
        end = talking.facts()[0].partition_key
        assert "[no answer: the turn has not ended]" in (await ran(looking, "show", end))[0]
        copy_home(home, tmp_path / "damaged")
        talking.operator.cancel()
        await turn
    # Nothing is brought to its end where nothing may be written.
    services = build({"RUNE_HOME": str(tmp_path / "damaged"), "PATH": ""}, surface_kind="command", transports=())
    try:
        await services.start()
        looking = Rig(services, ScriptedTransport([]), tmp_path)
        assert "[no answer: it was cut off]" in (await ran(looking, "show", end))[0]
        assert "no answer: it was cut off" in (await ran(looking, "export", end))[0]
    finally:
        await services.close()


async def test_what_may_have_run_is_said_wherever_the_conversation_is_shown(tmp_path: Path) -> None:
    killed, turn_id, conversation_id = await a_home_killed_in_mid_turn(tmp_path / "home")
    await store_calls(killed, turn_id, conversation_id)
    async with rig(killed, []) as it:
        await ran(it, "fork", conversation_id)
        assert (await ran(it, "show", conversation_id))[0].endswith("[may have run: runs make]\n\n")
        assert "*\\[may have run: runs make\\]*" in (await ran(it, "export", conversation_id))[0]
        (turn,) = json.loads((await ran(it, "export", conversation_id, "--format", "json"))[0])["turns"]
        assert turn["may_have_run"] == ["runs make"]
        views = it.services.surface.views
        ending = restored(await views.transcript(conversation_id), await views.ends(conversation_id)).settled[-1]
        assert isinstance(ending, Ending)
        assert ending_words(ending).endswith("; may have run: runs make")


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


@pytest.mark.parametrize("words", [("Old", "rivers of Asia"), ("Old rivers\nof\n\n Asia",)], ids=["words", "lines"])
async def test_a_title_of_several_words_or_lines_is_all_of_them(tmp_path: Path, words: tuple[str, ...]) -> None:
    async with rig(tmp_path / "home", [says("The Rhine.")]) as it:
        said = await it.say("name a river")
        text, _ = await ran(it, "rename", said.conversation_id, *words)
        assert text == f"{said.conversation_id}: Old rivers of Asia\n"


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


@pytest.mark.parametrize(
    ("name", "more", "kind"),
    [
        ("a.json", (), "json"),
        ("a.JSON", (), "json"),
        ("a.markdown", (), "markdown"),
        ("a", (), "markdown"),
        ("b.json", ("--format", "markdown"), "markdown"),
        ("b.md", ("--format", "json"), "json"),
    ],
    ids=["json", "upper", "markdown", "none", "told-markdown", "told-json"],
)
async def test_the_name_of_the_file_decides_unless_a_format_is_given(
    tmp_path: Path, name: str, more: tuple[str, ...], kind: str
) -> None:
    async with rig(tmp_path / "home", [says("The Rhine.")]) as it:
        said = await it.say("name a river")
        file = tmp_path / name
        await ran(it, "export", said.conversation_id, "-o", str(file), *more)
        assert file.read_bytes()[:1] == {"json": b"{", "markdown": b"#"}[kind]


@pytest.mark.parametrize("name", ["", ".", "/", "./"], ids=["empty", "here", "root", "slash"])
async def test_what_is_no_name_for_a_file_is_refused_in_words(tmp_path: Path, name: str) -> None:
    async with rig(tmp_path / "home", [says("The Rhine.")]) as it:
        said = await it.say("name a river")
        with pytest.raises(UsageError, match=r"^'[./]?' is no name for a file$"):
            await ran(it, "export", said.conversation_id, "-o", name)


@pytest.mark.parametrize("action", [("rename", "x"), ("hide",)], ids=["rename", "hide"])
async def test_what_another_process_has_open_is_left_as_it_is(tmp_path: Path, action: tuple[str, ...]) -> None:
    async with rig(tmp_path / "home", [says("yes")]) as holding, rig(tmp_path / "home", []) as it:
        said = await holding.say("mine")
        name, *rest = action
        with pytest.raises(LeaseHeldError) as refused:
            await ran(it, name, said.conversation_id, *rest)
        assert refused.value.pid
        assert f"`rune sessions fork {said.conversation_id[-6:]}`" in refused.value.hint
        assert (await ran(it, "fork", said.conversation_id))[0].startswith("cnv_")
