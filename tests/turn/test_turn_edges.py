"""What goes wrong between a turn's steps: races, failed writes, answers and messages of any size."""

import asyncio
import json
import resource
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rune.errors import CancelledEarlyError, StreamBrokenError
from rune.models.scripted import ScriptedTransport, breaks, says
from rune.models.transport import ChatChunk, ChatRequest
from rune.models.transport import TextDelta as Text
from rune.records.turns import StopReason, TurnRecord
from rune.store.ledger import Draft
from rune.turn.recorder import finish
from tests.turn.rig import Rig, rig, until
from tests.turn.test_operator import copy_home


def sent(it: Rig, call: int = -1) -> list[str]:
    return [message["content"] for message in json.loads(it.model.requests[call].messages)][1:]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


async def test_several_processes_that_recover_at_once_end_a_turn_once(home: Path) -> None:
    async with rig(home, [[asyncio.Event()]]) as dying:
        watching = asyncio.create_task(dying.turn())
        await until(lambda: bool(dying.model.requests))
        copy_home(home, home.parent / "after-kill")
        dying.operator.cancel()
        await watching
    left = home.parent / "after-kill"
    services = [rig(left, []) for _ in range(4)]
    opened = await asyncio.gather(*(one.__aenter__() for one in services))
    assert opened[0].names().count("turn.finished") == 1
    for one in services:
        await one.__aexit__(None, None, None)


def test_two_ends_of_one_turn_have_one_id_so_that_the_journal_refuses_the_second() -> None:
    def end(reason: StopReason) -> Draft:
        turn = TurnRecord(
            id="trn_1", conversation_id="cnv_1", task_id="tsk_1", message_id="msg_1", model="m", stop_reason=reason
        )
        return finish(turn)

    assert end(StopReason.ANSWERED).event_id == end(StopReason.INTERRUPTED).event_id is not None


async def test_a_message_that_did_not_fit_does_not_push_the_others_out(home: Path) -> None:
    async with rig(home, lambda _: says("yes")) as it:
        first = await it.say("my name is Ada")
        refused = await it.say("words " * 50_000, first.conversation_id)
        assert refused.stop_reason is StopReason.CONTEXT_EXHAUSTED
        await it.say("what is my name?", first.conversation_id)
        assert sent(it) == ["my name is Ada", "yes", "what is my name?"]
    async with rig(home, lambda _: says("yes")) as it:
        await it.say("and now?", first.conversation_id)
        assert sent(it) == ["my name is Ada", "yes", "what is my name?", "yes", "and now?"]
        assert (await it.services.surface.views.traces(limit=1))[0].prefix_reuse == 1.0
        seen = await it.services.surface.views.transcript(first.conversation_id)
        assert "words " * 50_000 in [message.content for message in seen]


async def test_an_answer_larger_than_history_may_be_leaves_alone(home: Path) -> None:
    async with rig(home, [says("Ada it is"), says("words " * 8_000), says("Ada")]) as it:
        first = await it.say("my name is Ada")
        await it.say("talk", first.conversation_id)
        events = await it.turn("what is my name?", first.conversation_id)
        assert sent(it) == ["my name is Ada", "Ada it is", "what is my name?"]
        assert any("no longer sent" in getattr(event, "text", "") for event in events)
        trace = (await it.services.surface.views.traces(limit=1))[0]
        assert trace.prefix_break == "history trimmed"


async def test_a_turn_that_waits_behind_another_can_be_cancelled(home: Path) -> None:
    gate = asyncio.Event()
    async with rig(home, [says("zero"), [gate, *says("one")]]) as it:
        start = await it.say()
        first = asyncio.create_task(it.turn("first", start.conversation_id))
        await until(lambda: len(it.model.requests) == 2)
        second = asyncio.create_task(it.turn("second", start.conversation_id))
        await until(lambda: len(it.operator.running) == 2)
        it.operator.cancel(it.operator.running[1])
        with pytest.raises(CancelledEarlyError):
            await asyncio.wait_for(second, 5)
        assert not first.done()
        gate.set()
        await first


async def test_a_message_that_waits_while_its_conversation_is_given_back_still_goes_in(home: Path) -> None:
    async with rig(home, lambda _: says("yes")) as it:
        start = await it.say()
        for ticks in range(40):
            await it.say("a task to supersede", start.conversation_id)
            new = asyncio.create_task(it.operator.new(folder=str(it.folder), conversation_id=start.conversation_id))
            for _ in range(ticks):
                await asyncio.sleep(0)
            second = asyncio.create_task(it.say("second", start.conversation_id))
            await asyncio.gather(new, return_exceptions=True)  # refused, should the message have been quicker
            assert (await second).stop_reason is StopReason.ANSWERED
            assert sent(it)[-1] == "second"


