"""/undo and /diff, as a person uses them."""

from pathlib import Path
from typing import Any

import pytest

from rune.errors import UsageError
from rune.models.scripted import ScriptedTransport, says
from rune.records.tools import ToolCall
from rune.surface.commands.command import CommandCall
from rune.surface.results import CommandResult
from rune.tools.executors.edit_file import EditFile
from rune.tools.executors.write_file import WriteFile
from tests.turn.rig import Rig, rig
from tests.turn.test_action_protocols import large

TOOLS = (EditFile(), WriteFile())


def changing(name: str, **arguments: Any) -> ScriptedTransport:
    """Return a model that makes one call and then ends."""
    return large(says("", calls=[ToolCall(id="call_1", name=name, arguments=arguments)]), says("done"))


def mending() -> ScriptedTransport:
    return changing("edit_file", path="cart.py", edits=[{"search": "a - b", "replace": "a + b"}])


async def run(it: Rig, line: str, conversation_id: str | None = None) -> CommandResult:
    call = CommandCall(argument="", folder=str(it.folder), channel="task", conversation_id=conversation_id)
    return await it.services.surface.commands.run(line, call)


async def changed(it: Rig, conversation_id: str | None = None) -> str:
    """Have a turn change something, and let it; returns the conversation."""
    said = await it.say("mend it", conversation_id)
    assert said.pending_approval is not None
    await it.answered(said.pending_approval)
    return said.conversation_id


async def test_undo_says_for_each_file_what_was_done_and_diff_shows_it_until_then(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", (), model=mending(), tools=TOOLS) as it:
        cart = it.folder / "cart.py"
        cart.write_text("def add(a, b):\n    return a - b\n")
        conversation = await changed(it)
        assert "a + b" in cart.read_text()
        shown = await run(it, "/diff", conversation)
        assert shown.text.startswith("1 file changed, +1 -1\n--- a/cart.py\n+++ b/cart.py\n")
        assert shown.data["files"][0]["name"] == "cart.py"
        undone = await run(it, "/undo", conversation)
        assert undone.ok
        assert undone.text == "cart.py: as it was before"
        assert "a - b" in cart.read_text()
        shown = await run(it, "/diff", conversation)
        assert shown.text.startswith("everything that was changed here was taken back")
        assert shown.data == {"files": []}
        with pytest.raises(UsageError, match="nothing to take back"):
            await run(it, "/undo", conversation)


async def test_what_was_changed_since_is_left_and_shown(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", (), model=mending(), tools=TOOLS) as it:
        cart = it.folder / "cart.py"
        cart.write_text("def add(a, b):\n    return a - b\n")
        conversation = await changed(it)
        cart.write_text("mine\n")
        undone = await run(it, "/undo", conversation)
        assert not undone.ok
        assert undone.text.startswith("nothing was taken back\ncart.py: left as it is: it was changed since")
        assert "-mine" in undone.text
        assert cart.read_text() == "mine\n"


async def test_what_is_taken_back_in_part_worked_and_says_what_was_left(tmp_path: Path) -> None:
    edits = [{"search": "a - b", "replace": "a + b"}]
    made = [
        ToolCall(id=f"call_{name}", name="edit_file", arguments={"path": f"{name}.py", "edits": edits})
        for name in ("cart", "shop")
    ]
    model = large(says("", calls=made), says("done"))
    async with rig(tmp_path / "home", (), model=model, tools=TOOLS) as it:
        for name in ("cart", "shop"):
            (it.folder / f"{name}.py").write_text("def add(a, b):\n    return a - b\n")
        conversation = await changed(it)
        (it.folder / "shop.py").write_text("mine\n")
        undone = await run(it, "/undo", conversation)
        assert undone.ok
        assert not undone.data["complete"]
        lines = undone.text.splitlines()
        assert lines[:2] == ["1 file taken back, 1 left", "cart.py: as it was before"]
        assert lines[2].startswith("shop.py: left as it is: it was changed since")
        assert (it.folder / "shop.py").read_text() == "mine\n"


async def test_a_new_file_is_taken_away(tmp_path: Path) -> None:
    model = changing("write_file", path="new.py", content="x = 1\n")
    async with rig(tmp_path / "home", (), model=model, tools=TOOLS) as it:
        conversation = await changed(it)
        assert (await run(it, "/undo", conversation)).text == "new.py: removed; it was new"
        assert not (it.folder / "new.py").exists()


async def test_a_long_difference_is_cut_with_a_way_to_see_the_rest(tmp_path: Path) -> None:
    model = changing("write_file", path="long.txt", content="line\n" * 1000)
    async with rig(tmp_path / "home", (), model=model, tools=TOOLS) as it:
        conversation = await changed(it)
        shown = await run(it, "/diff", conversation)
        assert "603 more lines; /diff FILE shows one file" in shown.text
        assert "long.txt +1000 -0" in shown.text
        assert len(shown.data["files"][0]["diff"].splitlines()) == 1003
        one = await run(it, "/diff long.txt", conversation)
        assert one.text.count("\n+line") > 300
        with pytest.raises(UsageError, match="have not changed"):
            await run(it, "/diff other.txt", conversation)
        call = CommandCall(argument="", folder=str(it.folder), channel="task", conversation_id=conversation)
        found = await it.services.surface.commands.candidates("/diff ", call)
        assert [(each.text, each.note) for each in found.options] == [("long.txt", "+1000 -0")]


async def test_where_nothing_was_said_yet_there_is_nothing(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", [], tools=TOOLS) as it:
        with pytest.raises(UsageError, match="nothing to take back"):
            await run(it, "/undo")
        with pytest.raises(UsageError, match="takes no argument"):
            await run(it, "/undo all")
        nothing = await run(it, "/diff")
        assert (nothing.text, nothing.data) == (
            "Rune's tools have changed no file in this conversation",
            {"files": []},
        )
