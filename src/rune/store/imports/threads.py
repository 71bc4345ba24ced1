"""The conversations of an older journal while it is read: who speaks in which, and what is still unanswered.

All of it follows from the lines alone, never from what is stored already: a run that was cut off and is begun
again comes to the same ids. Only the newest are kept in mind, so that a journal may have any number of them.
"""

from collections import OrderedDict

import msgspec

from rune.records.messages import ConversationRecord
from rune.records.tasks import TaskStateRecord, TaskStatus
from rune.records.turns import StopReason, TurnRecord
from rune.store.imports.derived_ids import derived
from rune.store.imports.event_words import Said
from rune.store.imports.foreign_json import one_line
from rune.store.ledger import Draft, once

MOST_THREADS = 1000
TITLE_LENGTH = 80


class Thread:
    """One conversation. `turn` is the one that the next answer belongs to, None before anybody asked."""

    def __init__(self, record: ConversationRecord) -> None:
        self.record = record
        self.turn: TurnRecord | None = None
        self.answered = True
        self.tasks: OrderedDict[str, TaskStateRecord] = OrderedDict()

    @property
    def unanswered(self) -> TurnRecord | None:
        """The turn that nobody answered."""
        return None if self.answered else self.turn


class Threads:
    """Finds the conversation and the task of a line; makes them where the line is the first of them."""

    def __init__(self) -> None:
        self._threads: OrderedDict[tuple[str, ...], Thread] = OrderedDict()
        # The conversation of lines that name none, by source.
        self._current: OrderedDict[tuple[str, str], tuple[str, ...]] = OrderedDict()
        self.forgotten: list[Thread] = []

    def of(self, said: Said, *, begins: bool = False) -> tuple[Thread, list[Draft]]:
        """Return the line's conversation, and its beginning when this line is the first of it."""
        speaker = (said.source, said.channel_name)
        key = ("named", said.conversation) if said.conversation else self._current.get(speaker)
        if begins and not said.conversation:
            key = None
        if key is None:
            key = ("begun", *said.key)
        if begins or not said.conversation:
            self._current[speaker] = key
            self._current.move_to_end(speaker)
            while len(self._current) > MOST_THREADS:
                self._current.popitem(last=False)
        thread = self._threads.get(key)
        if thread is not None:
            self._threads.move_to_end(key)
            return thread, []
        record = ConversationRecord(
            id=derived("cnv", *key),
            channel=said.channel,
            folder=said.folder,
            title=title_of(said.title or said.text),
            model="",
            created_at=said.at,
        )
        self._threads[key] = thread = Thread(record)
        while len(self._threads) > MOST_THREADS:
            self.forgotten.append(self._threads.popitem(last=False)[1])
        return thread, [begin(record)]

    def task(self, thread: Thread, said: Said) -> tuple[TaskStateRecord, list[Draft]]:
        """Return the task of a message, and that it was brought in when this line is the first of it."""
        known = thread.tasks.get(said.task)
        if known is not None:
            thread.tasks.move_to_end(said.task)
            return known, []
        task = TaskStateRecord(
            id=task_id(thread, said.task),
            title=title_of(said.title or said.text) or thread.record.title,
            status=TaskStatus.OPEN,
            conversation_id=thread.record.id,
            parent_task_id=None,
            assigned_model=said.model,
            created_at=said.at,
            updated_at=said.at,
        )
        remember(thread, said.task, task)
        return task, [task_brought_in(task, event_id=once(f"{task.id}.imported"))]

    def rest(self) -> list[Thread]:
        """Return all that are still kept in mind, at the end of the file."""
        return list(self._threads.values())


def title_of(text: str) -> str:
    """Return the first line that says something, cut to 80 characters."""
    line = next((line for line in text.splitlines() if line.strip()), "")
    return one_line(line, TITLE_LENGTH)


def task_id(thread: Thread, original: str) -> str:
    """Return the id of a task in that conversation; `original` is "" for the one of messages that name none."""
    return derived("tsk", thread.record.id, original)


def remember(thread: Thread, original: str, task: TaskStateRecord) -> None:
    """Note a task as it stands, for the lines that follow."""
    thread.tasks[original] = task
    thread.tasks.move_to_end(original)
    while len(thread.tasks) > MOST_THREADS:
        thread.tasks.popitem(last=False)


def begin(record: ConversationRecord) -> Draft:
    """Return the beginning of a conversation; once for its id."""
    return Draft(event_type="conversation.created", body=record, partition=record.id, event_id=once(record.id))


def task_brought_in(task: TaskStateRecord, *, event_id: str) -> Draft:
    """Return a task in the state in which it came."""
    return Draft(event_type="task.imported", body=task, partition=task.conversation_id, event_id=event_id)


def whole_turn(turn: TurnRecord, reason: StopReason) -> tuple[Draft, Draft]:
    """Return the beginning and the end of a turn that is over."""
    ended = msgspec.structs.replace(turn, stop_reason=reason)
    return (
        Draft(
            event_type="turn.started", body=turn, partition=turn.conversation_id, event_id=once(f"{turn.id}.started")
        ),
        Draft(
            event_type="turn.finished", body=ended, partition=turn.conversation_id, event_id=once(f"{turn.id}.finished")
        ),
    )
