"""Questions of a turn: how it pauses for the person, goes on with their answer, or is put aside by another message."""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from rune.context.kept_prompt import decode_capsule, encode_capsule
from rune.errors import EvidenceTamperedError, InvalidRecordError, NotFoundError, UsageError
from rune.host.paths import real_path
from rune.orchestration.approvals import Approvals
from rune.orchestration.permissions import Permissions
from rune.records.loop import LoopState
from rune.records.messages import ConversationMessageRecord
from rune.records.models import ActionProtocol
from rune.records.tools import PreparedCall
from rune.store.approvals import ApprovalRepository
from rune.store.evidence_store import Evidence, EvidenceItem
from rune.store.ledger import Draft
from rune.store.turns import TurnRepository
from rune.turn import events as shown
from rune.turn.acting_out import Acting
from rune.turn.failures import TurnFailures
from rune.turn.flight import Flight, uninterrupted
from rune.turn.loop_watch import LoopWatch
from rune.turn.recorder import TurnRecorder
from rune.turn.resumption import decode_state, encode_state
from rune.turn.rounds import RoundRecorder, behind, result_draft
from rune.turn.session import Session
from rune.turn.tool_round import Answered

INSTEAD: Final = "Not done: the person wrote a message instead of allowing it."
ENDED: Final = "Not done: the person ended the task instead of allowing it."
_WORDS: Final = {INSTEAD: "the person wrote a message instead", ENDED: "the person ended the task"}


