"""What was said comes back whole, in order, from whatever slot it lies in."""

from pathlib import Path

import pytest

from rune.errors import IdentityCollisionError, NotFoundError
from rune.records.events import ThinkingSelected
from rune.records.messages import Channel
from rune.records.permissions import PermissionChanged
from rune.store.conversations import Conversation
from tests.store.builders import (
    CONVERSATION,
    a_conversation,
    a_full_answer,
    a_message,
    an_id,
    archived,
    hidden,
    model_selected,
    prefix_changed,
    renamed,
)
from tests.store.spine import a_memory_store, a_spine, events, open_views


@pytest.fixture
def views(tmp_path: Path) -> Path:
    return tmp_path / "views-1.db"


async def test_messages_come_back_oldest_first_with_every_field(views: Path) -> None:
    async with a_spine(views) as spine:
        await spine.ledger.adopt(CONVERSATION)
        await spine.conversations.create(a_conversation())
        said = [a_message(9), a_full_answer(3), a_message(5)]
        for message in said:
            await spine.conversations.append(message)
        assert await spine.conversations.messages(CONVERSATION) == said
        assert await spine.conversations.window(CONVERSATION, 2) == said[1:]
        assert await spine.conversations.message(an_id("msg", 3)) == said[1]
        assert await spine.conversations.messages_for_task(an_id("tsk", 1)) == said


async def test_a_message_appended_twice_is_stored_once(views: Path) -> None:
    async with a_spine(views) as spine:
        await spine.ledger.adopt(CONVERSATION)
        await spine.conversations.create(a_conversation())
        await spine.conversations.append(a_message(1))
        spine.clock.advance(60)
        await spine.conversations.append(a_message(1))
        await spine.conversations.append(a_message(2))
        places = [envelope.pseq for _, envelope in spine.store.replay(CONVERSATION)]
        assert places == [1, 2, 3]
        assert len(await spine.conversations.messages(CONVERSATION)) == 2


async def test_another_message_under_a_used_id_is_refused(views: Path) -> None:
    async with a_spine(views) as spine:
        await spine.ledger.adopt(CONVERSATION)
        await spine.conversations.append(a_message(1))
        with pytest.raises(IdentityCollisionError):
            await spine.conversations.append(a_message(1, content="Name four"))
        await spine.conversations.append(a_message(2))
        assert [envelope.pseq for _, envelope in spine.store.replay(CONVERSATION)] == [1, 2]


def numbers_of(found: list[Conversation]) -> list[int]:
    return [int(each.record.id[-1]) for each in found]


async def test_conversations_are_listed_by_folder_and_channel_the_last_active_first(views: Path) -> None:
    async with a_spine(views) as spine:
        made: list[tuple[int, str, Channel]] = [
            (1, "/a", "task"),
            (2, "/a", "chat"),
            (3, "/b", "task"),
            (4, "/a", "task"),
        ]
        for number, folder, channel in made:
            spine.clock.advance(1)
            await spine.ledger.adopt(an_id("cnv", number))
            record = a_conversation(an_id("cnv", number), folder=folder, channel=channel)
            await spine.conversations.create(record)
        spine.clock.advance(1)
        await spine.conversations.append(a_message(1, an_id("cnv", 1)))

        repository = spine.conversations
        assert numbers_of(await repository.conversations()) == [1, 4, 3, 2]
        assert numbers_of(await repository.conversations("/a")) == [1, 4, 2]
        assert numbers_of(await repository.conversations("/a", "task")) == [1, 4]
        assert numbers_of(await repository.conversations(limit=2)) == [1, 4]
        assert numbers_of(await repository.conversations(exclude={an_id("cnv", 1)})) == [4, 3, 2]
        latest = await spine.conversations.latest("/b")
        assert latest is not None
        assert (latest.messages, latest.last_active) == (0, "2026-11-30T14:00:03.000Z")
        assert await spine.conversations.latest("/c") is None


