"""/todo: the model's own checklist."""

from pathlib import Path

from rune.models.scripted import says
from rune.surface.commands.command import CommandCall
from rune.surface.commands.todo import TodoCommand
from rune.tools.executors.todo import Todo
from tests.turn.rig import rig
from tests.turn.test_action_protocols import large
from tests.turn.tools import call


def asking(conversation_id: str | None, folder: Path) -> CommandCall:
    return CommandCall(argument="", folder=str(folder), channel="task", conversation_id=conversation_id)


async def test_it_is_the_last_list_that_was_taken(tmp_path: Path) -> None:
    first = call("todo", items=[{"text": "look", "state": "doing"}, {"text": "fix\u202e it"}])
    second = call("todo", items=[{"text": "look", "state": "done"}, {"text": "fix it", "state": "doing"}])
    wrong = call("todo", items=[{"text": " "}])
    model = large(says("", calls=[first]), says("", calls=[second]), says("", calls=[wrong]), says("Going on."))
    async with rig(tmp_path / "home", (), model=model, tools=[Todo()]) as it:
        closed = await it.say()
        shown = await TodoCommand(it.services.surface.views).run(asking(closed.conversation_id, it.folder))
        nothing = await TodoCommand(it.services.surface.views).run(asking(None, it.folder))
    assert shown.text == "[x] look\n[>] fix it"
    assert shown.data["items"] == [{"text": "look", "state": "done"}, {"text": "fix it", "state": "doing"}]
    assert nothing.text == "the model keeps no checklist here"
