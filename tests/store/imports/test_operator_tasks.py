import json
from pathlib import Path
from typing import Any

import pytest

from rune.records.events import EventImported
from rune.records.messages import ConversationMessageRecord, ConversationRecord
from rune.records.tasks import TaskStateRecord, TaskStatus
from rune.records.turns import StopReason, TurnRecord
from rune.store.codec import digest
from rune.store.imports.arrivals import Arrival, LeftOut
from rune.store.imports.operator_tasks import tasks_in
from tests.store.imports.older import SECRET, mask

TASK = {
    "task_id": 42,
    "description": "Name three rivers\nplease",
    "status": "completed",
    "assigned_model": "qwen",
    "result": "Danube",
    "created_at": "2024-01-02T03:04:05Z",
    "completed_at": 1_704_164_700,
}


def read(path: Path, *tasks: object) -> list[Arrival | LeftOut]:
    (path / "tasks.json").write_text(json.dumps(tasks))
    return list(tasks_in(path / "tasks.json", mask))


def one(path: Path, **fields: Any) -> Arrival:
    (found,) = read(path, TASK | fields)
    assert isinstance(found, Arrival), found
    return found


def body(arrival: Arrival, kind: type[Any]) -> Any:
    return [draft.body for draft in (*arrival.setting, *arrival.drafts) if type(draft.body) is kind][-1]


def test_a_task_becomes_a_conversation_with_question_and_answer(tmp_path: Path) -> None:
    found = one(tmp_path)
    question, answer = (d.body for d in found.drafts if isinstance(d.body, ConversationMessageRecord))
    conversation, task = body(found, ConversationRecord), body(found, TaskStateRecord)
    assert (conversation.channel, conversation.folder, conversation.title) == ("task", "", "Name three rivers")
    assert (question.role, question.content, question.ts) == ("user", TASK["description"], "2024-01-02T03:04:05.000Z")
    assert (answer.role, answer.content, answer.ts) == ("assistant", "Danube", "2024-01-02T03:05:00.000Z")
    assert question.provenance == answer.provenance == "imported"
    assert (task.status, task.assigned_model) == (TaskStatus.COMPLETED, "qwen")
    assert task.outcome_ref == question.attachments[0] == digest(found.raw or b"")
    assert body(found, TurnRecord).stop_reason is StopReason.ANSWERED


def test_an_id_of_our_form_is_kept_and_any_other_is_shown_beside_the_derived_one(tmp_path: Path) -> None:
    ours = "tsk_01kb9y3c7m0000000000000002"
    assert body(one(tmp_path, task_id=ours), TaskStateRecord).id == ours
    derived, again = (one(tmp_path) for _ in range(2))
    assert derived == again
    receipt = body(derived, EventImported)
    assert (receipt.original_id, receipt.became) == ("42", body(derived, TaskStateRecord).id)


@pytest.mark.parametrize(
    ("word", "status"),
    [("completed", TaskStatus.COMPLETED), ("Done", TaskStatus.COMPLETED), ("failed", TaskStatus.FAILED),
     ("canceled", TaskStatus.CANCELLED), ("superseded", TaskStatus.SUPERSEDED), ("in_progress", TaskStatus.OPEN),
     ("awaitingApproval", TaskStatus.OPEN)],
    ids=str,
)  # fmt: skip
def test_a_known_status_is_mapped(tmp_path: Path, word: str, status: TaskStatus) -> None:
    found = one(tmp_path, status=word)
    assert (body(found, TaskStateRecord).status, found.notes) == (status, ())


@pytest.mark.parametrize("word", ["weird", None, 5, ["done"]], ids=["word", "none", "number", "list"])
def test_an_unknown_status_is_named_and_taken_as_open(tmp_path: Path, word: object) -> None:
    found = one(tmp_path, status=word)
    assert body(found, TaskStateRecord).status is TaskStatus.OPEN
    assert len(found.notes) == 1
    assert "taken as open" in found.notes[0]


@pytest.mark.parametrize(
    ("result", "status", "reason"),
    [
        (None, "open", StopReason.INTERRUPTED),
        ("", "failed", StopReason.FAILED),
        ({}, "cancelled", StopReason.CANCELLED),
    ],
    ids=["open", "failed", "cancelled"],
)
def test_without_a_result_there_is_no_answer(tmp_path: Path, result: object, status: str, reason: StopReason) -> None:
    found = one(tmp_path, result=result, status=status, completed_at=None, created_at=None)
    messages = [d.body for d in found.drafts if isinstance(d.body, ConversationMessageRecord)]
    assert [(message.role, message.ts) for message in messages] == [("user", "")]
    assert body(found, TurnRecord).stop_reason is reason


def test_a_result_may_be_an_object(tmp_path: Path) -> None:
    assert body(one(tmp_path, result={"output": "Rhine"}), ConversationMessageRecord).content == "Rhine"
    assert json.loads(body(one(tmp_path, result={"n": 3}), ConversationMessageRecord).content) == {"n": 3}


def test_what_is_no_task_is_named_and_left(tmp_path: Path) -> None:
    found = read(tmp_path, 5, {"description": "no id"}, {"task_id": 1}, TASK)
    assert [each.reason for each in found if isinstance(each, LeftOut)] == [
        "it is not a JSON object", "it has no task_id", "it has no description",
    ]  # fmt: skip
    assert isinstance(found[3], Arrival)


def test_secrets_are_masked_in_everything_that_is_kept(tmp_path: Path) -> None:
    found = one(tmp_path, description=SECRET, result=SECRET, status=SECRET, assigned_model=SECRET, task_id=SECRET)
    assert SECRET not in repr((found.raw, found.drafts, found.setting, found.notes))
