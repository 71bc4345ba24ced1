"""Tasks, their states, and which state may follow which (spine.md, TaskStateRepository)."""

from enum import StrEnum

from rune.records.record import Record


class TaskStatus(StrEnum):
    """Where a task stands. `open` means: no turn in progress, the person's move."""

    CREATED = "created"
    RUNNING = "running"
    OPEN = "open"
    AWAITING_APPROVAL = "awaiting_approval"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"


LEGAL_TRANSITIONS: dict[TaskStatus, tuple[TaskStatus, ...]] = {
    TaskStatus.CREATED: (TaskStatus.RUNNING, TaskStatus.CANCELLED, TaskStatus.SUPERSEDED, TaskStatus.FAILED),
    TaskStatus.RUNNING: (
        TaskStatus.OPEN,
        TaskStatus.AWAITING_APPROVAL,
        TaskStatus.COMPLETED,
        TaskStatus.FAILED,
        TaskStatus.CANCELLED,
        TaskStatus.SUPERSEDED,
    ),
    TaskStatus.OPEN: (TaskStatus.RUNNING, TaskStatus.COMPLETED, TaskStatus.CANCELLED, TaskStatus.SUPERSEDED),
    TaskStatus.AWAITING_APPROVAL: (
        TaskStatus.RUNNING,
        TaskStatus.OPEN,
        TaskStatus.CANCELLED,
        TaskStatus.SUPERSEDED,
        TaskStatus.FAILED,
    ),
    TaskStatus.FAILED: (TaskStatus.RUNNING,),
    TaskStatus.COMPLETED: (),
    TaskStatus.CANCELLED: (),
    TaskStatus.SUPERSEDED: (),
}

# A message amends the newest task of its conversation that is in one of these states.
AMENDABLE = (TaskStatus.OPEN, TaskStatus.RUNNING, TaskStatus.AWAITING_APPROVAL)


class TaskStateRecord(Record, frozen=True, kw_only=True):
    """A task after a change; body of every `task.*` event. `outcome_ref` names what the change rests
    on (a turn id, later a receipt); empty when nothing does.
    """

    schema_version: int = 1
    id: str
    title: str
    status: TaskStatus
    conversation_id: str
    parent_task_id: str | None
    assigned_model: str
    created_at: str
    updated_at: str
    outcome_ref: str = ""
