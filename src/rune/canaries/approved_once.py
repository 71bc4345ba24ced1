"""What the person allows happens once, and only while it is what they were shown."""

from pathlib import Path

from rune.bootstrap import Services, build
from rune.canaries.claim import alone, expect
from rune.models.scripted import ScriptedTransport, Step, says
from rune.models.transport import Capability, ModelInfo
from rune.records.tools import ToolCall
from rune.turn.events import ApprovalAsked, ToolFinished
from rune.turn.request import TurnRequest

CLAIM = "a change happens once it is allowed, in another process too, and never when it is not what was shown any more"
ABLE: frozenset[Capability] = frozenset({"chat", "tools"})
EDIT = ToolCall(
    id="call_1", name="edit_file", arguments={"path": "a.txt", "edits": [{"search": "one", "replace": "two"}]}
)


async def check(folder: Path) -> None:
    """Ask, restart, allow; then ask again, change the file, and allow that."""
    work = folder / "work"
    work.mkdir()
    file = work / "a.txt"
    for changed in (False, True):
        file.write_text("one\n")
        asking = await _started(folder, says("", calls=[EDIT]))
        try:
            request = TurnRequest(text="make it two", folder=str(work.resolve()))
            events = [event async for event in asking.surface.operator.send_task(request)]
        finally:
            await asking.close()
        question = next((event for event in events if isinstance(event, ApprovalAsked)), None)
        if question is None:
            expect(condition=False, seen="nobody was asked")
            return
        expect(file.read_text() == "one\n", "the file was changed before anybody allowed it")
        if changed:
            file.write_text("one, and somebody else\n")
        going_on = await _started(folder, says("Done."))
        try:
            after = [event async for event in going_on.surface.operator.answer(question.approval_id, "allow")]
        finally:
            await going_on.close()
        outcomes = [event.outcome for event in after if isinstance(event, ToolFinished)]
        held = ["one, and somebody else\n", ["failed"]] if changed else ["two\n", ["ok"]]
        expect([file.read_text(), outcomes] == held, f"the file holds {file.read_text()!r}, the call ended {outcomes}")


async def _started(folder: Path, *answers: list[Step]) -> Services:
    info = ModelInfo(name="large", provider="scripted", capabilities=ABLE, parameters="14B", context_length=32_768)
    model = ScriptedTransport(answers, models=[info])
    services = build({"RUNE_HOME": str(folder / "home"), "PATH": ""}, surface_kind="headless", transports=(model,))
    await services.start()
    return services


if __name__ == "__main__":
    alone(CLAIM, check)