async def test_title_model_prefix_and_listing_are_those_of_the_last_change(views: Path) -> None:
    async with a_spine(views) as spine:
        await spine.ledger.adopt(CONVERSATION)
        await spine.conversations.create(a_conversation(prefix="sha256:1"))
        assert not (await spine.conversations.get(CONVERSATION)).renamed
        await spine.conversations.change(renamed("Rivers of Europe"))
        await spine.conversations.change(model_selected("qwen3"), actor_id="owner")
        await spine.conversations.change(prefix_changed("sha256:2"))
        await spine.conversations.change(archived(an_id("msg", 1), an_id("msg", 2)))
        await spine.conversations.change(hidden())
        found = await spine.conversations.get(CONVERSATION)
        assert found.record == a_conversation(title="Rivers of Europe", model="qwen3", prefix="sha256:2")
        assert found.renamed
        assert found.hidden
        assert await spine.conversations.model(CONVERSATION) == "qwen3"
        assert await spine.conversations.prefix_id(CONVERSATION) == "sha256:2"
        assert await spine.conversations.archived_ids(CONVERSATION) == {an_id("msg", 1), an_id("msg", 2)}
        assert await spine.conversations.conversations() == []
        assert len(await spine.conversations.conversations(with_hidden=True)) == 1
        await spine.conversations.change(hidden(hidden=False))
        assert len(await spine.conversations.conversations()) == 1


async def test_an_id_is_found_by_its_beginning_or_end_if_only_one_fits(views: Path) -> None:
    async with a_spine(views) as spine:
        for tail in ("a1b2", "a1b3"):
            await spine.ledger.adopt(an_id("cnv", tail))
            await spine.conversations.create(a_conversation(an_id("cnv", tail)))
        wanted = an_id("cnv", "a1b2")
        for text in (wanted, "b2", "A1B2", " cnv_" + wanted[4:], wanted[4:]):
            assert await spine.conversations.resolve(text) == wanted
        with pytest.raises(NotFoundError, match=f"could be {an_id('cnv', 'a1b3')}, {wanted}"):
            await spine.conversations.resolve("00")
        for text in ("zz", "", "*", "%", "a1?2", "[b]2", "b2'", "cnv_"):
            with pytest.raises(NotFoundError):
                await spine.conversations.resolve(text)
        with pytest.raises(NotFoundError):
            await spine.conversations.get(an_id("cnv", "zz"))


async def test_only_what_a_conversation_consists_of_can_be_appended(views: Path) -> None:
    async with a_spine(views) as spine:
        with pytest.raises(ValueError, match="'system'"):
            spine.conversations.draft_append(a_message(1, role="system"))


async def test_the_order_in_which_slots_are_read_makes_no_difference(tmp_path: Path) -> None:
    story = events(
        ("conversation.created", a_conversation(prefix="sha256:1")),
        ("user.message", a_message(1)),
        ("conversation.renamed", renamed("One")),
        ("model.selected", model_selected("qwen3")),
        ("thinking.selected", ThinkingSelected(conversation_id=CONVERSATION, thinking="low", previous="auto")),
        ("thinking.selected", ThinkingSelected(conversation_id=CONVERSATION, thinking="high", previous="low")),
        ("permission.changed", PermissionChanged(conversation_id=CONVERSATION, mode="edits", previous="ask")),
        ("permission.changed", PermissionChanged(conversation_id=CONVERSATION, mode="read", previous="edits")),
        ("conversation.renamed", renamed("Two")),
        ("conversation.hidden", hidden()),
        ("context.prefix_changed", prefix_changed("sha256:2")),
        ("conversation.hidden", hidden(hidden=False)),
        partition=CONVERSATION,
    )
    found: list[object] = []
    for name, order in (("straight", story), ("reversed", story[::-1])):
        store = a_memory_store()
        await store.append_many(order)
        engine = open_views(tmp_path / f"{name}.db", store)
        async with a_spine(tmp_path / f"{name}.db", store) as spine:
            conversation = await spine.conversations.get(CONVERSATION)
            facts = (conversation.hidden, conversation.renamed, conversation.messages)
            found.append((conversation.record, *facts, conversation.thinking, conversation.permission))
        engine.close()
    assert found[0] == found[1]
    assert found[0] == (a_conversation(title="Two", model="qwen3", prefix="sha256:2"), False, True, 1, "high", "read")
