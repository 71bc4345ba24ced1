"""The only writer of a turn's facts and of its trace. Each fact is written once."""

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from rune.context.blocks import Capsule, ContextTrace, FrozenPrefix
from rune.context.prefix import encode_prefix
from rune.errors import NotFoundError, RuneError
from rune.host.clock import Clock
from rune.host.ids import IdSource
from rune.records.events import (
    ConversationRenamed,
    HistoryArchived,
    ModelSelected,
    PrefixChanged,
    ThinkingSelected,
    TurnFailed,
)
from rune.records.messages import ConversationMessageRecord, ConversationRecord
from rune.records.permissions import PermissionChanged
from rune.records.record import Record
from rune.records.tasks import TaskStateRecord, TaskStatus
from rune.records.times import rfc3339
from rune.records.traces import InferenceTraceRecord
from rune.records.turns import StopReason, TurnRecord
from rune.store.conversations import ConversationStateRepository
from rune.store.evidence_store import Evidence, EvidenceItem
from rune.store.ledger import Draft, Ledger, once
from rune.store.tasks import TaskStateRepository
from rune.turn.failures import TurnFailures
from rune.turn.flight import Answer, Flight
from rune.turn.outcome import Outcome
from rune.turn.session import Session, unanswerable
from rune.turn.tracing import build_trace

TITLE_LENGTH = 80
ERROR_LENGTH = 300

# Gives the frozen prefix of a new conversation; None when there can be none (no model, a window too small).
CollectPrefix = Callable[[ConversationMessageRecord], FrozenPrefix | None]

# A turn that was stopped by anything but a bug leaves its task to the person (spine.md, TaskStateRepository).
_TASK_AFTER = {StopReason.BUG: TaskStatus.FAILED, StopReason.PAUSED: TaskStatus.AWAITING_APPROVAL}


