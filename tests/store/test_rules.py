"""Rules that "always" made: they hold in their folder until somebody takes them back."""

from pathlib import Path

import msgspec
import pytest

from rune.errors import NotFoundError
from rune.records.permissions import RuleAdded, RuleRevoked
from rune.store.rules import StoredRule
from tests.fakes.ids import CountedIds
from tests.store.builders import CONVERSATION, TIME, a_result, an_id
from tests.store.spine import a_durable_store, a_memory_store, a_spine, an_event

POEMS, RIVERS = "/home/ada/poems", "/home/ada/rivers"


@pytest.fixture
def views(tmp_path: Path) -> Path:
    return tmp_path / "views-1.db"


def a_rule(number: int, folder: str = POEMS, rule: str = "edit_file(drafts/**)") -> RuleAdded:
    return RuleAdded(id=an_id("rul", number), folder=folder, rule=rule, approval_id=an_id("apr", number))


def stored(rule: RuleAdded, made_at: str = TIME) -> StoredRule:
    return StoredRule(id=rule.id, folder=rule.folder, rule=rule.rule, approval_id=rule.approval_id, made_at=made_at)


async def test_a_rule_holds_in_its_folder_and_in_no_other(views: Path) -> None:
    async with a_spine(views) as spine:
        for rule in (a_rule(2), a_rule(3, RIVERS), a_rule(1)):
            event = await spine.ledger.emit(spine.rules.draft_add(rule))
            assert (event.actor_id, event.authorization) == ("owner", "owner")
        assert await spine.rules.rules(POEMS) == [stored(a_rule(2)), stored(a_rule(1))]
        assert await spine.rules.rules(f"{POEMS}/drafts") == []
        assert await spine.rules.all() == [stored(a_rule(2)), stored(a_rule(1)), stored(a_rule(3, RIVERS))]


async def test_the_same_rule_is_stored_once(views: Path) -> None:
    async with a_spine(views) as spine:
        for _ in range(2):
            await spine.ledger.emit(spine.rules.draft_add(a_rule(1)))
        assert await spine.rules.all() == [stored(a_rule(1))]


async def test_a_rule_that_was_taken_back_holds_no_longer_and_is_not_found(views: Path) -> None:
    async with a_spine(views) as spine:
        await spine.ledger.emit_many([spine.rules.draft_add(a_rule(1)), spine.rules.draft_add(a_rule(2))])
        assert await spine.rules.get(await spine.rules.resolve("0001")) == stored(a_rule(1))
        await spine.rules.revoke(an_id("rul", 1))
        await spine.rules.revoke(an_id("rul", 1))
        assert await spine.rules.rules(POEMS) == [stored(a_rule(2))]
        for look in (spine.rules.resolve("0001"), spine.rules.get(an_id("rul", 1))):
            with pytest.raises(NotFoundError) as refused:
                await look
            assert "/permissions" in refused.value.hint


async def test_it_stays_taken_back_in_whatever_order_that_is_read(tmp_path: Path) -> None:
    steps = (("rule.added", a_rule(1)), ("rule.revoked", RuleRevoked(id=an_id("rul", 1))))
    story = [an_event(place, *step, "system") for place, step in enumerate(steps, 1)]
    states: set[str] = set()
    for name, order in (("straight", story), ("reversed", story[::-1])):
        store = a_memory_store()
        await store.append_many(order)
        async with a_spine(tmp_path / f"{name}.db", store) as spine:
            assert await spine.rules.all() == []
            rows = await spine.engine.query(
                lambda connection: connection.execute(
                    "SELECT id, folder, record, made_at, revoked FROM rules"
                ).fetchall()
            )
            states.add(repr(rows))
    assert len(states) == 1


async def test_when_it_allowed_something_last_is_known(views: Path) -> None:
    store = a_memory_store()
    used = msgspec.structs.replace(
        an_event(1, "tool.result", a_result(1), CONVERSATION, 1), authorization=f"rule:{an_id('rul', 1)}"
    )
    later = msgspec.structs.replace(
        an_event(2, "tool.result", a_result(2), CONVERSATION, 2),
        authorization=used.authorization,
        timestamp="2026-11-30T15:00:00.000Z",
    )
    owner = msgspec.structs.replace(
        an_event(3, "tool.result", a_result(3), CONVERSATION, 3),
        authorization="owner",
        timestamp="2026-11-30T16:00:00.000Z",
    )
    await store.append_many([used, later, owner])
    async with a_spine(views, store) as spine:
        await spine.ledger.emit_many([spine.rules.draft_add(a_rule(1)), spine.rules.draft_add(a_rule(2))])
        assert [rule.last_used for rule in await spine.rules.all()] == [later.timestamp, ""]


async def test_one_that_another_rune_took_back_allows_nothing_here(tmp_path: Path) -> None:
    home, ids = tmp_path / "home", CountedIds()
    store, evidence = a_durable_store(home, ids)
    other, more = a_durable_store(home, ids)
    async with (
        a_spine(home / "views.db", store, evidence=evidence, ids=ids) as here,
        a_spine(home / "others.db", other, evidence=more, ids=ids) as there,
    ):
        await here.ledger.emit(here.rules.draft_add(a_rule(1)))
        assert await there.rules.rules(POEMS) == [stored(a_rule(1))]
        await there.rules.revoke(an_id("rul", 1))
        assert await here.rules.rules(POEMS) == []
    await other.close()
    await store.close()
