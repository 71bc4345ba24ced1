"""A question takes one answer, for a while."""

import asyncio
from pathlib import Path

import pytest

from rune.errors import AlreadyDecidedError, NotFoundError, UsageError
from rune.orchestration.approvals import DAYS, Approvals
from rune.records.approvals import PendingApprovalRecord
from rune.store.leases import LeaseBook
from tests.fakes.ids import CountedIds
from tests.store.builders import CONVERSATION, DIGEST, a_prepared_call, an_id
from tests.store.spine import Spine, a_durable_store, a_spine

OTHER = an_id("cnv", 2)
DAY = 24 * 60 * 60


@pytest.fixture
def views(tmp_path: Path) -> Path:
    return tmp_path / "views-1.db"


def approvals_of(spine: Spine) -> Approvals:
    return Approvals(spine.approvals, spine.clock, spine.ids)


async def asked(spine: Spine, conversation_id: str = CONVERSATION) -> PendingApprovalRecord:
    record = approvals_of(spine).ask(
        turn_id=an_id("trn", 1), conversation_id=conversation_id, calls=(a_prepared_call(1),), loop_state=DIGEST
    )
    await spine.ledger.adopt(conversation_id)
    await spine.ledger.emit(spine.approvals.draft_request(record))
    return record


async def test_a_question_is_open_for_thirty_days(views: Path) -> None:
    async with a_spine(views) as spine:
        record = await asked(spine)
        assert record.id.startswith("apr_")
        assert (record.calls, record.loop_state, record.decision) == ((a_prepared_call(1),), DIGEST, None)
        spine.clock.advance(DAYS * DAY - 1)
        assert await approvals_of(spine).open(record.id) == record
        assert await approvals_of(spine).pending() == [record]


async def test_then_it_takes_no_answer_also_where_nobody_wrote_that(views: Path) -> None:
    async with a_spine(views) as spine:
        record = await asked(spine)
        spine.clock.advance(DAYS * DAY)
        assert await approvals_of(spine).pending() == []
        with pytest.raises(UsageError, match="expired on 2026-12-30") as refused:
            await approvals_of(spine).open(record.id)
        assert "Nothing ran" in refused.value.hint


async def test_the_first_answer_holds_and_the_second_is_told_whose_it_was(views: Path) -> None:
    async with a_spine(views) as spine:
        approvals = approvals_of(spine)
        record = await asked(spine)
        denied = approvals.decided(record, "deny", "use the other file")
        assert (denied.decided_by, denied.decision, denied.reason) == ("owner", "deny", "use the other file")
        await spine.ledger.emit(spine.approvals.draft_decide(denied))
        with pytest.raises(AlreadyDecidedError, match="was denied by you on 2026-11-30") as refused:
            await approvals.open(record.id)
        assert refused.value.hint == "The first answer holds."
        with pytest.raises(AlreadyDecidedError):
            approvals.decided(denied, "allow")


async def test_what_nobody_asked_is_not_found(views: Path) -> None:
    async with a_spine(views) as spine:
        with pytest.raises(NotFoundError):
            await approvals_of(spine).open(an_id("apr", 9))


async def test_what_is_due_is_ended_once_and_what_somebody_holds_is_left_alone(tmp_path: Path) -> None:
    ids = CountedIds()
    store, evidence = a_durable_store(tmp_path, ids)
    async with a_spine(tmp_path / "views.db", store, evidence=evidence, ids=ids) as spine:
        leases = LeaseBook(tmp_path / "leases", spine.clock, pause=lambda _: None)
        due, held = await asked(spine), await asked(spine, OTHER)
        spine.clock.advance(DAYS * DAY)
        young = await asked(spine)
        await spine.ledger.release(CONVERSATION)
        approvals = approvals_of(spine)
        with await asyncio.to_thread(leases.take, OTHER):
            assert await approvals.expire_due(leases) == 1
            assert await approvals.expire_due(leases) == 0
        assert (await spine.approvals.stored(due.id)).standing == "expired"
        assert await spine.approvals.pending() == [held, young]
        with pytest.raises(UsageError):
            await approvals.open(due.id)
        leases.take(CONVERSATION).release()
    await store.close()
