"""/permissions, as a person uses it."""

from pathlib import Path

import pytest

from rune.errors import NotFoundError, UsageError
from rune.models.scripted import Step, says
from rune.records.tools import ToolCall
from rune.surface.commands.command import CommandCall
from rune.surface.results import CommandResult
from rune.tools.executors.edit_file import EditFile
from rune.tools.executors.read_file import ReadFile
from tests.turn.rig import Rig, rig

LOOK = ToolCall(id="call_1", name="read_file", arguments={"path": "src/cart.py"})
EDIT = ToolCall(
    id="call_1",
    name="edit_file",
    arguments={"path": "src/cart.py", "edits": [{"search": "total = 0", "replace": "total = 1"}]},
)


def mends() -> list[list[Step]]:
    return [says("", calls=[LOOK]), says("", calls=[EDIT]), says("mended")]


async def run(
    it: Rig, line: str, conversation_id: str | None = None, *, folder: str = "", **chosen: str
) -> CommandResult:
    call = CommandCall(
        argument="",
        folder=folder or str(it.folder),
        channel="task",
        conversation_id=conversation_id,
        **chosen,  # pyright: ignore[reportArgumentType]  # a literal, widened by the keywords
    )
    return await it.services.surface.commands.run(line, call)


async def a_rule(it: Rig) -> str:
    """Have the model change a file, and answer "always"; returns the conversation."""
    (it.folder / "src").mkdir()
    (it.folder / "src" / "cart.py").write_text("total = 0\n")
    said = await it.say("mend it")
    assert said.pending_approval is not None
    async for _ in it.operator.answer(said.pending_approval, "allow", always=True):
        pass
    assert (it.folder / "src" / "cart.py").read_text() == "total = 1\n"
    return said.conversation_id


async def test_it_shows_the_modes_and_marks_the_one_in_force(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", [says("yes")]) as it:
        before = await run(it, "/permissions")
        assert before.text.startswith("* ask ")
        assert "No rules in this folder." in before.text
        said = await it.say()
        chosen = await run(it, "/permissions edits", said.conversation_id)
        assert (chosen.permission, chosen.data) == ("edits", {"permission": "edits", "previous": "ask"})
        assert "\n* edits " in (await run(it, "/permissions", said.conversation_id)).text
        assert await it.operator.permission(said.conversation_id) == "edits"


async def test_before_the_first_message_it_is_passed_on_with_that(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", []) as it:
        assert (await run(it, "/permissions read")).permission == "read"
        assert it.facts() == []
        assert "\n* read " in (await run(it, "/permissions", permission="read")).text


async def test_a_rule_is_shown_with_who_made_it_and_can_be_taken_back(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", mends(), tools=(ReadFile(), EditFile())) as it:
        conversation = await a_rule(it)
        shown = await run(it, "/permissions", conversation, folder="/elsewhere")
        (rule,) = shown.data["rules"]
        end = rule["id"][-6:]
        assert f"…{end}  edit_file(src/**)" in shown.text
        assert f"made by you just now, answering …{rule['approval_id'][-6:]}; not used yet" in shown.text
        assert "edit_file" not in (await run(it, "/permissions", folder="/elsewhere")).text
        taken = await run(it, f"/permissions revoke {end}")
        assert taken.text == f"edit_file(src/**) asks again in {it.folder}"
        assert (await run(it, "/permissions", conversation)).data["rules"] == []
        with pytest.raises(NotFoundError):
            await run(it, f"/permissions revoke {end}")


@pytest.mark.parametrize("argument", ["loud", "ASK", "ask edits", "revoke", "revoke a b", "ask\x1b[2J"])
async def test_anything_else_is_refused_with_its_usage(tmp_path: Path, argument: str) -> None:
    async with rig(tmp_path / "home", []) as it:
        with pytest.raises(UsageError, match="/permissions: ") as refused:
            await run(it, f"/permissions {argument}")
        assert refused.value.hint.startswith("Usage: /permissions ")
        assert "\x1b" not in refused.value.message


async def test_modes_and_rules_complete(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", mends(), tools=(ReadFile(), EditFile())) as it:
        await a_rule(it)
        call = CommandCall(argument="", folder=str(it.folder), channel="task", conversation_id=None)
        found = await it.services.surface.commands.candidates("/permissions r", call)
        assert [option.text.split()[0] for option in found.options] == ["ask", "edits", "read", "revoke"]
        assert "(as it is now)" in found.options[0].note
        assert found.options[-1].note == "asks again: edit_file(src/**)"
