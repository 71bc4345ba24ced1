"""Tasks: created, amended by messages, moved from state to state by rule, never by guessing."""

import asyncio

import apsw
import msgspec

from rune.errors import IllegalTaskTransitionError, NotFoundError
from rune.host.clock import Clock
from rune.host.ids import IdSource
from rune.records.envelope import EventEnvelope
from rune.records.record import Record
from rune.records.tasks import AMENDABLE, LEGAL_TRANSITIONS, TaskStateRecord, TaskStatus
from rune.records.times import rfc3339
from rune.store.event_store import Offset
from rune.store.ledger import Draft, Ledger, once
from rune.store.projection import rank
from rune.store.projections import ProjectionEngine
from rune.store.rows import read_record

_DDL = """
CREATE TABLE tasks (
    id TEXT NOT NULL UNIQUE,
    conversation_id TEXT NOT NULL,
    status TEXT NOT NULL,
    ended INTEGER NOT NULL,
    created_hlc INTEGER NOT NULL,
    created_rank TEXT NOT NULL,
    changed_rank TEXT NOT NULL,
    record BLOB NOT NULL
);
CREATE INDEX tasks_of_conversation ON tasks (conversation_id, created_rank);
CREATE INDEX tasks_newest ON tasks (created_hlc, id);
CREATE INDEX tasks_open ON tasks (created_hlc, id) WHERE ended = 0;
"""
# Whichever event is read first makes the row; the first in rank dates it, the last in rank fills it.
_UPSERT = """
INSERT INTO tasks VALUES (?1,?2,?3,?4,?5,?6,?6,?7) ON CONFLICT (id) DO UPDATE SET
    created_hlc = min(created_hlc, excluded.created_hlc),
    created_rank = min(created_rank, excluded.created_rank),
    status = iif(excluded.changed_rank > changed_rank, excluded.status, status),
    ended = iif(excluded.changed_rank > changed_rank, excluded.ended, ended),
    record = iif(excluded.changed_rank > changed_rank, excluded.record, record),
    changed_rank = max(changed_rank, excluded.changed_rank)
"""


class TaskViews:
    """The projection `tasks`: one row a task, as its last event left it."""

    name = "tasks"
    ddl = _DDL
    tables = ("tasks",)

    def apply(self, connection: apsw.Connection, offset: Offset, envelope: EventEnvelope, body: Record) -> None:
        """Take one event in (Projection.apply)."""
        if isinstance(body, TaskStateRecord):
            ended = int(not LEGAL_TRANSITIONS[body.status])
            row = (body.id, body.conversation_id, body.status.value, ended, envelope.hlc, rank(envelope))
            connection.execute(_UPSERT, (*row, msgspec.json.encode(body)))


