"""Writes what happens in a tool round, as it happens: the answer with its calls before anything runs, each intent
before its act, each result behind it (spine.md, Durable when). With the recorder the only writer of a turn's facts.
"""

import asyncio
from collections.abc import Callable

import msgspec

from rune.host.clock import Clock
from rune.host.ids import IdSource
from rune.records.events import HistoryArchived
from rune.records.messages import ConversationMessageRecord
from rune.records.record import Record
from rune.records.times import rfc3339
from rune.records.tools import PreparedCall, ToolCall, ToolResult
from rune.store.conversations import ConversationStateRepository
from rune.store.evidence_store import Evidence
from rune.store.ledger import Draft, Ledger
from rune.turn.flight import Flight, uninterrupted
from rune.turn.recorder import TurnRecorder, said
from rune.turn.session import Session


class RoundRecorder:
    """Writes the facts of tool rounds and keeps the session's history in step. Raises StorageError: what could not be
    written did not happen, or is found at the next start.
    """

    def __init__(
        self,
        *,
        ledger: Ledger,
        evidence: Evidence,
        conversations: ConversationStateRepository,
        recorder: TurnRecorder,
        clock: Clock,
        ids: IdSource,
        estimate: Callable[[str], int],
    ) -> None:
        self._ledger = ledger
        self._evidence = evidence
        self._conversations = conversations
        self._recorder = recorder
        self._clock = clock
        self._ids = ids
        self._estimate = estimate

    def new_call_id(self) -> str:
        """Return an id for one prepared call."""
        return self._ids.new_id("cal")

    async def answered(self, flight: Flight, session: Session) -> ConversationMessageRecord:
        """Store the answer that just came, with its calls; it is not the flight's any more."""
        message = self._recorder.answer(flight, session)
        if message is None:
            raise RuntimeError("there is no answer to store")
        await uninterrupted(self._emit(flight, session, message))
        return message

    async def _emit(self, flight: Flight, session: Session, message: ConversationMessageRecord) -> None:
        await self._ledger.emit(self._conversations.draft_append(message))
        said(flight, session)
        session.history.append(message)
        flight.answer = None
        flight.said += 1

    async def intent(self, session: Session, prepared: PreparedCall, authorization: str | None) -> None:
        """Store that a call is about to act."""
        await self._ledger.emit(_fact(session, "tool.intent", prepared, prepared.call.name, authorization))

    async def result(
        self, flight: Flight, session: Session, call: ToolCall, result: ToolResult, text: str, allowed_by: str | None
    ) -> ConversationMessageRecord:
        """Store what a call came to, for the record (`result`) and for the model (`text`)."""
        if flight.task is None:
            raise RuntimeError("a turn that was not opened has no results")
        message = self.message(session, call, text, turn_id=flight.turn_id, task_id=flight.task.id)
        result = msgspec.structs.replace(result, message_id=message.id)
        await self._ledger.emit_many([result_draft(session, call, result, allowed_by), self.draft(message)])
        session.history.append(message)
        session.made.append((call, result))
        return message

    def draft(self, message: ConversationMessageRecord) -> Draft:
        """Return a message as a fact that is to be written with others."""
        return self._conversations.draft_append(message)

    def message(
        self, session: Session, call: ToolCall, text: str, *, turn_id: str, task_id: str
    ) -> ConversationMessageRecord:
        """Return a result as the model reads it."""
        return ConversationMessageRecord(
            id=self._ids.new_id("msg"),
            ts=rfc3339(self._clock.now_ms()),
            role="tool",
            content=text,
            conversation_id=session.conversation_id,
            task_id=task_id,
            turn_id=turn_id,
            token_estimate=self._estimate(text),
            tool_call_id=call.id,
            tool_name=call.name,
            provenance="tool",
        )

    async def leave_out(self, flight: Flight, session: Session, message: ConversationMessageRecord, why: str) -> None:
        """Have an answer no longer sent; it stays in the journal and in what a person sees."""
        archived = HistoryArchived(
            conversation_id=session.conversation_id, turn_id=flight.turn_id, message_ids=(message.id,), reason=why
        )
        await self._ledger.emit(self._conversations.draft_change(archived))
        session.archived |= {message.id}

    async def kept(self, data: bytes, source: str) -> str:
        """Keep bytes as evidence and return their id."""
        return (await asyncio.to_thread(self._evidence.put, data, source=source)).hash

    async def write(self, *drafts: Draft) -> None:
        """Store facts together."""
        await self._ledger.emit_many(drafts)


def result_draft(session: Session, call: ToolCall, result: ToolResult, allowed_by: str | None) -> Draft:
    """Return a receipt as a fact that is to be written with others."""
    return _fact(session, "tool.result", result, call.name, allowed_by)


def behind(session: Session, message: ConversationMessageRecord) -> list[ConversationMessageRecord]:
    """Return the results that are stored for an answer, in order."""
    at = next(index for index in range(len(session.history) - 1, -1, -1) if session.history[index].id == message.id)
    return [each for each in session.history[at + 1 :] if each.role == "tool"]


def _fact(session: Session, event_type: str, body: Record, tool: str, authorization: str | None) -> Draft:
    return Draft(
        event_type=event_type,
        body=body,
        partition=session.conversation_id,
        actor_id=f"tool:{tool}",
        authorization=authorization,
    )
