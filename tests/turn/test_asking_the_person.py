"""A turn that pauses for the person: in this process, in another one, late, twice, and after things have changed."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rune.errors import AlreadyDecidedError, ModelError, NotFoundError
from rune.models.scripted import ScriptedTransport, Step, says
from rune.models.transport import Capability, ChatRequest, ModelInfo
from rune.records.tools import ToolCall, ToolResult
from rune.records.turns import StopReason
from rune.turn import events as shown
from tests.turn.rig import Rig, closing, rig
from tests.turn.test_action_protocols import large
from tests.turn.tools import Act, Look, Note, call

EMBEDS: frozenset[Capability] = frozenset({"embedding"})
NOTE = call("note", path="a/notes.txt", text="hello")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "project" / "a").mkdir(parents=True)
    return tmp_path / "home"


def calls(*made: ToolCall) -> list[Step]:
    return says("", calls=made)


def sent(request: ChatRequest) -> list[dict[str, Any]]:
    return json.loads(request.messages)


def asked(events: list[shown.TurnEvent]) -> shown.ApprovalAsked:
    return next(each for each in events if isinstance(each, shown.ApprovalAsked))


def receipts(it: Rig) -> list[tuple[ToolResult, str | None]]:
    return [
        (msgspec.json.decode(event.body, type=ToolResult), event.authorization)
        for event in it.facts()
        if event.event_type == "tool.result"
    ]


def holding(folder: Path, text: str) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


async def test_a_change_waits_for_the_person_and_runs_once_allowed(home: Path) -> None:
    note = Note()
    async with rig(home, (), model=large(calls(NOTE), says("Done.")), tools=[note]) as it:
        events = await it.turn()
        question, paused = asked(events), closing(events)
        assert (paused.stop_reason, paused.pending_approval) == (StopReason.PAUSED, question.approval_id)
        assert note.written == []
        assert it.names()[-4:] == ["approval.requested", "task.transition", "inference.traced", "turn.finished"]
        (one,) = question.calls
        assert (one.name, one.effect, one.rule) == ("note", "a/notes.txt +1 -0", "edit_file(a/**)")
        assert "+hello" in one.detail
        after = await it.answered(question.approval_id)
        closed = closing(after)
        ((receipt, by),) = receipts(it)
        names = it.names()
    opened = after[0]
    assert isinstance(opened, shown.TurnOpened)
    assert opened.resumes == paused.turn_id
    assert (closed.stop_reason, closed.answer, closed.iterations_used) == (StopReason.ANSWERED, "Done.", 2)
    assert (home.parent / "project/a/notes.txt").read_text() == "hello"
    assert (receipt.outcome, by) == ("ok", f"approval:{question.approval_id}")
    assert names.index("approval.decided") < names.index("tool.intent") < names.index("tool.result")
    first, second = it.model.requests
    assert second.messages.startswith(first.messages.removesuffix(b"]"))


async def test_it_is_answered_after_a_restart_by_the_same_path(home: Path) -> None:
    async with rig(home, (), model=large(calls(NOTE)), tools=[Note()]) as it:
        question = asked(await it.turn())
        first = it.model.requests[0]
    note = Note()
    async with rig(home, (), model=large(says("Done.")), tools=[note]) as it:
        closed = closing(await it.answered(question.approval_id))
        (second,) = it.model.requests
    assert (closed.stop_reason, closed.answer, note.written) == (StopReason.ANSWERED, "Done.", ["hello"])
    assert second.messages.startswith(first.messages.removesuffix(b"]"))
    assert second.tools == first.tools


@pytest.mark.parametrize("reason", ["", "not in that folder"])
async def test_no_is_told_the_model_with_the_persons_word(home: Path, reason: str) -> None:
    note = Note()
    async with rig(home, (), model=large(calls(NOTE), says("All right.")), tools=[note]) as it:
        question = asked(await it.turn())
        closed = closing(await it.answered(question.approval_id, "deny", reason=reason))
        ((receipt, by),) = receipts(it)
        result = sent(it.model.requests[1])[3]["content"]
        names = it.names()
    assert (closed.answer, note.written, receipt.outcome) == ("All right.", [], "denied")
    assert by == f"approval:{question.approval_id}"
    assert "did not allow" in result
    assert reason in result
    assert "tool.intent" not in names


async def test_the_first_answer_wins(home: Path) -> None:
    note = Note()
    async with rig(home, (), model=large(calls(NOTE), says("Done.")), tools=[note]) as it:
        question = asked(await it.turn())
        await it.answered(question.approval_id)
        with pytest.raises(AlreadyDecidedError, match="was allowed by you"):
            await it.answered(question.approval_id, "deny")
    assert note.written == ["hello"]


async def test_what_changed_since_it_was_shown_does_not_run(home: Path) -> None:
    note = Note()
    async with rig(home, (), model=large(calls(NOTE), says("Oh.")), tools=[note]) as it:
        question = asked(await it.turn())
        (it.folder / "a/notes.txt").write_text("somebody else was here")
        closed = closing(await it.answered(question.approval_id))
        result = sent(it.model.requests[1])[3]["content"]
    assert (closed.answer, note.written) == ("Oh.", [])
    assert "not what would happen now" in result
    assert (home.parent / "project/a/notes.txt").read_text() == "somebody else was here"


async def test_always_makes_the_rule_that_was_shown_and_it_holds(home: Path) -> None:
    again = call("note", path="a/other.txt", text="more")
    outside = call("note", path="top.txt", text="top")
    note = Note()
    model = large(calls(NOTE), calls(again), calls(outside), says("never"))
    async with rig(home, (), model=model, tools=[note]) as it:
        first = asked(await it.turn())
        events = await it.answered(first.approval_id, always=True)
        second = asked(events)
        (_, _), (receipt, by) = receipts(it)
    assert note.written == ["hello", "more"]
    assert (receipt.outcome, by is not None and by.startswith("rule:")) == ("ok", True)
    assert second.calls[0].effect.startswith("top.txt")


async def test_edits_of_one_answer_are_asked_together_a_command_alone_and_reads_before_them_run(home: Path) -> None:
    look, note, act = Look(), Note(), Act()
    made = [
        call("look", 1, name="a"),
        call("note", 2, path="a/x.txt", text="x"),
        call("note", 3, path="y.txt", text="y"),
    ]
    made += [call("act", 4, name="test"), call("look", 5, name="b")]
    async with rig(home, (), model=large(calls(*made), says("Done.")), tools=[look, note, act]) as it:
        first = asked(await it.turn())
        assert [each.effect for each in first.calls] == ["a/x.txt +1 -0", "y.txt +1 -0"]
        assert look.looked == ["a"]
        second = asked(await it.answered(first.approval_id))
        assert [each.name for each in second.calls] == ["act"]
        closed = closing(await it.answered(second.approval_id))
        roles = [each["role"] for each in sent(it.model.requests[1])]
    assert closed.stop_reason is StopReason.ANSWERED
    assert (look.looked, note.written, act.acted) == (["a", "b"], ["x", "y"], ["test"])
    assert roles == ["system", "user", "assistant", "tool", "tool", "tool", "tool", "tool"]


async def test_two_changes_of_one_file_are_asked_one_after_the_other(home: Path) -> None:
    note = Note()
    made = [call("note", 1, path="a/x.txt", text="one"), call("note", 2, path="a/x.txt", text="two")]
    async with rig(home, (), model=large(calls(*made), says("Done.")), tools=[note]) as it:
        first = asked(await it.turn())
        second = asked(await it.answered(first.approval_id))
        closed = closing(await it.answered(second.approval_id))
    assert closed.stop_reason is StopReason.ANSWERED
    assert note.written == ["one", "two"]


async def test_a_message_instead_of_an_answer_refuses(home: Path) -> None:
    note = Note()
    async with rig(home, (), model=large(calls(NOTE), says("I see.")), tools=[note]) as it:
        paused = closing(await it.turn())
        closed = await it.say("do something else", paused.conversation_id)
        roles = [each["role"] for each in sent(it.model.requests[1])]
        assert paused.pending_approval is not None
        with pytest.raises(AlreadyDecidedError):
            await it.answered(paused.pending_approval)
    assert (closed.answer, note.written) == ("I see.", [])
    assert roles == ["system", "user", "assistant", "tool", "user"]


async def test_edits_run_in_the_mode_for_edits_and_commands_still_ask(home: Path) -> None:
    note, act = Note(), Act()
    model = large(calls(NOTE), calls(call("act", name="x")))
    async with rig(home, (), model=model, tools=[note, act]) as it:
        request = msgspec.structs.replace(it.request(), permission="edits")
        events = [event async for event in it.operator.send_task(request)]
        ((receipt, by),) = receipts(it)
        assert await it.operator.permission(closing(events).conversation_id) == "edits"
    assert (note.written, act.acted, receipt.outcome, by) == (["hello"], [], "ok", "owner")
    assert asked(events).calls[0].name == "act"


async def test_nothing_changes_in_the_mode_for_reading(home: Path) -> None:
    note = Note()
    async with rig(home, (), model=large(calls(NOTE), says("It would be so.")), tools=[note]) as it:
        request = msgspec.structs.replace(it.request(), permission="read")
        events = [event async for event in it.operator.send_task(request)]
    assert (closing(events).stop_reason, note.written) == (StopReason.ANSWERED, [])


async def test_the_steps_before_a_pause_stay_used(home: Path) -> None:
    answers = [calls(call("look", name=str(number))) for number in range(23)]
    async with rig(home, (), model=large(*answers, calls(NOTE), says("never")), tools=[Look(), Note()]) as it:
        paused = closing(await it.turn())
        assert (paused.stop_reason, paused.iterations_used) == (StopReason.PAUSED, 24)
        assert paused.pending_approval is not None
        closed = closing(await it.answered(paused.pending_approval))
    assert (closed.stop_reason, closed.iterations_used) == (StopReason.STEP_LIMIT, 24)


async def test_a_call_with_a_secret_is_not_carried_out_and_not_kept(home: Path) -> None:
    token = "ghp_" + "a1B2c3D4e5" * 4
    note = Note()
    made = call("note", path="a/x.txt", text=f"token = {token}")
    async with rig(home, (), model=large(calls(made), says("I left it out.")), tools=[note]) as it:
        closed = await it.say()
    assert (closed.answer, note.written) == ("I left it out.", [])
    assert not holding(home, token)


async def test_nothing_is_decided_while_there_is_no_model_to_go_on_with(home: Path) -> None:
    async with rig(home, (), model=large(calls(NOTE)), tools=[Note()]) as it:
        question = asked(await it.turn())
    note = Note()
    other = ScriptedTransport([says("hi")], models=[ModelInfo(name="embeds", provider="scripted", capabilities=EMBEDS)])
    async with rig(home, (), model=other, tools=[note]) as it:
        with pytest.raises(ModelError):
            await it.answered(question.approval_id)
        assert "approval.decided" not in it.names()
    async with rig(home, (), model=large(says("Done.")), tools=[note]) as it:
        assert closing(await it.answered(question.approval_id)).answer == "Done."
    assert note.written == ["hello"]


async def test_an_unknown_question_is_said(home: Path) -> None:
    async with rig(home, (), tools=[]) as it:
        with pytest.raises(NotFoundError):
            await it.answered("apr_none")
