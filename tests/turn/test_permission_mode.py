"""What tools may do without asking: chosen with a message or between them, kept by its conversation."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from rune.models.scripted import ScriptedTransport, says
from rune.records.permissions import PermissionMode
from rune.turn.events import TurnOpened
from tests.turn.rig import Rig, rig, until


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def model() -> ScriptedTransport:
    return ScriptedTransport(lambda _: says("yes"))


async def say(it: Rig, conversation_id: str | None = None, *, permission: PermissionMode | None = None) -> TurnOpened:
    """Send a message; returns how its turn was opened."""
    request = msgspec.structs.replace(it.request("hi", conversation_id), permission=permission)
    opened, *_ = [event async for event in it.operator.send_task(request)]
    assert isinstance(opened, TurnOpened)
    return opened


def configure(home: Path, mode: PermissionMode) -> None:
    home.mkdir(exist_ok=True)
    (home / "config.yaml").write_text(f"permissions:\n  mode: {mode}\n")


async def test_everything_asks_until_something_else_is_chosen(home: Path) -> None:
    async with rig(home, [], model=model()) as it:
        opened = await say(it)
        assert opened.permission == "ask"
        assert await it.operator.permission(opened.conversation_id) == "ask"
        assert "permission.changed" not in it.names()


async def test_what_is_chosen_with_the_first_message_holds_for_the_conversation(home: Path) -> None:
    async with rig(home, [], model=model()) as it:
        first = await say(it, permission="edits")
        again = await say(it, first.conversation_id)
        assert [first.permission, again.permission] == ["edits", "edits"]
        assert it.names().count("permission.changed") == 1
        assert (await say(it)).permission == "ask"


async def test_a_conversation_begins_as_configured_and_keeps_that(home: Path) -> None:
    configure(home, "edits")
    async with rig(home, [], model=model()) as it:
        first = await say(it)
        assert first.permission == "edits"
    configure(home, "ask")
    async with rig(home, [], model=model()) as it:
        assert (await say(it, first.conversation_id)).permission == "edits"
        assert (await say(it)).permission == "ask"


async def test_it_holds_after_a_restart_and_in_a_fork_of_its_own(home: Path) -> None:
    async with rig(home, [], model=model()) as it:
        first = await say(it, permission="read")
    async with rig(home, [], model=model()) as it:
        assert await it.operator.permission(first.conversation_id) == "read"
        fork = await it.operator.fork(first.conversation_id)
        assert (await say(it, fork.id)).permission == "read"
        await it.operator.choose_permission(fork.id, "ask")
        assert await it.operator.permission(fork.id) == "ask"
        assert await it.operator.permission(first.conversation_id) == "read"


async def test_a_choice_between_messages_is_one_fact_of_the_owners(home: Path) -> None:
    async with rig(home, [], model=model()) as it:
        first = await say(it)
        await it.operator.choose_permission(first.conversation_id, "edits")
        await it.operator.choose_permission(first.conversation_id, "edits")
        await it.operator.choose_permission(None, "read")
        chosen = [event for event in it.facts() if event.event_type == "permission.changed"]
        assert [event.actor_id for event in chosen] == ["owner"]
        assert (await say(it, first.conversation_id)).permission == "edits"


async def test_a_choice_while_a_turn_runs_is_kept(home: Path) -> None:
    gate = asyncio.Event()
    slow = ScriptedTransport([[gate, *says("yes")], says("no")])
    async with rig(home, [], model=slow) as it:
        events = it.operator.send_task(it.request())
        opened = await anext(events)
        assert isinstance(opened, TurnOpened)
        await until(lambda: bool(slow.requests))
        await it.operator.choose_permission(opened.conversation_id, "read")
        assert await it.operator.permission(opened.conversation_id) == "read"
        gate.set()
        async for _ in events:
            pass
        assert (await say(it, opened.conversation_id)).permission == "read"
