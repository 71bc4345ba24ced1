import json
from pathlib import Path
from typing import Any

import pytest

from rune.errors import UsageError
from rune.records.events import EventImported
from rune.records.ids import is_id
from rune.records.messages import ConversationMessageRecord, ConversationRecord
from rune.records.tasks import TaskStateRecord, TaskStatus
from rune.records.turns import StopReason, TurnRecord
from rune.store.codec import digest
from rune.store.imports import threads
from rune.store.imports.arrivals import Arrival, LeftOut
from rune.store.imports.event_lines import events_in
from tests.store.imports.older import SECRET, a_line, mask, written
from tests.store.test_codec import GOLDEN

USER, ASSISTANT = "user.message", "assistant.message"


def read(path: Path, *lines: object) -> list[Arrival | LeftOut]:
    return list(events_in(written(path / "old.jsonl", *lines), mask))


def came(path: Path, *lines: object) -> list[Arrival]:
    found = read(path, *lines)
    assert all(isinstance(each, Arrival) for each in found), found
    return [each for each in found if isinstance(each, Arrival)]


def bodies(arrivals: list[Arrival], kind: type[Any]) -> list[Any]:
    drafts = [draft for each in arrivals for draft in (*each.setting, *each.drafts)]
    return [draft.body for draft in drafts if type(draft.body) is kind]


def test_question_and_answer_become_a_turn_in_a_conversation_with_a_task(tmp_path: Path) -> None:
    asked = a_line(1, USER, {"session_id": "s", "content": "name a river\nplease"})
    found = came(tmp_path, asked, a_line(2, ASSISTANT, {"session_id": "s", "content": "Danube", "model": "qwen"}))
    question, answer = bodies(found, ConversationMessageRecord)
    (conversation,) = bodies(found, ConversationRecord)
    (task,) = bodies(found, TaskStateRecord)
    started, ended = bodies(found, TurnRecord)
    assert [each.became for each in found] == ["message", "message"]
    assert (question.role, question.content, question.provenance) == ("user", "name a river\nplease", "imported")
    assert (answer.role, answer.content, answer.model) == ("assistant", "Danube", "qwen")
    assert question.ts == conversation.created_at == "2023-11-14T22:13:20.000Z"
    assert question.attachments == (digest(json.dumps(asked).encode()),)
    assert conversation.title == task.title == "name a river"
    assert {question.turn_id, answer.turn_id} == {started.id} == {ended.id}
    assert {question.task_id, answer.task_id, ended.task_id} == {task.id}
    assert (ended.message_id, ended.stop_reason) == (question.id, StopReason.ANSWERED)
    assert is_id(conversation.id, "cnv")


@pytest.mark.parametrize(
    ("kind", "payload", "role"),
    [
        ("user_message", {"text": "hi"}, "user"),
        ("UserMessage", {"message": "hi"}, "user"),
        ("human-message", {"content": [{"type": "text", "text": "hi"}]}, "user"),
        ("message", {"role": "user", "content": "hi"}, "user"),
        ("message", {"role": "assistant", "content": {"text": "hi"}}, "assistant"),
        ("response.generated", {"response": "hi"}, "assistant"),
        ("assistant/response", "hi", "assistant"),
    ],
    ids=["snake", "camel", "parts", "by-role", "nested", "generated", "no-object"],
)
def test_names_and_fields_are_read_tolerantly(tmp_path: Path, kind: str, payload: object, role: str) -> None:
    (message,) = bodies(came(tmp_path, a_line(1, kind, payload)), ConversationMessageRecord)
    assert (message.role, message.content) == (role, "hi")