class TaskStateRepository:
    """Reads tasks from the views and writes them through the ledger.

    `draft_*` are pure in the record they are given; the methods of the same name read it first and
    emit. One change at a time: two of them never start from the same state.
    """

    def __init__(self, ledger: Ledger, engine: ProjectionEngine, clock: Clock, ids: IdSource) -> None:
        self._ledger = ledger
        self._engine = engine
        self._clock = clock
        self._ids = ids
        self._changing = asyncio.Lock()

    def draft_create(
        self, title: str, conversation_id: str, *, model: str = "", parent_task_id: str | None = None
    ) -> Draft:
        """Return the beginning of a task with a new id; its body is the TaskStateRecord."""
        now = rfc3339(self._clock.now_ms())
        record = TaskStateRecord(
            id=self._ids.new_id("tsk"),
            title=title,
            status=TaskStatus.CREATED,
            conversation_id=conversation_id,
            parent_task_id=parent_task_id,
            assigned_model=model,
            created_at=now,
            updated_at=now,
        )
        return Draft(event_type="task.created", body=record, partition=conversation_id, event_id=once(record.id))

    def draft_amend(self, current: TaskStateRecord, title: str) -> Draft:
        """Return that a message went on with the task, which may give it another title."""
        record = msgspec.structs.replace(current, title=title, updated_at=rfc3339(self._clock.now_ms()))
        return Draft(event_type="task.amended", body=record, partition=record.conversation_id)

    def draft_transition(self, current: TaskStateRecord, status: TaskStatus, outcome_ref: str = "") -> Draft:
        """Return the task's change of state. Raises IllegalTaskTransitionError."""
        legal = LEGAL_TRANSITIONS[current.status]
        if status not in legal:
            raise IllegalTaskTransitionError(
                current.id,
                current=current.status.value,
                wanted=status.value,
                legal=tuple(each.value for each in legal),
            )
        record = msgspec.structs.replace(
            current, status=status, outcome_ref=outcome_ref, updated_at=rfc3339(self._clock.now_ms())
        )
        return Draft(event_type="task.transition", body=record, partition=record.conversation_id)

    async def create(
        self, title: str, conversation_id: str, model: str = "", parent_task_id: str | None = None
    ) -> TaskStateRecord:
        """Begin a task. Raises as Ledger.emit_many."""
        draft = self.draft_create(title, conversation_id, model=model, parent_task_id=parent_task_id)
        return await self._emit(draft)

    async def amend(self, task_id: str, title: str) -> TaskStateRecord:
        """Go on with a task under that title. Raises NotFoundError."""
        async with self._changing:
            return await self._emit(self.draft_amend(await self._current(task_id), title))

    async def transition(self, task_id: str, status: TaskStatus, outcome_ref: str = "") -> TaskStateRecord:
        """Change a task's state. Raises IllegalTaskTransitionError, NotFoundError."""
        async with self._changing:
            return await self._emit(self.draft_transition(await self._current(task_id), status, outcome_ref))

    async def get(self, task_id: str) -> TaskStateRecord:
        """Return a task. Raises NotFoundError."""
        found = await self._select("WHERE id = ?", task_id)
        if not found:
            raise NotFoundError(f"no task {task_id}")
        return found[0]

    async def get_active(self, conversation_id: str) -> TaskStateRecord | None:
        """Return the conversation's newest task that a message would amend; None when there is none."""
        states = ",".join(f"'{status.value}'" for status in AMENDABLE)
        found = await self._select(
            f"WHERE conversation_id = ? AND status IN ({states}) ORDER BY created_rank DESC LIMIT 1", conversation_id
        )
        return found[0] if found else None

    async def list_open(self, conversation_id: str | None = None) -> list[TaskStateRecord]:
        """Return the tasks that have not ended, newest first; of one conversation when it is named."""
        if conversation_id is None:
            return await self._select("WHERE ended = 0 ORDER BY created_hlc DESC, id DESC")
        return await self._select("WHERE conversation_id = ? AND ended = 0 ORDER BY created_rank DESC", conversation_id)

    async def latest(self, conversation_id: str | None = None) -> TaskStateRecord | None:
        """Return the newest task in any state, of one conversation when it is named; None when there is none."""
        if conversation_id is None:
            found = await self._select("ORDER BY created_hlc DESC, id DESC LIMIT 1")
        else:
            found = await self._select("WHERE conversation_id = ? ORDER BY created_rank DESC LIMIT 1", conversation_id)
        return found[0] if found else None

    async def _current(self, task_id: str) -> TaskStateRecord:
        # A pass may have failed after an earlier change: what is durable decides, not what is shown.
        await self._engine.caught_up()
        return await self.get(task_id)

    async def _emit(self, draft: Draft) -> TaskStateRecord:
        event = await self._ledger.emit(draft)
        return msgspec.convert(event.body, TaskStateRecord)

    async def _select(self, rest: str, *values: str) -> list[TaskStateRecord]:
        def select(connection: apsw.Connection) -> list[TaskStateRecord]:
            rows = connection.execute(f"SELECT record FROM tasks {rest}", values)  # noqa: S608 text from here
            return [read_record(row[0], TaskStateRecord) for row in rows]

        return await self._engine.query(select)
