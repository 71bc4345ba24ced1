"""Calls that were about to act, and what came of them."""

from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import msgspec
import pytest

from rune.errors import NotFoundError
from rune.records.events import Event
from rune.store.intents import StoredResult
from tests.store.builders import (
    CONVERSATION,
    TIME,
    a_conversation,
    a_message,
    a_prepared_call,
    a_result,
    an_id,
)
from tests.store.spine import a_memory_store, a_spine, events

FORK = an_id("cnv", 2)


@pytest.fixture
def views(tmp_path: Path) -> Path:
    return tmp_path / "views-1.db"


def allowed(event: Event, authorization: str) -> Event:
    return msgspec.structs.replace(event, authorization=authorization)


async def test_what_calls_came_to_is_told_in_the_order_in_which_they_ended(views: Path) -> None:
    intent, read, changed, other = events(
        ("tool.intent", a_prepared_call(1)),
        ("tool.result", a_result(2)),
        ("tool.result", a_result(1)),
        ("tool.intent", a_prepared_call(3)),
        partition=CONVERSATION,
    )
    store = a_memory_store()
    await store.append_many([intent, read, allowed(changed, "rule:rul_1"), other])
    async with a_spine(views, store) as spine:
        edited = StoredResult(prepared=a_prepared_call(1), result=a_result(1), authorization="rule:rul_1", at=TIME)
        looked = StoredResult(prepared=None, result=a_result(2), authorization=None, at=TIME)
        assert await spine.intents.results(CONVERSATION) == [looked, edited]
        assert await spine.intents.result(an_id("cal", 1)) == edited
        assert await spine.intents.unanswered(an_id("trn", 1)) == [a_prepared_call(3)]
        assert await spine.intents.results(FORK) == []
        for missing in (3, 9):
            with pytest.raises(NotFoundError):
                await spine.intents.result(an_id("cal", missing))


@pytest.mark.parametrize("order", permutations(range(3)), ids=str)
async def test_the_first_result_holds_in_whatever_order_they_are_read(views: Path, order: Sequence[int]) -> None:
    story = events(
        ("tool.intent", a_prepared_call(1)),
        ("tool.result", a_result(1, outcome="unknown")),
        ("tool.result", a_result(1)),
        partition=CONVERSATION,
    )
    store = a_memory_store()
    await store.append_many([story[place] for place in order])
    async with a_spine(views, store) as spine:
        (found,) = await spine.intents.results(CONVERSATION)
        assert (found.result.outcome, found.prepared) == ("unknown", a_prepared_call(1))
        assert await spine.intents.of_unknown_outcome(CONVERSATION) == [a_prepared_call(1)]
        assert await spine.intents.unanswered(an_id("trn", 1)) == []


async def test_a_call_that_ended_in_two_turns_is_the_newer_one(views: Path) -> None:
    store = a_memory_store()
    await store.append_many(
        events(
            ("tool.result", a_result(1, outcome="denied")),
            ("tool.result", a_result(1, turn=2)),
            partition=CONVERSATION,
        )
    )
    async with a_spine(views, store) as spine:
        assert len(await spine.intents.results(CONVERSATION)) == 2
        assert (await spine.intents.result(an_id("cal", 1))).result.turn_id == an_id("trn", 2)


async def test_a_fork_has_the_calls_of_the_part_that_it_shares_and_its_own(views: Path) -> None:
    store = a_memory_store()
    first = events(
        ("conversation.created", a_conversation()),
        ("tool.result", a_result(1)),
        ("user.message", a_message(1)),
        ("tool.result", a_result(2)),
        partition=CONVERSATION,
    )
    fork = msgspec.structs.replace(a_conversation(FORK), forked_from=CONVERSATION, fork_msg_id=an_id("msg", 1))
    second = events(("conversation.forked", fork), ("tool.result", a_result(3)), partition=FORK, prefix="9")
    await store.append_many([*first, *second])
    async with a_spine(views, store) as spine:
        assert [found.result.id for found in await spine.intents.results(FORK)] == [an_id("cal", 1), an_id("cal", 3)]
        both = [found.result.id for found in await spine.intents.results(CONVERSATION)]
        assert both == [an_id("cal", 1), an_id("cal", 2)]