@pytest.mark.parametrize(
    "line",
    [a_line(1, "skill.loaded", {"name": "x"}), a_line(1, USER, {"content": "  "}),
     a_line(1, "message", {"content": "?"}), a_line(1, "task.completed", {"task_id": "7"}),
     a_line(1, "task.moved", {"task_id": "7", "title": "t"}),
     {"event_type": "x"}],
    ids=["unknown", "no-text", "no-role", "no-title", "no-state", "only-a-type"],
)  # fmt: skip
def test_what_does_not_map_is_kept_whole(tmp_path: Path, line: dict[str, Any]) -> None:
    (arrival,) = came(tmp_path, line)
    body = arrival.drafts[0].body
    assert isinstance(body, EventImported)
    assert (arrival.became, body.became, arrival.raw) == ("other", "", json.dumps(line).encode())
    assert body.evidence == digest(json.dumps(line).encode())


def test_a_time_that_is_not_given_is_not_invented(tmp_path: Path) -> None:
    line = a_line(1, USER, {"content": "when?"}, timestamp="soon")
    found = came(
        tmp_path, line, a_line(2, "x", timestamp=None), a_line(3, "x", timestamp=None, ts="2024-01-01T00:00:00Z")
    )
    assert [message.ts for message in bodies(found, ConversationMessageRecord)] == [""]
    assert [kept.occurred_at for kept in bodies(found, EventImported)] == ["", "2024-01-01T00:00:00.000Z"]


def test_the_source_is_a_text_or_an_object_with_a_channel(tmp_path: Path) -> None:
    found = came(tmp_path, a_line(1, "x", source="cli"), a_line(2, "x", source={"name": "matrix", "channel": "chat"}))
    assert [(each.source, each.channel) for each in bodies(found, EventImported)] == [
        ("cli", "cli"),
        ("matrix", "chat"),
    ]
    (conversation,) = bodies(came(tmp_path, a_line(3, USER, {"content": "hi"}, source="chat")), ConversationRecord)
    assert conversation.channel == "chat"


def test_a_beginning_starts_the_conversation_of_the_lines_that_name_none(tmp_path: Path) -> None:
    def said(number: int, source: str) -> dict[str, Any]:
        return a_line(number, USER, {"content": f"number {number}"}, source=source)

    begun = a_line(3, "conversation.started", {"title": "Rivers", "cwd": "/home/ada"}, source="cli")
    found = came(tmp_path, said(1, "cli"), said(2, "web"), begun, said(4, "cli"), said(5, "web"))
    first, second, fourth, fifth = bodies(found, ConversationMessageRecord)
    assert len({first.conversation_id, second.conversation_id, fourth.conversation_id}) == 3
    assert fifth.conversation_id == second.conversation_id
    rivers = next(each for each in bodies(found, ConversationRecord) if each.id == fourth.conversation_id)
    assert (rivers.title, rivers.folder) == ("Rivers", "/home/ada")
    assert [each.became for each in bodies(found, EventImported)] == [rivers.id]


def test_changes_of_a_task_are_its_states_in_turn(tmp_path: Path) -> None:
    found = came(
        tmp_path,
        a_line(1, "task.created", {"session_id": "s", "task_id": 7, "title": "Count rivers"}),
        a_line(2, "task.updated", {"session_id": "s", "task_id": 7, "status": "in_progress"}),
        a_line(3, USER, {"session_id": "s", "task_id": 7, "content": "go on"}),
        a_line(4, "task.status_changed", {"session_id": "s", "task_id": 7, "to": "DONE"}),
    )
    tasks = bodies(found, TaskStateRecord)
    (message,) = bodies(found, ConversationMessageRecord)
    assert {(each.id, each.title) for each in tasks} == {(message.task_id, "Count rivers")}
    assert [each.status for each in tasks] == [TaskStatus.OPEN, TaskStatus.OPEN, TaskStatus.COMPLETED]
    assert tasks[-1].outcome_ref == digest(found[3].raw or b"")


def test_an_unanswered_question_is_a_turn_that_was_cut_off(tmp_path: Path) -> None:
    found = came(
        tmp_path,
        *(a_line(n, USER, {"session_id": "s", "content": "?"}) for n in (1, 2)),
        a_line(3, ASSISTANT, {"content": "!"}),
    )
    ended = [turn for turn in bodies(found, TurnRecord) if turn.stop_reason is not None]
    assert [turn.stop_reason for turn in ended] == [StopReason.INTERRUPTED] * 2
    assert len({turn.id for turn in ended}) == 2


