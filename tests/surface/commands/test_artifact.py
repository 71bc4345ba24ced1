"""/artifact: what a tool said that was too long for the model is within a person's reach."""

from pathlib import Path

import pytest

from rune.errors import UsageError
from rune.models.scripted import ScriptedTransport, says
from rune.records.tools import ToolCall
from rune.surface.commands.command import CommandCall
from rune.surface.results import CommandResult
from rune.tools.executors.read_file import ReadFile
from rune.tools.executors.run_command import RunCommand
from rune.turn.events import TurnClosed
from tests.turn.rig import Rig, rig
from tests.turn.test_action_protocols import large

TOOLS = (RunCommand(), ReadFile())
LONG = "seq 1 3000 | sed 's/^/a long line with number /'"


def running(*commands: str) -> ScriptedTransport:
    """Return a model that runs each command in an answer of its own."""
    made = [ToolCall(id="call_1", name="run_command", arguments={"command": command}) for command in commands]
    return large(*(says("", calls=[each]) for each in made), says("done"), says("nothing to do"))


def asking(it: Rig, conversation_id: str | None) -> CommandCall:
    return CommandCall(argument="", folder=str(it.folder), channel="task", conversation_id=conversation_id)


async def run(it: Rig, line: str, conversation_id: str | None) -> CommandResult:
    return await it.services.surface.commands.run(line, asking(it, conversation_id))


async def talked(it: Rig) -> str:
    """Have a turn run its commands and let each; returns the conversation."""
    closed = await it.say("count")
    while closed.pending_approval is not None:
        (closed,) = [each for each in await it.answered(closed.pending_approval) if isinstance(each, TurnClosed)]
    assert not closed.error, closed.error
    return closed.conversation_id


async def test_a_long_output_is_listed_shown_and_written_whole(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", (), model=running(LONG, "echo short"), tools=TOOLS) as it:
        conversation = await talked(it)
        listed = await run(it, "/artifact", conversation)
        (kept,) = listed.data["artifacts"]
        assert (kept["tool"], len(kept["id"])) == ("run_command", 12)
        assert listed.text.splitlines()[0].startswith(f"{kept['id']}  run_command")
        assert listed.text.splitlines()[0].endswith("kB")
        shown = await run(it, f"/artifact {kept['id'][:4]}", conversation)
        lines = shown.text.splitlines()
        assert "a long line with number 1" in lines[:5]
        assert len(lines) == 402
        assert f"more lines; /artifact {kept['id']} FILE writes all of it into a new file" in lines[-1]
        assert "number 3000" in shown.data["text"]
        written = await run(it, f"/artifact {kept['id']} all of it.txt", conversation)
        path = it.folder / "all of it.txt"
        assert written.text.endswith(f"written to {path}")
        assert path.read_text() == shown.data["text"]
        with pytest.raises(UsageError, match="nothing is overwritten"):
            await run(it, f"/artifact {kept['id']} all of it.txt", conversation)
        found = await it.services.surface.commands.candidates("/artifact ", asking(it, conversation))
        assert [each.text for each in found.options] == [kept["id"]]


async def test_only_the_outputs_of_this_conversation_are_shown(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", (), model=running(LONG), tools=TOOLS) as it:
        kept = (await run(it, "/artifact", await talked(it))).data["artifacts"][0]["id"]
        other = (await it.say("hello")).conversation_id
        assert (await run(it, "/artifact", other)).data == {"artifacts": []}
        with pytest.raises(UsageError, match="no output of this conversation"):
            await run(it, f"/artifact {kept}", other)
        assert (await run(it, "/artifact", None)).text.startswith("no output of this conversation is kept")


@pytest.mark.parametrize("wrong", ["abc", "../../etc", "xyzxyz", "sha256:"])
async def test_what_is_no_id_is_said_to_be_none(tmp_path: Path, wrong: str) -> None:
    async with rig(tmp_path / "home", [], tools=TOOLS) as it:
        with pytest.raises(UsageError, match="is no id of an output"):
            await run(it, f"/artifact {wrong}", None)


async def test_an_output_that_is_gone_is_said_to_be(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", (), model=running(LONG), tools=TOOLS) as it:
        conversation = await talked(it)
        kept = (await run(it, "/artifact", conversation)).data["artifacts"][0]["id"]
        (blob,) = (tmp_path / "home").rglob(f"{kept[2:]}*")
        blob.unlink()
        listed = await run(it, "/artifact", conversation)
        assert listed.text.splitlines()[0].endswith("not kept any more")