class Questions:
    """Asks the person, durably, and takes up what they answered."""

    def __init__(
        self,
        *,
        approvals: Approvals,
        repository: ApprovalRepository,
        permissions: Permissions,
        turns: TurnRepository,
        recorder: TurnRecorder,
        rounds: RoundRecorder,
        acting: Acting,
        evidence: Evidence,
        failures: TurnFailures,
    ) -> None:
        self._approvals = approvals
        self._repository = repository
        self._permissions = permissions
        self._turns = turns
        self._recorder = recorder
        self._rounds = rounds
        self._acting = acting
        self._evidence = evidence
        self._failures = failures

    async def ask(
        self,
        flight: Flight,
        session: Session,
        message: ConversationMessageRecord,
        asks: Sequence[PreparedCall],
        protocol: ActionProtocol,
    ) -> None:
        """Store the question with the whole state of the loop, then show it. The turn pauses after this."""
        await uninterrupted(self._store(flight, session, message, tuple(asks), protocol))
        if (pending := flight.pending) is None:
            raise RuntimeError("a question that was stored is pending")
        calls = tuple(
            shown.AskedCall(
                call_id=each.id,
                name=each.call.name,
                effect=each.effect,
                detail=each.detail,
                why=each.why,
                rule=each.rule,
            )
            for each in asks
        )
        summary = "; ".join(f"{each.name} {each.effect}" for each in calls)
        flight.emit(shown.ApprovalAsked(turn_id=flight.turn_id, approval_id=pending.id, summary=summary, calls=calls))

    async def _store(
        self,
        flight: Flight,
        session: Session,
        message: ConversationMessageRecord,
        asks: tuple[PreparedCall, ...],
        protocol: ActionProtocol,
    ) -> None:
        if flight.capsule is None or flight.message is None:
            raise RuntimeError("a turn that asks has sent a prompt")
        capsule = await self._rounds.kept(encode_capsule(flight.capsule), "loop")
        state = LoopState(
            turn_id=flight.turn_id,
            message_id=flight.message.id,
            iterations_used=flight.counters.iterations_used,
            iteration_budget=flight.counters.iteration_budget,
            capsule=capsule,
            round_message_ids=(message.id, *(each.id for each in behind(session, message))),
            failures=flight.watch.failures,
            recent=tuple(flight.watch.recent),
            nudged=flight.watch.nudged,
            protocol=protocol,
            acted=flight.acted,
        )
        items = [EvidenceItem(data=encode_state(state), source="loop")]
        (kept,) = await asyncio.to_thread(self._evidence.put_many, items)
        pending = self._approvals.ask(
            turn_id=flight.turn_id, conversation_id=session.conversation_id, calls=asks, loop_state=kept.hash
        )
        await self._rounds.write(self._repository.draft_request(pending))
        flight.pending = pending

    async def reopen(self, flight: Flight, session: Session) -> None:
        """Record the person's answer and that the turn goes on, in one write; the first answer wins.

        Raises what `Approvals.open` raises, UsageError for a state that this version cannot go on with (unless the
        answer is no), NotFoundError, StorageError: nothing is decided then.
        """
        if (resumption := flight.resumption) is None:
            raise RuntimeError("a turn that resumes nothing")
        approval = await self._approvals.open(resumption.approval.id)  # anew: now nobody else can answer it
        paused = await self._turns.get(approval.turn_id)
        state = await self._state(approval.loop_state, paused.message_id, allowed=resumption.decision == "allow")
        decided = self._approvals.decided(approval, resumption.decision, resumption.reason)
        drafts = [self._repository.draft_decide(decided)]
        if resumption.always and resumption.decision == "allow" and session.conversation is not None:
            drafts += self._permissions.always(decided, real_path(session.conversation.folder))
        await self._recorder.reopen(flight, session, drafts, paused.message_id)
        flight.acted = True
        if state is None:
            return
        flight.counters = flight.counters.resumed(state.iterations_used, state.iteration_budget)
        flight.watch = LoopWatch(state.failures, state.recent, nudged=state.nudged)
        flight.protocol = "constrained" if state.protocol == "constrained" else "native"
        try:
            flight.capsule = decode_capsule(await asyncio.to_thread(self._evidence.get, state.capsule))
        except (NotFoundError, EvidenceTamperedError, InvalidRecordError) as error:
            # It is built again from the records, and that it had to be is told.
            self._failures.degraded("loop_state", error)

    async def _state(self, evidence: str, message_id: str, *, allowed: bool) -> LoopState | None:
        """Return the state; None where it cannot be used and nothing of it is to run."""
        try:
            return decode_state(await asyncio.to_thread(self._evidence.get, evidence), message_id)
        except (UsageError, NotFoundError, EvidenceTamperedError, InvalidRecordError) as error:
            if not allowed:
                self._failures.degraded("loop_state", error)
                return None
            if isinstance(error, UsageError):
                raise
            raise UsageError(
                f"the state of this question cannot be read: {error.message}",
                hint="Answer no, and say once more what you want.",
            ) from error

    def answered(self, flight: Flight, session: Session) -> tuple[ConversationMessageRecord, Answered]:
        """Return the answer whose calls were asked about, and what the person decided about them.

        Raises NotFoundError when it is not there any more.
        """
        if (resumption := flight.resumption) is None:
            raise RuntimeError("a turn that resumes nothing")
        message = _asking(session, resumption.approval.calls)
        return message, Answered(
            approval_id=resumption.approval.id,
            allowed=resumption.decision == "allow",
            reason=resumption.reason,
            calls={each.call.id: each for each in resumption.approval.calls},
        )

    async def put_aside(self, session: Session, why: str = INSTEAD) -> None:
        """Refuse the question that waits in a conversation, because the person did something else; `why` tells the
        model what: INSTEAD or ENDED.
        """
        if (pending := session.pending) is None:
            return
        decided = self._approvals.decided(pending, "deny", _WORDS[why])
        drafts: list[Draft] = [self._repository.draft_decide(decided)]
        messages: list[ConversationMessageRecord] = []
        try:
            message = _asking(session, pending.calls)
        except NotFoundError:
            message = None  # what asked has left with an erasure: nothing waits for a result
        if message is not None:
            there = {each.tool_call_id for each in behind(session, message)}
            prepared = {each.call.id: each for each in pending.calls}
            for call in message.tool_calls:
                if call.id in there:
                    continue
                denied = self._acting.put_aside(pending.turn_id, call, prepared.get(call.id))
                messages.append(
                    self._rounds.message(session, call, why, turn_id=pending.turn_id, task_id=message.task_id)
                )
                denied = msgspec.structs.replace(denied, message_id=messages[-1].id)
                session.made.append((call, denied))
                drafts.append(result_draft(session, call, denied, f"approval:{pending.id}"))
                drafts.append(self._rounds.draft(messages[-1]))
        await self._rounds.write(*drafts)
        session.history += messages
        session.pending = None


def _asking(session: Session, calls: Sequence[PreparedCall]) -> ConversationMessageRecord:
    """Return the newest answer that made these calls."""
    wanted = {each.call.id for each in calls}
    for message in reversed(session.history):
        if message.role == "assistant" and message.tool_calls:
            if wanted <= {call.id for call in message.tool_calls}:
                return message
            break
    raise NotFoundError("the answer that asked is not there any more", hint="Say once more what you want.")
