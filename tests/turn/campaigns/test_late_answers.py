"""Questions that are answered when all has changed meanwhile: only what was shown runs, or nothing does."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rune.bootstrap.core import open_core
from rune.bootstrap.erasing import open_erasure
from rune.errors import AlreadyDecidedError, CancelledEarlyError, LeaseHeldError, NotFoundError, UsageError
from rune.models.scripted import ScriptedTransport, says
from rune.models.transport import ModelInfo
from rune.records.approvals import PendingApprovalRecord
from rune.records.loop import LoopState
from rune.records.tools import ToolCall
from rune.records.turns import StopReason
from rune.store.approvals import ApprovalRepository
from rune.tools.executors.edit_file import EditFile
from rune.tools.executors.run_command import RunCommand
from rune.tools.executors.write_file import WriteFile
from rune.turn.flight import CancelToken
from tests.turn.campaigns.killed_life import ill_formed
from tests.turn.rig import Rig, closing, rig
from tests.turn.test_action_protocols import large

TOOLS = (EditFile(), WriteFile(), RunCommand())
EDIT = ToolCall(
    id="call_1", name="edit_file", arguments={"path": "src/a.py", "edits": [{"search": "a = 1", "replace": "a = 2"}]}
)
RUN = ToolCall(id="call_1", name="run_command", arguments={"command": "echo ran >> ran.txt"})
ANSWER = '{"answer": "Done."}'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "project" / "src").mkdir(parents=True)
    (tmp_path / "project" / "src" / "a.py").write_text("a = 1\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.py").write_text("a = 1\n")
    return tmp_path / "home"


async def asked(home: Path, *made: ToolCall) -> tuple[str, str]:
    """Have a turn pause for these calls, and its process end; returns the question and the conversation."""
    async with rig(home, (), model=large(says("", calls=made)), tools=TOOLS) as it:
        closed = await it.say("do it")
    assert closed.pending_approval is not None
    return closed.pending_approval, closed.conversation_id


async def decisions(it: Rig) -> list[str]:
    return [name for name in it.names() if name == "approval.decided"]


def result_told(it: Rig) -> str:
    """Return the last result that the model was sent; its prompt is well formed."""
    messages: list[dict[str, Any]] = json.loads(it.model.requests[-1].messages)
    assert ill_formed(messages) == []
    return next(each["content"] for each in reversed(messages) if each["role"] == "tool")


def deleted(folder: Path) -> None:
    (folder / "src/a.py").unlink()


def changed(folder: Path) -> None:
    (folder / "src/a.py").write_text("a = 1\nb = 2\n")


def link_to_the_same(folder: Path) -> None:
    (folder / "src/a.py").unlink()
    (folder / "other.py").write_text("a = 1\n")
    (folder / "src/a.py").symlink_to("../other.py")


def link_out(folder: Path) -> None:
    (folder / "src/a.py").unlink()
    (folder / "src/a.py").symlink_to(folder.parent / "outside/a.py")


def folder_instead(folder: Path) -> None:
    (folder / "src/a.py").unlink()
    (folder / "src/a.py").mkdir()


def folder_link_out(folder: Path) -> None:
    (folder / "src").rename(folder / "was")
    (folder / "src").symlink_to(folder.parent / "outside")


def no_workspace(folder: Path) -> None:
    folder.rename(folder.parent / "moved")
    folder.mkdir()


def link_for_the_workspace(folder: Path) -> None:
    folder.rename(folder.parent / "moved")
    (folder.parent / "copy/src").mkdir(parents=True)
    (folder.parent / "copy/src/a.py").write_text("a = 1\n")
    folder.symlink_to(folder.parent / "copy")


CHANGES = (
    deleted,
    changed,
    link_to_the_same,
    link_out,
    folder_instead,
    folder_link_out,
    no_workspace,
    link_for_the_workspace,
)


@pytest.mark.parametrize("change", CHANGES)
async def test_an_edit_of_what_is_something_else_by_now_is_not_made(home: Path, change: Callable[[Path], None]) -> None:
    approval, _ = await asked(home, EDIT)
    folder = home.parent / "project"
    change(folder)
    async with rig(home, (), model=large(says("Oh.")), tools=TOOLS) as it:
        closed = closing(await it.answered(approval))
        told = result_told(it)
        names = it.names()
    assert (closed.stop_reason, closed.answer) == (StopReason.ANSWERED, "Oh.")
    assert told
    assert "tool.intent" not in names
    written = [path for path in home.parent.rglob("*.py") if path.is_file() and "a = 2" in path.read_text()]
    assert written == []


async def test_a_command_does_not_run_in_a_folder_that_is_another_by_now(home: Path) -> None:
    approval, _ = await asked(home, RUN)
    link_for_the_workspace(home.parent / "project")
    async with rig(home, (), model=large(says("Oh.")), tools=TOOLS) as it:
        await it.answered(approval)
        result_told(it)
    assert list(home.parent.rglob("ran.txt")) == []


async def test_one_of_two_approved_calls_that_changed_does_not_take_the_other_along(home: Path) -> None:
    other = ToolCall(id="call_2", name="write_file", arguments={"path": "new.txt", "content": "new\n"})
    approval, _ = await asked(home, EDIT, other)
    deleted(home.parent / "project")
    async with rig(home, (), model=large(says("Oh.")), tools=TOOLS) as it:
        await it.answered(approval)
        assert ill_formed(json.loads(it.model.requests[-1].messages)) == []
        assert it.names().count("tool.intent") == 1
    assert (home.parent / "project/new.txt").read_text() == "new\n"


async def rewritten(
    home: Path, approval: str, *, expires_at: str = "", state: Callable[[LoopState], bytes] | None = None
) -> str:
    """Store the question once more, as another clock or another version would have asked it; returns its id."""
    core = open_core({"RUNE_HOME": str(home), "PATH": ""}, read_only=False, on_rebuild=None)
    try:
        await core.ledger.start()
        await core.engine.caught_up()
        repository = ApprovalRepository(core.ledger, core.engine)
        record = await repository.get(approval)
        loop = msgspec.json.decode(core.evidence.get(record.loop_state), type=LoopState)
        kept = core.evidence.put(state(loop), source="loop").hash if state is not None else record.loop_state
        other: PendingApprovalRecord = msgspec.structs.replace(
            record, id=core.ids.new_id("apr"), expires_at=expires_at or record.expires_at, loop_state=kept
        )
        lease = core.leases.take(record.conversation_id)
        await repository.adopt(record.conversation_id)
        await repository.emit(repository.draft_request(other))
        await repository.release(record.conversation_id)
        lease.release()
        return other.id
    finally:
        await core.ledger.close()
        await core.store.close()
        core.engine.close()


async def test_an_answer_after_its_time_does_nothing(home: Path) -> None:
    first, _ = await asked(home, EDIT)
    late = await rewritten(home, first, expires_at="2026-01-01T00:00:00.000Z")
    async with rig(home, (), model=large(says("never")), tools=TOOLS) as it:
        for decision in ("allow", "deny"):
            with pytest.raises(UsageError, match="expired on"):
                await it.answered(late, decision)
        assert await decisions(it) == []
        assert "tool.intent" not in it.names()
        assert [row.id for row in await it.services.surface.views.pending_approvals()] == [first]
        assert it.names().count("approval.expired") == 1
    assert (home.parent / "project/src/a.py").read_text() == "a = 1\n"


def first_version(state: LoopState) -> bytes:
    names = ("turn_id", "iterations_used", "iteration_budget", "capsule", "round_message_ids", "failures")
    return msgspec.json.encode({"schema_version": 1, **{name: getattr(state, name) for name in names}})


def third_version(state: LoopState) -> bytes:
    return msgspec.json.encode({**msgspec.to_builtins(state), "schema_version": 3, "sandbox": "landlock"})


def garbled(_: LoopState) -> bytes:
    return b'{"schema_version": 2, "turn_id": 7}'


async def test_a_question_of_an_earlier_version_is_answered(home: Path) -> None:
    first, _ = await asked(home, EDIT)
    older = await rewritten(home, first, state=first_version)
    async with rig(home, (), model=large(says("Done.")), tools=TOOLS) as it:
        closed = closing(await it.answered(older))
    assert (closed.answer, closed.iterations_used) == ("Done.", 2)
    assert (home.parent / "project/src/a.py").read_text() == "a = 2\n"


@pytest.mark.parametrize(("state", "said"), [(third_version, "newer version"), (garbled, "cannot be read")])
async def test_a_question_whose_state_is_not_understood_can_only_be_denied(
    home: Path, state: Callable[[LoopState], bytes], said: str
) -> None:
    first, _ = await asked(home, EDIT)
    newer = await rewritten(home, first, state=state)
    async with rig(home, (), model=large(says("All right.")), tools=TOOLS) as it:
        with pytest.raises(UsageError, match=said):
            await it.answered(newer)
        assert await decisions(it) == []
        closed = closing(await it.answered(newer, "deny"))
        assert "did not allow" in result_told(it)
        assert await decisions(it) == ["approval.decided"]
    assert closed.answer == "All right."
    assert (home.parent / "project/src/a.py").read_text() == "a = 1\n"


def evidence_of(home: Path, name: str) -> Path:
    digest = name.removeprefix("sha256:")
    return home / "evidence" / digest[:2] / digest[2:]


async def loop_state(home: Path, approval: str) -> tuple[Path, Path]:
    """Return where a question's state and its prompt are kept."""
    async with rig(home, (), tools=TOOLS) as it:
        bodies = [event.body for event in it.facts() if event.event_type == "approval.requested"]
    (record,) = (msgspec.json.decode(body, type=PendingApprovalRecord) for body in bodies)
    state = evidence_of(home, record.loop_state)
    return state, evidence_of(home, msgspec.json.decode(state.read_bytes(), type=LoopState).capsule)