@contextmanager
def a_full_disk(folder: Path) -> Generator[None]:
    """Let no file grow beyond the largest one there is."""
    largest = max(path.stat().st_size for path in folder.glob("*.jsonl"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_an_end_that_could_not_be_written_is_written_with_the_next_turn(home: Path) -> None:
    gate = asyncio.Event()
    async with rig(home, [says("one"), [Text("two"), gate, *says("")], says("three")]) as it:
        first = await it.say("first")
        second = asyncio.create_task(it.say("second", first.conversation_id))
        await until(lambda: len(it.model.requests) == 2)
        with a_full_disk(home / "journal"):
            gate.set()
            closed = await second
        assert closed.stop_reason is StopReason.FAILED
        assert "could not be saved" in closed.error
        third = await it.say("third", first.conversation_id)
        assert third.stop_reason is StopReason.ANSWERED
        assert sent(it) == ["first", "one", "second", "two", "third"]
        assert it.names().count("turn.started") == it.names().count("turn.finished") == 3
        assert (await it.services.surface.views.traces(limit=1))[0].prefix_reuse == 1.0


async def test_a_cancel_after_the_last_word_leaves_a_whole_answer(home: Path) -> None:
    class Slow(ScriptedTransport):
        """Never says which window is in force."""

        async def window_in_force(self, model: str) -> int | None:
            await asyncio.Event().wait()
            return None

    async with rig(home, [says("the Danube")], model=Slow([says("the Danube")])) as it:
        watching = asyncio.create_task(it.say())
        await until(lambda: "turn.finished" in it.names())
        it.operator.cancel()
        closed = await asyncio.wait_for(watching, 5)
        assert (closed.stop_reason, closed.complete) == (StopReason.ANSWERED, True)


async def test_an_odd_window_is_not_kept(home: Path) -> None:
    class Odd(ScriptedTransport):
        """Says that its window is tiny."""

        async def window_in_force(self, model: str) -> int | None:
            return 100

    async with rig(home, [], model=Odd([says("one")])) as it:
        events = await it.turn()
        assert any("100 tokens" in getattr(event, "text", "") for event in events)
    async with rig(home, [says("two")]) as it:
        assert (await it.say("again")).stop_reason is StopReason.ANSWERED


async def test_a_frozen_prefix_that_is_lost_is_collected_anew_and_said(home: Path) -> None:
    async with rig(home, [says("one")]) as it:
        first = await it.say()
        prefix = json.loads(bytes(it.facts()[0].body))["prefix"].removeprefix("sha256:")
    (home / "evidence" / prefix[:2] / prefix[2:4] / prefix[4:]).unlink(missing_ok=True)
    for path in (home / "evidence").rglob(f"*{prefix[4:]}"):
        path.unlink()
    async with rig(home, [says("two")]) as it:
        events = await it.turn("again", first.conversation_id)
        assert any("prefix failed" in getattr(event, "text", "") for event in events)
        changed = [event for event in it.facts() if event.event_type == "context.prefix_changed"]
        assert b"could not be read" in bytes(changed[0].body)
        assert sent(it) == ["name a river", "one", "again"]


async def test_an_endless_answer_is_cut_off_and_kept(home: Path) -> None:
    endless = [Text("word " * 1000)] * 10_000
    async with rig(home, [endless]) as it:
        closed = await it.say()
        assert closed.stop_reason is StopReason.LENGTH
        assert not closed.complete
        assert 1_000_000 <= len(closed.answer) < 1_100_000
        assert it.model.closed == 1


async def test_a_broken_answer_stays_in_the_prompt_of_the_next_turn_as_it_was_sent(home: Path) -> None:
    async with rig(home, [breaks("half", StreamBrokenError("gone")), says("two"), says("three")]) as it:
        first = await it.say("one?")
        await it.say("two?", first.conversation_id)
        await it.say("three?", first.conversation_id)
        reuse = [trace.prefix_reuse for trace in await it.services.surface.views.traces(limit=3)]
        assert reuse == [1.0, 1.0, None]


async def test_a_burst_of_tokens_lets_others_have_their_turn(home: Path) -> None:
    ticks, seen = 0, list[int]()

    class Burst(ScriptedTransport):
        """Gives all its words without a pause, and notes how far the others are at each."""

        async def chat(self, request: ChatRequest) -> AsyncGenerator[ChatChunk]:
            async for chunk in super().chat(request):
                seen.append(ticks)
                yield chunk

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0)
            ticks += 1

    async with rig(home, [], model=Burst([[*[Text("word ")] * 50_000, says("")[-1]]])) as it:
        ticking = asyncio.create_task(tick())
        closed = await it.say()
        ticking.cancel()
    assert len(closed.answer) == 250_000
    assert seen[-1] > seen[0]


async def test_text_that_no_utf_8_can_hold_is_made_storable_on_its_way_in(home: Path) -> None:
    async with rig(home, [[Text("half \udfff"), says("")[-1]], [StreamBrokenError("odd \ud800")], says("yes")]) as it:
        closed = await it.say("a \ud800 b")
        assert (closed.stop_reason, closed.answer) == (StopReason.ANSWERED, "half \ufffd")
        failed = await it.say("c", closed.conversation_id)
        assert (failed.stop_reason, failed.error) == (StopReason.FAILED, "odd \ufffd")
        await it.say("d", closed.conversation_id)
        assert sent(it) == ["a \ufffd b", "half \ufffd", "c", "d"]
