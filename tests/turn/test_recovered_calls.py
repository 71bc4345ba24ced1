"""A call that a kill cut off between its intent and its result: it may have run, and nothing runs it again."""

import asyncio
import json
from pathlib import Path

import pytest

from rune.host.clock import SystemClock
from rune.host.ids import UlidSource
from rune.models.scripted import says
from rune.records.events import Event
from rune.records.tools import PreparedCall, ToolCall, ToolResult
from rune.store.durable_store import DurableEventStore
from rune.store.evidence_store import EvidenceStore
from tests.turn.rig import Rig, rig, until
from tests.turn.test_operator import copy_home

CLOCK = SystemClock()
IDS = UlidSource(CLOCK)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


async def test_a_call_without_a_result_is_ended_as_unknown_once(home: Path) -> None:
    killed, turn_id, conversation_id = await a_home_killed_in_mid_turn(home)
    await store_calls(killed, turn_id, conversation_id)
    async with rig(killed, [says("again")]) as it:
        assert results(it, turn_id) == {"call_1": "ok", "call_2": "unknown"}
        facts = it.names()
        assert facts.index("tool.result") < facts.index("turn.finished")
    async with rig(killed, []) as later:
        assert later.names() == facts


def results(it: Rig, turn_id: str) -> dict[str, str]:
    bodies = [json.loads(bytes(fact.body)) for fact in it.facts() if fact.event_type == "tool.result"]
    assert {body["turn_id"] for body in bodies} == {turn_id}
    assert len(bodies) == 2
    return {body["id"]: body["outcome"] for body in bodies}


async def a_home_killed_in_mid_turn(home: Path) -> tuple[Path, str, str]:
    async with rig(home, [[asyncio.Event()]]) as dying:
        watching = asyncio.create_task(dying.turn())
        await until(lambda: bool(dying.model.requests))
        started = next(fact for fact in dying.facts() if fact.event_type == "turn.started")
        snapshot = home.parent / "after-kill"
        copy_home(home, snapshot)
        dying.operator.cancel()
        await watching
    return snapshot, json.loads(bytes(started.body))["id"], started.partition_key


async def store_calls(home: Path, turn_id: str, conversation_id: str) -> None:
    """Append what a round of two calls had written when it was killed in the second."""
    store = DurableEventStore.open(
        home / "journal",
        clock=CLOCK,
        ids=IDS,
        device_id=IDS.new_id("dev"),
        evidence=EvidenceStore(home / "evidence", CLOCK),
    )
    last = max(event.pseq for _, event in store.replay(conversation_id))
    done = ToolResult(
        id="call_1",
        turn_id=turn_id,
        tool="run",
        digest="sha256:" + "ab" * 32,
        outcome="ok",
        summary="listed",
        output=None,
        milliseconds=3,
        confinement="none",
        exit_code=0,
        files=(),
    )
    facts = (
        ("tool.intent", intent("call_1", turn_id)),
        ("tool.result", done),
        ("tool.intent", intent("call_2", turn_id)),
    )
    for place, (event_type, body) in enumerate(facts, last + 1):
        await store.append(
            Event(
                event_id=IDS.new_id("evt"),
                event_type=event_type,
                partition_key=conversation_id,
                actor_id="rune",
                timestamp="2026-11-30T14:00:00.123Z",
                body=body,
                pseq=place,
            )
        )
    await store.close()


def intent(call_id: str, turn_id: str) -> PreparedCall:
    return PreparedCall(
        id=call_id,
        turn_id=turn_id,
        call=ToolCall(id=call_id, name="run", arguments={"command": "make"}),
        effect="runs make",
        detail="",
        preconditions={},
        digest="sha256:" + "ab" * 32,
        confinement="none",
        why="",
        rule="",
    )