def torn(path: Path) -> None:
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:100])


@pytest.mark.parametrize("damage", [Path.unlink, torn])
async def test_a_prompt_that_is_not_kept_any_more_is_assembled_again(
    home: Path, damage: Callable[[Path], None]
) -> None:
    approval, _ = await asked(home, EDIT)
    _, capsule = await loop_state(home, approval)
    damage(capsule)
    async with rig(home, (), model=large(says("Done.")), tools=TOOLS) as it:
        events = await it.answered(approval)
        assert "edited" in result_told(it).lower() or result_told(it)
    assert closing(events).answer == "Done."
    assert (home.parent / "project/src/a.py").read_text() == "a = 2\n"


@pytest.mark.parametrize("damage", [Path.unlink, torn])
async def test_a_state_that_is_not_kept_any_more_allows_nothing(home: Path, damage: Callable[[Path], None]) -> None:
    approval, _ = await asked(home, EDIT)
    state, _ = await loop_state(home, approval)
    damage(state)
    async with rig(home, (), model=large(says("All right.")), tools=TOOLS) as it:
        with pytest.raises(UsageError):
            await it.answered(approval)
        assert await decisions(it) == []
        assert closing(await it.answered(approval, "deny")).answer == "All right."
    assert (home.parent / "project/src/a.py").read_text() == "a = 1\n"


