"""What the person is asked, and the one answer that a question takes (tools.md, Prepare, approve, run once)."""

import asyncio
from datetime import datetime
from typing import Final

import msgspec

from rune.errors import AlreadyDecidedError, LeaseHeldError, UsageError
from rune.host.clock import Clock
from rune.host.ids import IdSource
from rune.records.approvals import Decision, PendingApprovalRecord
from rune.records.times import rfc3339
from rune.records.tools import PreparedCall
from rune.store.approvals import ApprovalRepository, StoredApproval
from rune.store.leases import LeaseBook

DAYS: Final = 30
"""So long a question can be answered; what it rests on is most likely another by then."""

_DAY_MS: Final = 24 * 60 * 60 * 1000


class Approvals:
    """Asks and takes answers. Whoever holds the conversation writes what `ask` and `decided` return."""

    def __init__(self, repository: ApprovalRepository, clock: Clock, ids: IdSource) -> None:
        self._repository = repository
        self._clock = clock
        self._ids = ids

    def ask(
        self, *, turn_id: str, conversation_id: str, calls: tuple[PreparedCall, ...], loop_state: str
    ) -> PendingApprovalRecord:
        """Return a new question about these calls, answered together; `loop_state` is an evidence id."""
        return PendingApprovalRecord(
            id=self._ids.new_id("apr"),
            turn_id=turn_id,
            conversation_id=conversation_id,
            calls=calls,
            loop_state=loop_state,
            expires_at=rfc3339(self._clock.now_ms() + DAYS * _DAY_MS),
        )

    def decided(self, record: PendingApprovalRecord, decision: Decision, reason: str = "") -> PendingApprovalRecord:
        """Return it with the owner's answer; `reason` is storable and masked. Raises AlreadyDecidedError."""
        if record.decision is not None:
            raise _already(record, "")
        return msgspec.structs.replace(record, decided_by="owner", decision=decision, reason=reason)

    async def open(self, approval_id: str) -> PendingApprovalRecord:
        """Return a question that can be answered now.

        Raises NotFoundError, AlreadyDecidedError (who answered, when, what) and UsageError where it is too late.
        """
        stored = await self._repository.stored(approval_id)
        if stored.standing == "decided":
            raise _already(stored.record, stored.closed_at)
        if stored.standing == "expired" or self._is_due(stored.record):
            raise _too_late(stored)
        return stored.record

    async def pending(self, conversation_id: str | None = None) -> list[PendingApprovalRecord]:
        """Return what can still be answered, oldest first; of one conversation when it is named."""
        return [record for record in await self._repository.pending(conversation_id) if not self._is_due(record)]

    async def expire_due(self, leases: LeaseBook) -> int:
        """Write that nobody answered in time for each question whose time is over; returns how many.

        A conversation that is held, here or by another process, is left alone: its questions can be answered no more
        either way. Raises StorageUnavailableError.
        """
        due = [record for record in await self._repository.pending() if self._is_due(record)]
        count = 0
        for conversation_id in dict.fromkeys(record.conversation_id for record in due):
            try:
                lease = await asyncio.to_thread(leases.take, conversation_id)
            except LeaseHeldError:
                continue
            try:
                count += await self._expire(conversation_id)
            finally:
                lease.release()
        return count

    async def _expire(self, conversation_id: str) -> int:
        await self._repository.adopt(conversation_id)
        try:
            # Looked up once more: before the lease was ours another process may have taken the answer.
            due = [record for record in await self._repository.pending(conversation_id) if self._is_due(record)]
            await self._repository.emit(*(self._repository.draft_expire(record) for record in due))
        finally:
            await self._repository.release(conversation_id)
        return len(due)

    def _is_due(self, record: PendingApprovalRecord) -> bool:
        return record.expires_at <= rfc3339(self._clock.now_ms())


def _already(record: PendingApprovalRecord, at: str) -> AlreadyDecidedError:
    what = "allowed" if record.decision == "allow" else "denied"
    when = f" on {_shown(at)}" if at else ""
    who = f" by {'you' if record.decided_by == 'owner' else record.decided_by}" if record.decided_by else ""
    return AlreadyDecidedError(f"{record.id} was {what}{who}{when}", hint="The first answer holds.")


def _too_late(stored: StoredApproval) -> UsageError:
    asked = f" of {_shown(stored.asked_at)}" if stored.asked_at else ""
    return UsageError(
        f"{stored.record.id}: the question{asked} expired on {_shown(stored.record.expires_at)}",
        hint="Nothing ran. Ask again in the conversation: its files have most likely changed since.",
    )


def _shown(moment: str) -> str:
    try:
        return f"{datetime.fromisoformat(moment).astimezone():%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError):
        return moment  # written by something else: as it stands
