"""Branching off, renaming and hiding: facts about conversations, whoever has them open."""

import json
from pathlib import Path

import pytest

from rune.errors import LeaseHeldError, NotFoundError, UsageError
from rune.models.scripted import says
from rune.turn.request import TurnRequest
from tests.turn.rig import closing, rig


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


async def test_a_fork_goes_on_from_its_message_and_the_original_stays(home: Path) -> None:
    async with rig(home, [says("the Danube"), says("the Rhine"), says("the Po")]) as it:
        first = await it.say("name a river")
        await it.say("another one", first.conversation_id)
        said = await it.services.surface.views.transcript(first.conversation_id)
        fork = await it.operator.fork(first.conversation_id, said[1].id)
        assert (fork.forked_from, fork.fork_msg_id) == (first.conversation_id, said[1].id)
        await it.say("in Italy", fork.id)
        sent = [message["content"] for message in json.loads(it.model.requests[2].messages)]
        assert sent[1:] == ["name a river", "the Danube", "in Italy"]
        assert await it.services.surface.views.transcript(first.conversation_id) == said
        # The beginning is byte for byte the same: what a server has cached of it is good for both.
        assert json.loads(it.model.requests[2].messages)[0] == json.loads(it.model.requests[0].messages)[0]


async def test_a_fork_can_be_taken_of_what_another_process_holds_and_goes_on_after_a_restart(home: Path) -> None:
    async with rig(home, [says("the Danube")]) as holder:
        held = await holder.say("name a river")
        async with rig(home, []) as second:
            fork = await second.operator.fork(held.conversation_id)
    async with rig(home, [says("the Rhine")]) as third:
        closed = closing([event async for event in third.operator.send_task(_request(third.folder, fork.id))])
        assert closed.conversation_id == fork.id
        sent = [message["content"] for message in json.loads(third.model.requests[0].messages)]
        assert sent[1:] == ["name a river", "the Danube", "go on"]
        prompts = await third.services.surface.views.prompts(await third.services.surface.views.trace(closed.trace_id))
        assert all(prompt.matches for prompt in prompts)


async def test_a_fork_needs_something_that_was_said_there(home: Path) -> None:
    async with rig(home, [says("x"), says("y")]) as it:
        empty = await it.operator.new(folder=str(it.folder))
        with pytest.raises(UsageError):
            await it.operator.fork(empty.id)
        one, other = await it.say("one"), await it.say("other")
        stranger = (await it.services.surface.views.transcript(other.conversation_id))[0].id
        with pytest.raises(NotFoundError):
            await it.operator.fork(one.conversation_id, stranger)


async def test_a_title_is_one_line_and_kept(home: Path) -> None:
    async with rig(home, [says("x")]) as it:
        closed = await it.say()
        assert await it.operator.rename(closed.conversation_id, "  \n Rivers\nof Europe ") == "Rivers"
        with pytest.raises(UsageError):
            await it.operator.rename(closed.conversation_id, " \n ")
        with pytest.raises(NotFoundError):
            await it.operator.rename("cnv_00000000000000000000000000", "x")
    async with rig(home, []) as again:
        assert (await again.services.surface.views.conversation(closed.conversation_id)).title == "Rivers"
        await again.operator.rename(closed.conversation_id, "Streams")
        assert not again.operator.holds(closed.conversation_id)


async def test_what_another_process_has_open_is_not_renamed_or_hidden(home: Path) -> None:
    async with rig(home, [says("x")]) as holder:
        closed = await holder.say()
        async with rig(home, []) as second:
            with pytest.raises(LeaseHeldError):
                await second.operator.rename(closed.conversation_id, "mine")
            with pytest.raises(LeaseHeldError):
                await second.operator.hide(closed.conversation_id, hidden=True)


async def test_what_is_hidden_is_not_listed_and_can_be_had_back(home: Path) -> None:
    async with rig(home, [says("x")]) as it:
        closed = await it.say()
        views = it.services.surface.views
        await it.operator.hide(closed.conversation_id, hidden=True)
        assert list(await views.conversations()) == []
        await it.operator.hide(closed.conversation_id, hidden=False)
        assert [row.record.id for row in await views.conversations()] == [closed.conversation_id]


def _request(folder: Path, conversation_id: str) -> TurnRequest:
    return TurnRequest(text="go on", folder=str(folder), conversation_id=conversation_id)