def test_only_so_many_conversations_are_kept_in_mind(tmp_path: Path) -> None:
    count = threads.MOST_THREADS + 5
    lines = [a_line(n, USER, {"session_id": f"s{n}", "content": "?"}) for n in range(count)]
    found = came(tmp_path, *lines, a_line("again", ASSISTANT, {"session_id": "s0", "content": "!"}))
    ended = [turn for turn in bodies(found, TurnRecord) if turn.stop_reason is not None]
    assert len(ended) == len({turn.id for turn in ended}) == count
    assert len({message.conversation_id for message in bodies(found, ConversationMessageRecord)}) == count


def test_an_id_of_our_form_is_kept_and_any_other_gives_the_same_one_each_time(tmp_path: Path) -> None:
    ours = "evt_01kb9y3c7m0000000000000006"
    lines = [a_line(1, "x", id=ours), a_line(2, "x"), a_line(3, "x", id=17), {"type": "x", "n": 1}]
    once, again = ([each.drafts[0].event_id for each in came(tmp_path, *lines)] for _ in range(2))
    assert once == again
    assert once[0] == ours
    assert len(set(once)) == 4
    assert all(is_id(each or "", "evt") for each in once)


def test_the_same_id_at_another_time_is_another_event(tmp_path: Path) -> None:
    first, second = came(tmp_path, a_line(1, "x"), a_line(1, "x", timestamp=1_800_000_000))
    assert first.drafts[0].event_id != second.drafts[0].event_id


def test_bad_lines_are_named_by_number_and_the_rest_comes_in(tmp_path: Path) -> None:
    found = read(tmp_path, b"no json", b"", b"[1]", a_line(4, "x"), b'{"id":"5"}', GOLDEN[2])
    assert [each.where for each in found] == ["line 1", "line 3", "line 4", "line 5", "line 6"]
    assert [isinstance(each, Arrival) for each in found] == [False, False, True, False, False]


@pytest.mark.parametrize("start", [0, 1], ids=["header", "event"])
def test_a_journal_of_our_own_is_refused_with_how_to_use_it(tmp_path: Path, start: int) -> None:
    with pytest.raises(UsageError, match="in its present form already") as refused:
        read(tmp_path, *GOLDEN[start:])
    assert "RUNE_HOME" in refused.value.hint


@pytest.mark.parametrize("start", ["", "\ufeff", "\n \n"], ids=["at once", "marked", "behind blank lines"])
def test_a_list_is_refused_with_the_import_that_takes_lists(tmp_path: Path, start: str) -> None:
    path = tmp_path / "tasks.json"
    path.write_text(f'{start} [{{"task_id": "1"}},\n{{"task_id": "2"}}]\n', encoding="utf-8")
    with pytest.raises(UsageError, match="is a JSON list") as refused:
        list(events_in(path, mask))
    assert "`rune import operator FILE`" in refused.value.hint


def test_a_line_that_is_a_list_behind_others_is_only_left(tmp_path: Path) -> None:
    found = read(tmp_path, a_line(1, USER, {"session_id": "s", "content": "hello"}), [1])
    assert [type(each) for each in found[:2]] == [Arrival, LeftOut]


def test_secrets_and_what_cannot_be_stored_are_masked_in_everything_that_is_kept(tmp_path: Path) -> None:
    text = f"\ud800\0 {SECRET}"
    found = came(
        tmp_path,
        a_line(1, USER, {"content": text, "session_id": SECRET}, source=SECRET),
        a_line(2, "x", source={"channel": SECRET}, id=SECRET),
        a_line(3, ASSISTANT, {"content": "ok", "model": SECRET}),
        a_line(4, "task.created", {"title": SECRET, "task_id": SECRET}),
    )
    kept = repr([(each.raw, each.drafts, each.setting) for each in found])
    assert SECRET not in kept
    (question, _) = bodies(found, ConversationMessageRecord)
    assert question.content.startswith("\N{REPLACEMENT CHARACTER}" * 2)
