"""/new and /done say what they refused: a question that waited for the person."""

from pathlib import Path

import pytest

from rune.models.scripted import says
from rune.records.tools import ToolCall
from rune.surface.commands.command import CommandCall
from rune.tools.executors.write_file import WriteFile
from tests.turn.rig import rig
from tests.turn.test_action_protocols import large

WRITE = ToolCall(id="call_1", name="write_file", arguments={"path": "new.py", "content": "x = 1\n"})


@pytest.mark.parametrize("line", ["/new", "/done"])
async def test_what_waited_is_named_and_nothing_where_nothing_did(tmp_path: Path, line: str) -> None:
    model = large(says("", calls=[WRITE]), says("Hello."))
    async with rig(tmp_path / "home", (), model=model, tools=[WriteFile()]) as it:
        commands, asked = it.services.surface.commands, await it.say("write it")
        assert asked.pending_approval is not None
        here = CommandCall(argument="", folder=str(it.folder), channel="task", conversation_id=asked.conversation_id)
        moved = await commands.run(line, here)
        said = moved.text.splitlines()
        assert len(said) == 2
        assert said[1].startswith("refused, since it waited for your answer: write_file new.py")
        assert moved.data["refused"] == [said[1].partition(": ")[2]]
        assert not (it.folder / "new.py").exists()
        other = (await it.say("hello")).conversation_id
        here = CommandCall(argument="", folder=str(it.folder), channel="task", conversation_id=other)
        again = await commands.run(line, here)
        assert (len(again.text.splitlines()), again.data["refused"]) == (1, [])