class TurnRecorder:
    """Writes what happened in a turn, in batches that share a sync, and keeps the session in step.

    `publish` hands a finished trace to other programs; it may raise StorageError.
    """

    def __init__(
        self,
        *,
        ledger: Ledger,
        evidence: Evidence,
        conversations: ConversationStateRepository,
        tasks: TaskStateRepository,
        clock: Clock,
        ids: IdSource,
        estimate: Callable[[str], int],
        failures: TurnFailures,
        publish: Callable[[InferenceTraceRecord], None],
    ) -> None:
        self._ledger = ledger
        self._evidence = evidence
        self._conversations = conversations
        self._tasks = tasks
        self._clock = clock
        self._ids = ids
        self._estimate = estimate
        self._failures = failures
        self._publish = publish

    async def open(self, flight: Flight, session: Session, collect: CollectPrefix) -> None:
        """Make the turn and the person's message durable. `collect` gives the prefix with which a new
        conversation starts.
        """
        now = rfc3339(self._clock.now_ms())
        task, task_drafts = self._task(session, title_of(flight.request.text), flight.model_name)
        message = self._message(flight, session, task, now)
        prefix = collect(message) if session.conversation is None else None
        conversation, drafts = await self._conversation(flight, session, prefix, now)
        drafts += [
            *self._permission(flight, session),
            *task_drafts,
            self._draft(session, "turn.started", _begun(flight, conversation.id, task.id, message.id)),
            self._conversations.draft_append(message),
        ]
        await self.settle(session)
        await self._ledger.emit_many(drafts)
        flight.conversation, flight.task, flight.message = conversation, task, message
        flight.opened = True
        session.conversation, session.task = conversation, task
        session.frozen = session.frozen or prefix
        session.model = flight.model_name or session.model
        session.thinking, session.permission = flight.thinking, flight.permission

    async def reopen(self, flight: Flight, session: Session, drafts: Sequence[Draft], message_id: str) -> None:
        """Make durable that a paused turn goes on, together with what was decided about it (`drafts`).

        Raises NotFoundError when its task or message is not there any more.
        """
        task = session.task
        message = next((each for each in session.history if each.id == message_id), None)
        if task is None or message is None or session.conversation is None:
            raise NotFoundError("the task of this question has ended", hint="Say what you want in a new message.")
        running = self._tasks.draft_transition(task, TaskStatus.RUNNING)
        begun = self._draft(session, "turn.started", _begun(flight, session.conversation_id, task.id, message.id))
        await self.settle(session)
        await self._ledger.emit_many([*drafts, running, begun])
        flight.conversation, flight.task, flight.message = session.conversation, _task_of(running), message
        flight.opened = True
        session.task, session.pending = flight.task, None

    async def before_call(self, flight: Flight, session: Session, capsule: Capsule, trace: ContextTrace) -> None:
        """Make durable what the coming prompt changes: messages that leave it, a new frozen prefix."""
        drafts: list[Draft] = []
        if trace.archived_now:
            archived = HistoryArchived(
                conversation_id=session.conversation_id,
                turn_id=flight.turn_id,
                message_ids=trace.archived_now,
                reason=trace.prefix_break or "history over its budget",
            )
            drafts.append(self._conversations.draft_change(archived))
        if capsule.frozen != session.frozen:
            prefix = await self._keep_prefix(capsule.frozen)
            changed = PrefixChanged(
                conversation_id=session.conversation_id, prefix=prefix, reason=trace.prefix_break or _why_new(session)
            )
            drafts.append(self._conversations.draft_change(changed))
        if drafts:
            await self._ledger.emit_many(drafts)
        session.archived |= frozenset(trace.archived_now)
        session.frozen = capsule.frozen
        session.last_messages = capsule.messages
        flight.traces.append((capsule, trace))

    async def close(self, flight: Flight, session: Session, outcome: Outcome) -> str | None:
        """Write the turn's end: answer, failure, task, trace, `turn.finished`. Returns the trace's id.

        Raises StorageError when it could not be written; recovery then ends the turn at the next start.
        """
        if flight.task is None or flight.message is None:
            raise RuntimeError("a turn that was not opened cannot be closed")
        drafts: list[Draft] = []
        answer = self.answer(flight, session)
        if answer is not None:
            drafts.append(self._conversations.draft_append(answer))
        if outcome.error:
            drafts.append(self._draft(session, "turn.failed", self._failure(flight, session, outcome)))
        task, transition = self._after(flight.task, outcome, flight.turn_id)
        drafts.append(transition)
        trace = await self._trace(flight, outcome)
        if trace is not None:
            drafts.append(self._draft(session, "inference.traced", trace))
        finished = msgspec.structs.replace(
            _begun(flight, session.conversation_id, flight.task.id, flight.message.id),
            stop_reason=outcome.reason,
            usage=flight.model.usage if flight.model else None,
            degraded=tuple(flight.degraded),
            trace_id=trace.id if trace else None,
        )
        drafts.append(finish(finished))
        # The turn has ended like this, whether or not it can be written at once: the session goes on from here,
        # and what could not be written is owed.
        session.task = task if task.status is not TaskStatus.FAILED else None
        if not unanswerable(finished) or answer is not None:
            said(flight, session)
        if answer is not None:
            session.history.append(answer)
        session.pending = flight.pending
        session.owed += drafts
        await self.settle(session)
        if trace is not None:
            await self._offer_to_programs(trace)
        return finished.trace_id

    async def settle(self, session: Session) -> None:
        """Write what is owed from a turn whose end could not be written. Raises StorageError."""
        if session.owed:
            await self._ledger.emit_many(session.owed)
            session.owed.clear()

    async def _conversation(
        self, flight: Flight, session: Session, prefix: FrozenPrefix | None, now: str
    ) -> tuple[ConversationRecord, list[Draft]]:
        """Return the conversation as it will be, and what must be said about it."""
        title = title_of(flight.request.text)
        if session.conversation is None:
            created = ConversationRecord(
                id=session.conversation_id,
                channel=flight.request.channel,
                folder=flight.request.folder,
                title=title,
                model=flight.model_name,
                prefix=await self._keep_prefix(prefix) if prefix is not None else None,
                created_at=now,
            )
            return created, [self._conversations.draft_create(created), *self._thinking(flight, session)]
        conversation, drafts = session.conversation, list[Draft]()
        if not conversation.title:
            conversation = msgspec.structs.replace(conversation, title=title)
            renamed = ConversationRenamed(conversation_id=conversation.id, title=title)
            drafts.append(self._conversations.draft_change(renamed))
        if flight.model and session.model != flight.model_name:
            chosen_by = "owner" if flight.request.model else "rune"
            drafts.append(self._conversations.draft_change(self._selection(flight, session), actor_id=chosen_by))
        return conversation, drafts + self._thinking(flight, session)

    async def _keep_prefix(self, prefix: FrozenPrefix) -> str:
        ref = await asyncio.to_thread(self._evidence.put, encode_prefix(prefix), source="prefix")
        return ref.hash

    def _selection(self, flight: Flight, session: Session) -> ModelSelected:
        provider = flight.model.info.provider if flight.model else ""
        return ModelSelected(
            conversation_id=session.conversation_id,
            model=flight.model_name,
            provider=provider,
            previous=session.model,
        )

    def _thinking(self, flight: Flight, session: Session) -> list[Draft]:
        """Return that the person chose with this message how much is thought; nothing where it stays."""
        if flight.thinking == session.thinking:
            return []
        chosen = ThinkingSelected(
            conversation_id=session.conversation_id, thinking=flight.thinking, previous=session.thinking
        )
        return [self._conversations.draft_change(chosen, actor_id="owner")]

    def _permission(self, flight: Flight, session: Session) -> list[Draft]:
        """Return that the person chose with this message what asks; nothing where it stays."""
        if flight.permission == session.permission:
            return []
        changed = PermissionChanged(
            conversation_id=session.conversation_id, mode=flight.permission, previous=session.permission
        )
        return [self._conversations.draft_change(changed, actor_id="owner")]

    def _task(self, session: Session, title: str, model: str) -> tuple[TaskStateRecord, list[Draft]]:
        if session.task is None:
            created = self._tasks.draft_create(title, session.conversation_id, model=model, parent_task_id=None)
        else:
            created = self._tasks.draft_amend(session.task, session.task.title)
        task = _task_of(created)
        if task.status is TaskStatus.RUNNING:
            return task, [created]
        running = self._tasks.draft_transition(task, TaskStatus.RUNNING)
        return _task_of(running), [created, running]

    def _after(self, task: TaskStateRecord, outcome: Outcome, turn_id: str) -> tuple[TaskStateRecord, Draft]:
        status = _TASK_AFTER.get(outcome.reason, TaskStatus.OPEN)
        draft = self._tasks.draft_transition(task, status, outcome_ref=turn_id)
        return _task_of(draft), draft

    def _message(self, flight: Flight, session: Session, task: TaskStateRecord, now: str) -> ConversationMessageRecord:
        text = flight.request.text
        return ConversationMessageRecord(
            id=self._ids.new_id("msg"),
            ts=now,
            role="user",
            content=text,
            conversation_id=session.conversation_id,
            task_id=task.id,
            turn_id=flight.turn_id,
            token_estimate=self._estimate(text),
            provenance=flight.request.provenance,
        )

    def answer(self, flight: Flight, session: Session) -> ConversationMessageRecord | None:
        """Return what the model has said and is not stored yet, None when that is nothing. Calls come with it only
        when it is whole: one that broke off asks for nothing.
        """
        answer, task = flight.answer, flight.task
        if answer is None or task is None or not (answer.text or answer.thinking or answer.complete):
            return None
        return ConversationMessageRecord(
            id=answer.message_id,
            ts=rfc3339(self._clock.now_ms()),
            role="assistant",
            content=answer.content,
            conversation_id=session.conversation_id,
            task_id=task.id,
            turn_id=flight.turn_id,
            token_estimate=self._estimate(answer.content),
            tool_calls=tuple(answer.calls) if answer.complete else (),
            thinking="".join(answer.thinking),
            provenance="model",
            complete=answer.complete,
            model=flight.model_name,
            usage=answer.usage,
        )

    def _failure(self, flight: Flight, session: Session, outcome: Outcome) -> TurnFailed:
        return TurnFailed(
            turn_id=flight.turn_id,
            conversation_id=session.conversation_id,
            error=outcome.error_type,
            message=outcome.error[:ERROR_LENGTH],
            hint=outcome.hint[:ERROR_LENGTH],
        )

    async def _offer_to_programs(self, trace: InferenceTraceRecord) -> None:
        """Append the trace to the file that other programs read: a convenience, whose failure is a T2."""
        try:
            await asyncio.to_thread(self._publish, trace)
        except RuneError as error:
            self._failures.background("inference_trace_file", error)

    async def _trace(self, flight: Flight, outcome: Outcome) -> InferenceTraceRecord | None:
        """Build the trace and store what it names. A trace that cannot be written fails no turn (T2)."""
        if not flight.traces or flight.model is None:
            return None
        blobs = {blob: data for _, trace in flight.traces for blob, data in trace.blobs.items()}
        items = [EvidenceItem(data=data, source="prompt") for data in blobs.values()]
        try:
            await asyncio.to_thread(self._evidence.put_many, items)
        except RuneError as error:
            self._failures.background("inference_trace", error)
            return None
        return build_trace(flight, outcome, self._ids.new_id("trc"))

    def _draft(self, session: Session, event_type: str, body: Record) -> Draft:
        return Draft(event_type=event_type, body=body, partition=session.conversation_id)


