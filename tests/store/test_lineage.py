"""A fork is read with what it shares: up to its message and no further, however deep it goes."""

from pathlib import Path

import msgspec
import pytest

from rune.records.messages import ConversationRecord
from rune.records.record import Record
from rune.store.ledger import Draft
from tests.store.builders import CONVERSATION, a_conversation, a_failure, a_message, a_turn, an_id, archived
from tests.store.spine import Spine, a_spine

FORK = an_id("cnv", 2)
SECOND = an_id("cnv", 3)


@pytest.fixture
def views(tmp_path: Path) -> Path:
    return tmp_path / "views-1.db"


def a_fork(identity: str, parent: str, message: int) -> ConversationRecord:
    return msgspec.structs.replace(a_conversation(identity), forked_from=parent, fork_msg_id=an_id("msg", message))


async def a_story(spine: Spine) -> None:
    """Four messages; a fork behind the second with one of its own; a fork of that behind the first."""
    for identity in (CONVERSATION, FORK, SECOND):
        await spine.ledger.adopt(identity)
    await spine.conversations.create(a_conversation())
    for number in (1, 2, 3, 4):
        await spine.conversations.append(a_message(number))
    await spine.conversations.create(a_fork(FORK, CONVERSATION, 2))
    await spine.conversations.append(a_message(5, FORK))
    await spine.conversations.create(a_fork(SECOND, FORK, 1))
    await spine.conversations.append(a_message(6, SECOND))


async def test_a_fork_has_what_was_said_up_to_its_message_and_then_its_own(views: Path) -> None:
    async with a_spine(views) as spine:
        await a_story(spine)
        assert await said(spine, CONVERSATION) == [1, 2, 3, 4]
        assert await said(spine, FORK) == [1, 2, 5]
        assert await said(spine, SECOND) == [1, 6]
        window = await spine.conversations.window(FORK, 2)
        assert [number(message.id) for message in window] == [2, 5]
        assert (await spine.conversations.get(FORK)).messages == 3


async def test_a_fork_of_a_fork_shares_through_both(views: Path) -> None:
    async with a_spine(views) as spine:
        await a_story(spine)
        third = an_id("cnv", 4)
        await spine.ledger.adopt(third)
        await spine.conversations.create(a_fork(third, FORK, 5))
        await spine.conversations.append(a_message(7, third))
        assert await said(spine, third) == [1, 2, 5, 7]


async def test_what_had_left_the_prompt_before_the_fork_has_left_it_there_too_and_no_more(views: Path) -> None:
    async with a_spine(views) as spine:
        await spine.ledger.adopt(CONVERSATION)
        await spine.ledger.adopt(FORK)
        await spine.conversations.create(a_conversation())
        for number_ in (1, 2):
            await spine.conversations.append(a_message(number_))
        await spine.conversations.change(archived(an_id("msg", 1)))
        await spine.conversations.append(a_message(3))
        await spine.conversations.create(a_fork(FORK, CONVERSATION, 3))
        await spine.conversations.change(archived(an_id("msg", 2)))
        assert await spine.conversations.archived_ids(FORK) == {an_id("msg", 1)}
        assert len(await spine.conversations.archived_ids(CONVERSATION)) == 2


async def test_turns_of_the_shared_part_and_why_they_failed_are_the_forks_too(views: Path) -> None:
    async with a_spine(views) as spine:
        await a_story(spine)
        for number_ in (1, 2):
            await emit(spine, "turn.started", a_turn(number_))
        await emit(spine, "turn.failed", a_failure(1))
        third = an_id("cnv", 4)
        await spine.ledger.adopt(third)
        await spine.conversations.append(a_message(8))
        await spine.conversations.create(a_fork(third, CONVERSATION, 8))
        await emit(spine, "turn.started", a_turn(3))
        assert [turn.id for turn in await spine.turns.turns(third)] == [an_id("trn", 1), an_id("trn", 2)]
        assert set(await spine.turns.failures(third)) == {an_id("trn", 1)}


async def test_forks_that_name_each_other_are_read_to_an_end(views: Path) -> None:
    async with a_spine(views) as spine:
        await spine.ledger.adopt(CONVERSATION)
        await spine.ledger.adopt(FORK)
        await spine.conversations.create(a_fork(CONVERSATION, FORK, 2))
        await spine.conversations.append(a_message(1))
        await spine.conversations.create(a_fork(FORK, CONVERSATION, 1))
        await spine.conversations.append(a_message(2, FORK))
        assert await said(spine, CONVERSATION) == [2, 1]
        assert await said(spine, FORK) == [1, 2]


async def emit(spine: Spine, event_type: str, body: Record) -> None:
    await spine.ledger.emit(Draft(event_type=event_type, body=body, partition=CONVERSATION))


async def said(spine: Spine, conversation_id: str) -> list[int]:
    return [number(message.id) for message in await spine.conversations.messages(conversation_id)]


def number(message_id: str) -> int:
    return int(message_id.partition("_")[2])