async def test_another_model_with_another_way_of_asking_goes_on(home: Path) -> None:
    approval, _ = await asked(home, EDIT)
    info = ModelInfo(name="large", provider="scripted", capabilities=frozenset({"chat"}), parameters="1B")
    small = ScriptedTransport([says(ANSWER)], models=[msgspec.structs.replace(info, context_length=8192)])
    async with rig(home, (), model=small, tools=TOOLS) as it:
        closed = closing(await it.answered(approval))
        messages = json.loads(it.model.requests[-1].messages)
    assert (closed.stop_reason, closed.answer) == (StopReason.ANSWERED, "Done.")
    assert (home.parent / "project/src/a.py").read_text() == "a = 2\n"
    assert [each["role"] for each in messages] == ["system", "user", "assistant", "user"]
    assert "edit_file" in messages[-1]["content"]


async def test_a_fork_has_no_part_in_the_question_and_its_prompt_is_well_formed(home: Path) -> None:
    approval, conversation = await asked(home, EDIT)
    async with rig(home, (), model=large(says("Here."), says("Done.")), tools=TOOLS) as it:
        fork = await it.operator.fork(conversation)
        assert (await it.say("and here?", fork.id)).answer == "Here."
        assert ill_formed(json.loads(it.model.requests[-1].messages)) == []
        assert [row.id for row in await it.services.surface.views.pending_approvals()] == [approval]
        assert closing(await it.answered(approval)).answer == "Done."
        assert await decisions(it) == ["approval.decided"]
    assert (home.parent / "project/src/a.py").read_text() == "a = 2\n"


def erased(home: Path, what: str) -> None:
    erasure = open_erasure({"RUNE_HOME": str(home)})
    with erasure.prepared([what]) as plan:
        erasure.erase(plan)


