"""kill -9 while an undo gives files back: nothing is lost, it is told, and the next one does the rest."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from rune.errors import UsageError
from rune.models.scripted import says
from rune.records.tools import ToolCall
from rune.tools.executors.write_file import WriteFile
from tests.turn.rig import Rig, rig
from tests.turn.test_action_protocols import large

NAMES = [f"f{number:02}.txt" for number in range(30)]


def changing() -> list[ToolCall]:
    return [
        ToolCall(id=f"call_{name}", name="write_file", arguments={"path": name, "content": f"new {name}\n"})
        for name in NAMES
    ]


async def changed(it: Rig) -> str:
    """Have one turn make all the files anew; returns the conversation."""
    said = await it.say("write them")
    assert said.pending_approval is not None
    await it.answered(said.pending_approval)
    return said.conversation_id


def killed_after(folder: Path, home: Path, conversation_id: str, count: int) -> None:
    """Have a process take it back, and kill it when so many files are gone."""
    command = [sys.executable, "-m", "tests.turn.undoing_process", str(home), conversation_id]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2]) as process:
        deadline = time.monotonic() + 60
        while process.poll() is None and sum((folder / name).exists() for name in NAMES) > len(NAMES) - count:
            assert time.monotonic() < deadline, "it never came so far"
        process.kill()


@pytest.mark.parametrize(
    "count", [3, *(pytest.param(count, marks=pytest.mark.slow) for count in (1, 8, 16, 24, 29, 30))]
)
async def test_the_next_undo_does_what_a_killed_one_left(tmp_path: Path, count: int) -> None:
    home = tmp_path / "home"
    async with rig(home, (), model=large(says("", calls=changing()), says("done")), tools=[WriteFile()]) as it:
        conversation = await changed(it)
        folder = it.folder
        assert all((folder / name).exists() for name in NAMES)
    killed_after(folder, home, conversation, count)
    left = [name for name in NAMES if (folder / name).exists()]
    assert all((folder / name).read_text() == f"new {name}\n" for name in left)
    async with rig(home, (), tools=[WriteFile()]) as it:
        try:
            undone = await it.operator.undo(conversation)
        except UsageError:
            assert left == []  # it came to its end before it was killed
            return
        assert [file.name for file in undone.files] == left
        assert "cut off" in undone.notes[0]
        assert [name for name in NAMES if (folder / name).exists()] == []
        facts = [event.event_type for event in it.facts()][-4 if left else -2 :]
        assert facts == ["tool.intent", "tool.result", "tool.intent", "tool.result"][: len(facts)]
