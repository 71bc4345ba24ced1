"""A broken project is mended through the real loop: read, edited, proved, and taken back."""

from pathlib import Path

import msgspec
import pytest

from rune.models.scripted import MODEL, WINDOW, ScriptedTransport, Step, says
from rune.models.text_tools.constrained import answer_text, call_text
from rune.models.transport import ModelInfo
from rune.records.models import ActionProtocol
from rune.records.tools import ToolCall
from rune.records.turns import StopReason
from tests.journeys.projects import NAMES, Project, mend, services_on


def scripted(project: Project, protocol: ActionProtocol) -> ScriptedTransport:
    """Return a model that knows how to mend the project, and is of a size that asks for tools in this way."""
    answers: list[list[Step]] = []
    for answer in project.script():
        call = answer.call
        if protocol == "native":
            calls = [ToolCall(id="call_1", name=call.name, arguments=call.arguments)] if call else []
            answers.append(says(answer.text, calls=calls))
        elif call:
            answers.append(says(call_text(ToolCall(id="", name=call.name, arguments=call.arguments))))
        else:
            answers.append(says(answer_text(answer.text)))
    info = ModelInfo(
        name=MODEL,
        provider="scripted",
        capabilities=frozenset({"chat", "tools"}),
        context_length=WINDOW,
        digest=MODEL,
        parameters="70B" if protocol == "native" else "1.5B",
    )
    return ScriptedTransport(answers, models=[info])


@pytest.mark.parametrize(
    ("name", "protocol"), [*((name, "native") for name in NAMES), ("cart", "constrained"), ("greet", "constrained")]
)
async def test_a_broken_project_is_mended_proved_and_taken_back(
    name: str, protocol: ActionProtocol, tmp_path: Path
) -> None:
    project = Project(name, tmp_path / "project")
    project.need_programs()
    assert not project.works()
    model = scripted(project, protocol)

    async with services_on(tmp_path / "home", [model]) as services:
        mended = await mend(services.surface, project)
        assert mended.closed.stop_reason is StopReason.ANSWERED, (mended.closed.error, mended.told())
        assert project.works(), mended.told()
        assert project.tests_untouched
        assert [call.outcome for call in mended.calls if call.name == "edit_file"] == ["ok"]
        assert mended.calls[-1].exit_code == 0
        assert mended.questions >= 2  # the edit and the command each ask
        assert {request.format is not None for request in model.requests} == {protocol == "constrained"}

        undone = await services.surface.operator.undo(mended.conversation_id)
        assert undone.complete
        assert project.as_before
        assert not project.works()


async def test_a_small_model_can_answer_only_once_its_work_is_proved(tmp_path: Path) -> None:
    project = Project("greet", tmp_path / "project")
    model = scripted(project, "constrained")
    async with services_on(tmp_path / "home", [model]) as services:
        await mend(services.surface, project)
    may_answer = [_may_answer(request.format) for request in model.requests]
    assert may_answer == [False, False, False, True]


def _may_answer(schema: bytes | None) -> bool:
    given = msgspec.json.decode(schema or b"{}")
    return any("answer" in each["properties"] for each in given.get("anyOf", [given]))