@pytest.mark.parametrize("what", ["conversation", "message"])
async def test_nothing_runs_for_a_question_that_was_erased(home: Path, what: str) -> None:
    approval, conversation = await asked(home, EDIT)
    async with rig(home, (), tools=TOOLS) as it:
        message = (await it.services.surface.views.transcript(conversation))[0].id
    await asyncio.to_thread(erased, home, conversation if what == "conversation" else message)
    async with rig(home, (), model=large(says("Hello.")), tools=TOOLS) as it:
        with pytest.raises((NotFoundError, UsageError)):
            await it.answered(approval)
        assert await decisions(it) == []
        about = None if what == "conversation" else conversation
        assert (await it.say("hello", about)).answer == "Hello."
        assert ill_formed(json.loads(it.model.requests[-1].messages)) == []
        assert await it.services.surface.views.pending_approvals() == []
        assert "tool.intent" not in it.names()
    assert (home.parent / "project/src/a.py").read_text() == "a = 1\n"


async def test_another_process_does_not_answer_while_the_conversation_is_held(home: Path) -> None:
    async with rig(home, (), model=large(says("", calls=[EDIT]), says("Done.")), tools=TOOLS) as it:
        paused = await it.say("do it")
        assert paused.pending_approval is not None
        async with rig(home, (), model=large(says("never")), tools=TOOLS) as other:
            with pytest.raises(LeaseHeldError):
                await other.answered(paused.pending_approval)
        assert closing(await it.answered(paused.pending_approval)).answer == "Done."
        with pytest.raises(AlreadyDecidedError):
            await it.answered(paused.pending_approval)
    assert (home.parent / "project/src/a.py").read_text() == "a = 2\n"


async def test_two_answers_at_once_in_one_process_are_one_answer(home: Path) -> None:
    approval, _ = await asked(home, RUN)
    async with rig(home, (), model=large(says("Done.")), tools=TOOLS) as it:
        ends = await asyncio.gather(it.answered(approval), it.answered(approval, "deny"), return_exceptions=True)
        assert await decisions(it) == ["approval.decided"]
    assert sorted(type(each).__name__ for each in ends) == ["AlreadyDecidedError", "list"]
    ran = home.parent / "project/ran.txt"
    assert (ran.read_text() == "ran\n") if isinstance(ends[0], list) else not ran.exists()


async def test_a_message_and_an_answer_at_once_are_one_after_the_other(home: Path) -> None:
    approval, conversation = await asked(home, RUN)
    async with rig(home, (), model=large(says("One."), says("Two.")), tools=TOOLS) as it:
        turns = it.answered(approval), it.turn("something else", conversation)
        ends = await asyncio.gather(*turns, return_exceptions=True)
        assert await decisions(it) == ["approval.decided"]
        for request in it.model.requests:
            assert ill_formed(json.loads(request.messages)) == []
    assert not isinstance(ends[1], BaseException)
    assert isinstance(ends[0], list | AlreadyDecidedError)
    assert (home.parent / "project/ran.txt").exists() == isinstance(ends[0], list)


async def test_a_stop_before_the_answer_is_stored_decides_nothing(home: Path) -> None:
    approval, _ = await asked(home, RUN)
    token = CancelToken()
    token.cancel()
    async with rig(home, (), model=large(says("Done.")), tools=TOOLS) as it:
        with pytest.raises(CancelledEarlyError):
            await it.answered(approval, token=token)
        assert await decisions(it) == []
        assert closing(await it.answered(approval)).answer == "Done."
    assert (home.parent / "project/ran.txt").read_text() == "ran\n"


@pytest.mark.parametrize("how", ["done", "new"])
async def test_a_question_of_a_task_that_the_person_ended_is_refused_with_it(home: Path, how: str) -> None:
    approval, conversation = await asked(home, RUN)
    async with rig(home, (), model=large(says("Hello.")), tools=TOOLS) as it:
        if how == "done":
            await it.operator.done(conversation)
        else:
            await it.operator.new(folder=str(it.folder), conversation_id=conversation)
        assert await it.services.surface.views.pending_approvals() == []
        with pytest.raises(AlreadyDecidedError, match="was denied"):
            await it.answered(approval)
        assert (await it.say("hello", conversation)).answer == "Hello."
        assert "ended the task" in result_told(it)
    assert not (home.parent / "project/ran.txt").exists()