def said(flight: Flight, session: Session) -> None:
    """Note that the turn's message stands in the history from now on; once."""
    if flight.message is not None and not any(each.id == flight.message.id for each in reversed(session.history)):
        session.history.append(flight.message)


def _begun(flight: Flight, conversation_id: str, task_id: str, message_id: str) -> TurnRecord:
    return TurnRecord(
        id=flight.turn_id,
        conversation_id=conversation_id,
        task_id=task_id,
        message_id=message_id,
        resumes=flight.resumption.approval.turn_id if flight.resumption else None,
        model=flight.model_name,
    )


def finish(turn: TurnRecord) -> Draft:
    """Return the end of a turn, under an id of its own: a second, different end is refused by the journal."""
    return Draft(
        event_type="turn.finished", body=turn, partition=turn.conversation_id, event_id=once(f"{turn.id}.finished")
    )


def title_of(text: str) -> str:
    """Return the first line of a message that says something, cut to 80 characters."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1].rstrip() + "…"


def _why_new(session: Session) -> str:
    kept = session.conversation.prefix if session.conversation is not None else None
    return "first prefix" if kept is None else "the frozen prefix could not be read"


def new_answer(ids: IdSource) -> Answer:
    """Return an empty answer with the id under which it will be stored."""
    return Answer(message_id=ids.new_id("msg"))


def _task_of(draft: Draft) -> TaskStateRecord:
    if not isinstance(draft.body, TaskStateRecord):
        raise TypeError(f"{draft.event_type} does not carry a task")
    return draft.body
