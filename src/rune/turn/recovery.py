"""What a killed process left open is ended, once, at the next start (spine.md, TaskStateRepository)."""

import asyncio
from collections.abc import Callable

import msgspec

from rune.errors import LeaseHeldError
from rune.host.clock import Clock
from rune.host.ids import IdSource
from rune.records.messages import ConversationMessageRecord
from rune.records.tasks import TaskStatus
from rune.records.times import rfc3339
from rune.records.tools import PreparedCall, ToolResult
from rune.records.turns import StopReason, TurnRecord
from rune.store.conversations import ConversationStateRepository
from rune.store.intents import IntentRepository
from rune.store.leases import LeaseBook
from rune.store.ledger import Draft, Ledger
from rune.store.tasks import TaskStateRepository
from rune.store.turns import TurnRepository
from rune.turn.recorder import finish


class Recovered(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that was ended for its killed process, and the calls of it that may have run."""

    turn: TurnRecord
    may_have_run: tuple[PreparedCall, ...] = ()


class TurnRecovery:
    """Ends turns that have no end and no process that could still write it."""

    def __init__(
        self,
        *,
        leases: LeaseBook,
        ledger: Ledger,
        turns: TurnRepository,
        tasks: TaskStateRepository,
        intents: IntentRepository,
        conversations: ConversationStateRepository,
        clock: Clock,
        ids: IdSource,
        estimate: Callable[[str], int],
    ) -> None:
        self._conversations = conversations
        self._clock = clock
        self._ids = ids
        self._estimate = estimate
        self._intents = intents
        self._leases = leases
        self._ledger = ledger
        self._turns = turns
        self._tasks = tasks

    async def recover(self) -> tuple[Recovered, ...]:
        """Write `turn.finished` (interrupted) for each such turn and open its task; returns those turns.

        A call that was about to act and has no result gets one whose outcome is unknown: it may have run, and
        nothing runs it again by itself (spine.md, Durable when).
        A turn whose conversation is held by another process is running there and is left alone.
        """
        ended: list[Recovered] = []
        for turn in await self._turns.open_turns():
            try:
                lease = await asyncio.to_thread(self._leases.take, turn.conversation_id)
            except LeaseHeldError:
                continue
            try:
                await self._ledger.adopt(turn.conversation_id)
                # Its process may have ended it, or another may have recovered it, before the lease was ours.
                if turn in await self._turns.open_turns(turn.conversation_id):
                    ended.append(await self._end(turn))
            finally:
                await self._ledger.release(turn.conversation_id)
                lease.release()
        return tuple(ended)

    async def _end(self, turn: TurnRecord) -> Recovered:
        finished = msgspec.structs.replace(turn, stop_reason=StopReason.INTERRUPTED)
        calls = tuple(await self._intents.unanswered(turn.id))
        drafts = [finish(finished)]
        for call in reversed(calls):
            told = await self._told(call, turn)
            drafts[:0] = [_unknown(call, turn, "" if told is None else told.id)]
            drafts[1:1] = [] if told is None else [self._conversations.draft_append(told)]
        task = await self._tasks.get(turn.task_id)
        if task.status is TaskStatus.RUNNING:
            drafts.insert(0, self._tasks.draft_transition(task, TaskStatus.OPEN, outcome_ref=turn.id))
        await self._ledger.emit_many(drafts)
        return Recovered(turn=finished, may_have_run=calls)

    async def _told(self, call: PreparedCall, turn: TurnRecord) -> ConversationMessageRecord | None:
        """Return what the model is to know of a call that may have run, as the result that it waits for; None where
        the answer that made the call is not there.
        """
        messages = await self._conversations.messages(turn.conversation_id)
        asked = next((each for each in reversed(messages) if _made(each, call)), None)
        if asked is None or any(each.tool_call_id == call.call.id for each in messages[messages.index(asked) :]):
            return None
        text = "It may have run: Rune was killed before it came to its end. Look what is there before you do it again."
        return ConversationMessageRecord(
            id=self._ids.new_id("msg"),
            ts=rfc3339(self._clock.now_ms()),
            role="tool",
            content=text,
            conversation_id=turn.conversation_id,
            task_id=turn.task_id,
            turn_id=turn.id,
            token_estimate=self._estimate(text),
            tool_call_id=call.call.id,
            tool_name=call.call.name,
            provenance="tool",
        )


def _made(message: ConversationMessageRecord, call: PreparedCall) -> bool:
    return message.role == "assistant" and any(each.id == call.call.id for each in message.tool_calls)


def _unknown(call: PreparedCall, turn: TurnRecord, message_id: str) -> Draft:
    result = ToolResult(
        id=call.id,
        turn_id=turn.id,
        tool=call.call.name,
        digest=call.digest,
        outcome="unknown",
        summary="it may have run: Rune was killed between its beginning and its end",
        output=None,
        milliseconds=None,
        confinement=call.confinement,
        exit_code=None,
        files=(),
        message_id=message_id,
    )
    return Draft(
        event_type="tool.result",
        body=result,
        partition=turn.conversation_id,
        actor_id=f"tool:{call.call.name}",
    )
