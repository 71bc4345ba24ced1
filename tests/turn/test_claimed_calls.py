"""Every call of a model is claimed by the trace of a turn or of a side call (context.md, Two kinds of model call)."""

import asyncio
import hashlib
from collections import Counter
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from rune.bootstrap.erasing import open_erasure
from rune.models.scripted import ScriptedTransport, says
from rune.models.side_call import SideRequest
from rune.models.side_messages import SideMessage
from rune.records.models import ModelScoreRecord
from rune.records.traces import InferenceTraceRecord
from rune.turn.events import TurnClosed
from tests.store.erasing.erasing_homes import files_with
from tests.turn.rig import Rig, rig

TITLE = SideRequest(task="probe", messages=(SideMessage(role="user", content="name this talk"),), max_tokens=32)


async def traces_of(running: Rig) -> list[InferenceTraceRecord]:
    return list(await running.services.surface.views.traces(limit=1000))


def claims(traces: list[InferenceTraceRecord]) -> Counter[tuple[str, int]]:
    return Counter((recipe.messages_hash, trace.num_ctx) for trace in traces for recipe in trace.requests)


def calls(model: ScriptedTransport) -> Counter[tuple[str, int]]:
    return Counter(
        (f"sha256:{hashlib.sha256(request.messages).hexdigest()}", request.options.num_ctx)
        for request in model.requests
    )


async def side_call(running: Rig, closed: TurnClosed | None = None) -> None:
    (info,) = await running.model.models()
    num_ctx = running.model.requests[-1].options.num_ctx
    request = TITLE if closed is None else _of(closed)
    await running.services.side_calls.ask(running.model, info, num_ctx, request)


def _of(closed: TurnClosed) -> SideRequest:
    return SideRequest(
        task=TITLE.task,
        messages=TITLE.messages,
        max_tokens=TITLE.max_tokens,
        conversation_id=closed.conversation_id,
        turn_id=closed.turn_id,
    )


