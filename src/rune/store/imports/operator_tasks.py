"""A JSON list of tasks: each becomes a conversation with its task, what was asked and what came of it."""

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec

from rune.records.events import EventImported
from rune.records.ids import is_id
from rune.records.messages import ConversationMessageRecord, ConversationRecord
from rune.records.tasks import TaskStateRecord, TaskStatus
from rune.records.turns import StopReason, TurnRecord
from rune.store.codec import digest
from rune.store.imports.arrivals import Arrival, LeftOut, LeftOutError
from rune.store.imports.derived_ids import derived
from rune.store.imports.event_lines import message_text, spoken
from rune.store.imports.event_words import NAME_LENGTH, STATUSES, plain_id, state_word, text_of
from rune.store.imports.foreign_files import chunks, opened
from rune.store.imports.foreign_json import Foreign, Mask, one_line, read_object
from rune.store.imports.foreign_times import read_time
from rune.store.imports.json_lists import ListElement, list_elements
from rune.store.imports.threads import begin, task_brought_in, title_of, whole_turn
from rune.store.ledger import Draft
from rune.text.storable import storable
from rune.text.tokens import estimate

ORIGINAL_TYPE = "operator.task"

_FOLDERS = ("folder", "cwd", "working_directory")
_SHOWN = 60
_UNANSWERED = {TaskStatus.FAILED: StopReason.FAILED, TaskStatus.CANCELLED: StopReason.CANCELLED}


class _Task(msgspec.Struct, frozen=True, kw_only=True):
    """One task as the list has it; `status` None when it is not known here. All text is masked."""

    original: str
    shown_id: str
    description: str
    result: str
    status: TaskStatus | None
    status_word: str
    model: str
    folder: str
    created_at: str
    completed_at: str


def tasks_in(path: Path, mask: Mask) -> Iterator[Arrival | LeftOut]:
    """Iterate over the tasks in a file, in bounded memory. Raises UsageError for a file that holds no list."""
    with opened(path) as descriptor:
        for element in list_elements(chunks(descriptor, path), path):
            where = f"task {element.number:,} (line {element.line:,})"
            try:
                yield _arrival(element, where, mask)
            except LeftOutError as error:
                yield LeftOut(where, error.reason)


def _arrival(element: ListElement, where: str, mask: Mask) -> Arrival:
    if element.trouble:
        raise LeftOutError(element.trouble)
    foreign = read_object(element.data, element.length, mask)
    task = _understood(foreign)
    notes: tuple[str, ...] = ()
    if task.status is None:
        called = f"the status {task.status_word!r}, which is not known here" if task.status_word else "no status"
        notes = (f"it has {called}: it is taken as open",)
    drafts, setting = _drafts(task, digest(foreign.kept))
    return Arrival(where=where, became="task", raw=foreign.kept, drafts=drafts, setting=setting, notes=notes)


def _understood(foreign: Foreign) -> _Task:
    """Return what an object says. Raises LeftOutError for one without an id, or without a description."""
    fields = foreign.masked
    original = next((found for key in ("task_id", "id") if (found := plain_id(foreign.given.get(key)))), "")
    if not original:
        raise LeftOutError("it has no task_id")
    description = message_text(text_of(fields.get("description")))
    if not description.strip():
        raise LeftOutError("it has no description")
    shown_id = next((found for key in ("task_id", "id") if (found := plain_id(fields.get(key)))), "")
    model = fields.get("assigned_model")
    folder = next((found for key in _FOLDERS if isinstance(found := fields.get(key), str) and found), "")
    word = fields.get("status")
    return _Task(
        original=original,
        shown_id=one_line(shown_id, NAME_LENGTH),
        description=description,
        result=_result(fields.get("result")),
        status=STATUSES.get(state_word(word)),
        status_word=one_line(word if isinstance(word, str) else json.dumps(word) if word is not None else "", _SHOWN),
        model=one_line(model, NAME_LENGTH) if isinstance(model, str) else "",
        folder=storable(folder),
        created_at=read_time(fields.get("created_at")),
        completed_at=read_time(fields.get("completed_at")),
    )


def _result(value: object) -> str:
    """Return a result as text: its usual field where it is an object that has one, else as JSON."""
    text = text_of(value)
    if not text and isinstance(value, dict | list | int | float) and value not in ({}, []):
        text = json.dumps(value, ensure_ascii=False, indent=2)
    return message_text(text) if text.strip() else ""


def _drafts(task: _Task, evidence: str) -> tuple[tuple[Draft, ...], tuple[Draft, ...]]:
    """Return the facts of a task, and the conversation that it is in."""
    conversation = ConversationRecord(
        id=derived("cnv", "operator", task.original),
        channel="task",
        folder=task.folder,
        title=title_of(task.description),
        model="",
        created_at=task.created_at,
    )
    record = TaskStateRecord(
        id=task.original if is_id(task.original, "tsk") else derived("tsk", "operator", task.original),
        title=conversation.title,
        status=task.status or TaskStatus.OPEN,
        conversation_id=conversation.id,
        parent_task_id=None,
        assigned_model=task.model,
        created_at=task.created_at,
        updated_at=task.completed_at or task.created_at,
        outcome_ref=evidence,
    )
    asked = _message(task, record, evidence, "user")
    turn = TurnRecord(
        id=asked.turn_id, conversation_id=conversation.id, task_id=record.id, message_id=asked.id, model=task.model
    )
    reason = StopReason.ANSWERED if task.result else _UNANSWERED.get(record.status, StopReason.INTERRUPTED)
    started, finished = whole_turn(turn, reason)
    drafts = [
        task_brought_in(record, event_id=derived("evt", "operator", task.original)),
        started,
        spoken(asked),
    ]
    if task.result:
        drafts.append(spoken(_message(task, record, evidence, "assistant")))
    # Which of their ids became which of ours; the evidence is named by what it became.
    receipt = EventImported(
        original_id=task.shown_id,
        original_type=ORIGINAL_TYPE,
        source="",
        channel="",
        occurred_at=task.created_at,
        became=record.id,
        evidence="",
    )
    kept = Draft(
        event_type="event.imported",
        body=receipt,
        partition="system",
        event_id=derived("evt", "operator", "receipt", task.original),
    )
    return (*drafts, finished, kept), (begin(conversation),)


def _message(task: _Task, record: TaskStateRecord, evidence: str, role: str) -> ConversationMessageRecord:
    is_answer = role == "assistant"
    content = task.result if is_answer else task.description
    return ConversationMessageRecord(
        id=derived("msg", "operator", role, task.original),
        ts=task.completed_at if is_answer else task.created_at,
        role="assistant" if is_answer else "user",
        content=content,
        conversation_id=record.conversation_id,
        task_id=record.id,
        turn_id=derived("trn", "operator", task.original),
        token_estimate=estimate(content),
        attachments=(evidence,),
        provenance="imported",
        model=task.model if is_answer else "",
    )
