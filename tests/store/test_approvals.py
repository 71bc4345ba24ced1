"""Questions that wait for the person: asked, answered once, expired, and told apart in whatever order they are read."""

from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import pytest

from rune.errors import IdentityCollisionError, NotFoundError
from rune.records.approvals import PendingApprovalRecord
from tests.fakes.ids import CountedIds
from tests.store.builders import CONVERSATION, TIME, an_approval, an_id
from tests.store.spine import Spine, a_durable_store, a_memory_store, a_spine, events, hashes

OTHER = an_id("cnv", 2)


@pytest.fixture
def views(tmp_path: Path) -> Path:
    return tmp_path / "views-1.db"


async def ask(spine: Spine, *records: PendingApprovalRecord) -> None:
    for record in records:
        await spine.ledger.adopt(record.conversation_id)
        await spine.ledger.emit(spine.approvals.draft_request(record))


async def test_what_was_asked_waits_oldest_first_over_all_conversations(views: Path) -> None:
    async with a_spine(views) as spine:
        first, second, third = an_approval(1, OTHER), an_approval(2), an_approval(3, OTHER)
        await ask(spine, second, first, third)
        assert await spine.approvals.pending() == [first, second, third]
        assert await spine.approvals.pending(OTHER) == [first, third]
        assert await spine.approvals.pending(an_id("cnv", 9)) == []


async def test_an_answer_ends_the_wait_and_says_who_when_and_what(views: Path) -> None:
    async with a_spine(views) as spine:
        await ask(spine, an_approval(1), an_approval(2))
        spine.clock.advance(60)
        answered = an_approval(1, decision="allow")
        event = await spine.ledger.emit(spine.approvals.draft_decide(answered))
        assert (event.actor_id, event.authorization) == ("owner", "owner")
        assert await spine.approvals.pending() == [an_approval(2)]
        assert await spine.approvals.get(answered.id) == answered
        stored = await spine.approvals.stored(answered.id)
        assert (stored.standing, stored.asked_at, stored.closed_at) == ("decided", TIME, "2026-11-30T14:01:00.000Z")


async def test_a_second_other_answer_is_refused_and_the_same_one_is_stored_once(views: Path) -> None:
    async with a_spine(views) as spine:
        await ask(spine, an_approval(1))
        allowed = an_approval(1, decision="allow")
        first = await spine.ledger.emit(spine.approvals.draft_decide(allowed))
        assert await spine.ledger.emit(spine.approvals.draft_decide(allowed)) == first
        for late in (
            spine.approvals.draft_decide(an_approval(1, decision="deny")),
            spine.approvals.draft_expire(an_approval(1)),
        ):
            with pytest.raises(IdentityCollisionError):
                await spine.ledger.emit(late)
        assert await spine.approvals.get(allowed.id) == allowed


async def test_what_expired_waits_no_longer_and_takes_no_answer(views: Path) -> None:
    async with a_spine(views) as spine:
        await ask(spine, an_approval(1))
        await spine.ledger.emit(spine.approvals.draft_expire(an_approval(1)))
        assert await spine.approvals.pending() == []
        assert (await spine.approvals.stored(an_id("apr", 1))).standing == "expired"
        with pytest.raises(IdentityCollisionError):
            await spine.ledger.emit(spine.approvals.draft_decide(an_approval(1, decision="allow")))


async def test_one_without_an_answer_cannot_be_told_as_answered(views: Path) -> None:
    async with a_spine(views) as spine:
        with pytest.raises(ValueError, match="has no answer"):
            spine.approvals.draft_decide(an_approval(1))


async def test_a_part_of_the_id_will_do_and_an_unknown_one_is_told(views: Path) -> None:
    async with a_spine(views) as spine:
        await ask(spine, an_approval(7))
        assert await spine.approvals.resolve("0007") == an_id("apr", 7)
        for look in (spine.approvals.resolve("9999"), spine.approvals.get(an_id("apr", 9))):
            with pytest.raises(NotFoundError) as refused:
                await look
            assert "rune approve" in refused.value.hint


STEPS = (
    ("approval.requested", an_approval(1)),
    ("approval.decided", an_approval(1, decision="deny")),
    ("approval.decided", an_approval(1, decision="allow")),
    ("approval.expired", an_approval(1)),
)


@pytest.mark.parametrize("order", permutations(range(4)), ids=str)
async def test_the_first_answer_holds_in_whatever_order_they_are_read(views: Path, order: Sequence[int]) -> None:
    store = a_memory_store()
    story = events(*STEPS, partition=CONVERSATION)
    await store.append_many([story[place] for place in order])
    async with a_spine(views, store) as spine:
        assert await spine.approvals.pending() == []
        assert (await spine.approvals.get(an_id("apr", 1))).decision == "deny"


async def test_another_rune_sees_the_answer_at_once(tmp_path: Path) -> None:
    home, ids = tmp_path / "home", CountedIds()
    store, evidence = a_durable_store(home, ids)
    async with a_spine(home / "views.db", store, evidence=evidence, ids=ids) as here:
        await ask(here, an_approval(1))
        other, more = a_durable_store(home, ids)
        async with a_spine(home / "others.db", other, evidence=more, ids=ids) as there:
            assert await there.approvals.pending() == [an_approval(1)]
            await here.ledger.emit(here.approvals.draft_decide(an_approval(1, decision="allow")))
            assert await there.approvals.pending() == []
            before = hashes(there.engine)
            there.engine.rebuild()
            assert hashes(there.engine) == before
        await other.close()
    await store.close()