async def test_fifty_turns_with_side_calls_between_them_send_one_window_and_what_was_sent_stays(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", lambda _: says("the Danube")) as running:
        conversation, turns = None, list[bytes]()
        for number in range(1, 51):
            closed = await running.say(f"name river {number}", conversation)
            conversation = closed.conversation_id
            turns.append(running.model.requests[-1].messages)
            if number % 5 == 0:
                await side_call(running, closed)
        assert len({request.options for request in running.model.requests}) == 1
        assert all(later.startswith(earlier[:-1]) for earlier, later in pairwise(turns))
        traces = await traces_of(running)
        assert Counter(trace.kind for trace in traces) == {"conversation": 50, "side": 10}
        assert claims(traces) == calls(running.model)
        reuse = [trace.prefix_reuse for trace in reversed(traces) if trace.kind == "conversation"]
        assert reuse == [None] + [1.0] * 49
    async with rig(tmp_path / "home", lambda _: says("the Danube")) as running:
        # The measure goes on from the last turn, not from the side call after it.
        closed = await running.say("one more", conversation)
        newest = (await traces_of(running))[0]
        assert (newest.id, newest.prefix_reuse) == (closed.trace_id, 1.0)


async def test_a_probe_is_claimed_too_and_each_of_its_prompts_can_be_rebuilt(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", lambda _: says('{"answer": "the Danube"}')) as running:
        rows = [row async for row in running.services.surface.models.probe("scripted")]
        assert rows[-1].kept == "constrained"
        traces = await traces_of(running)
        assert len(traces) == len(running.model.requests) == 20
        assert claims(traces) == calls(running.model)
        views = running.services.surface.views
        for trace in traces:
            (rebuilt,) = await views.prompts(trace)
            assert rebuilt.matches, rebuilt.problems
        assert {rebuilt.messages for trace in traces for rebuilt in await views.prompts(trace)} == {
            request.messages for request in running.model.requests
        }
        assert {rebuilt.tools for trace in traces for rebuilt in await views.prompts(trace)} == {
            request.tools for request in running.model.requests
        }
        found = [event for event in views.events(limit=1000) if event.partition_key == "model"]
        assert Counter(event.event_type for event in found) == {"model.traced": 20, "model.score": 1}


async def test_a_side_call_of_a_conversation_is_kept_with_it(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", lambda _: says("the Danube")) as running:
        closed = await running.say()
        await side_call(running, closed)
        await side_call(running)
        views = running.services.surface.views
        newest, before, turn = await traces_of(running)
        assert [each.kind for each in (newest, before, turn)] == ["side", "side", "conversation"]
        assert (newest.conversation_id, before.conversation_id) == (None, closed.conversation_id)
        assert await views.traces(conversation_id=closed.conversation_id) == [before, turn]
        use = await views.context_use(closed.conversation_id)
        assert use is not None
        assert use.used == turn.prompt_tokens_estimated
        assert running.names().count("inference.traced") == 2


async def test_the_owners_choice_is_what_a_turn_asks_with_and_stays_over_a_restart(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with rig(home, lambda _: says("the Danube")) as running:
        models = running.services.surface.models
        assert (await models.show("scripted")).row.protocol_basis == "guess"
        await models.fix_protocol("scripted", "native")
    async with rig(home, lambda _: says("the Danube")) as running:
        shown = await running.services.surface.models.show("scripted")
        assert (shown.row.protocol, shown.row.protocol_basis) == ("native", "owner")
        (event,) = running.services.surface.views.events(types=("model.score",))
        assert (event.actor_id, event.partition_key) == ("owner", "model")
        assert msgspec.json.decode(event.body, type=ModelScoreRecord) == ModelScoreRecord(
            model="scripted", provider="scripted", digest="scripted", protocol="native", basis="owner"
        )


WORDS = "the old mill by the river is for sale"


@pytest.mark.parametrize("of_the_conversation", [True, False])
async def test_what_a_side_call_was_told_of_a_conversation_is_erased_with_it(
    tmp_path: Path, of_the_conversation: bool
) -> None:
    home = tmp_path / "home"
    async with rig(home, lambda _: says("I understand.")) as running:
        closed = await running.say(WORDS)
        (info,) = await running.model.models()
        told = SideRequest(
            task="probe",
            messages=(SideMessage(role="user", content=f'Name this: "{WORDS}"'),),
            max_tokens=32,
            conversation_id=closed.conversation_id if of_the_conversation else None,
        )
        await running.services.side_calls.ask(running.model, info, 8192, told)
    assert files_with(home, WORDS.encode()) != []
    assert await asyncio.to_thread(_erased, home, closed.conversation_id) == ()
    assert files_with(home, WORDS.encode()) == []
    async with rig(home, lambda _: says("It goes on.")) as running:
        left = await traces_of(running)
        assert [trace.kind for trace in left] == ([] if of_the_conversation else ["side"])
        for trace in left:
            (rebuilt,) = await running.services.surface.views.prompts(trace)
            assert not rebuilt.matches
            assert "was erased" in rebuilt.problems[0]


async def test_the_schema_of_a_side_call_is_kept_as_long_as_its_conversation(tmp_path: Path) -> None:
    home, schema = tmp_path / "home", b'{"const":"a schema like no other"}'
    async with rig(home, lambda _: says("I understand.")) as running:
        closed, other = await running.say(WORDS), await running.say("something else")
        (info,) = await running.model.models()
        for each in (closed, other):
            asked = msgspec.structs.replace(_of(each), format=schema)
            await running.services.side_calls.ask(running.model, info, 8192, asked)
    await asyncio.to_thread(_erased, home, closed.conversation_id)
    assert files_with(home, schema) != []
    await asyncio.to_thread(_erased, home, other.conversation_id)
    assert files_with(home, schema) == []


def _erased(home: Path, conversation_id: str) -> tuple[str, ...]:
    erasure = open_erasure({"RUNE_HOME": str(home), "PATH": ""})
    with erasure.prepared([conversation_id]) as plan:
        return erasure.erase(plan).left
