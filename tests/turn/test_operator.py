"""A turn from the message to its end: what is stored, what is shown, and every way it can go wrong."""

import asyncio
import json
from collections import Counter
from contextlib import aclosing
from pathlib import Path

import pytest

from rune.errors import CancelledEarlyError, LeaseHeldError, NotFoundError, StreamBrokenError, UsageError
from rune.models.scripted import breaks, says
from rune.records.tasks import TaskStatus
from rune.records.turns import StopReason
from rune.turn.events import TextDelta, TurnClosed, TurnOpened
from tests.turn.rig import closing, rig, until

ONE_TURN = [
    "conversation.created",
    "task.created",
    "task.transition",
    "turn.started",
    "user.message",
    "response.generated",
    "task.transition",
    "inference.traced",
    "turn.finished",
]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


async def test_a_turn_writes_each_fact_once_and_in_order(home: Path) -> None:
    async with rig(home, [says("the Danube")]) as it:
        closed = await it.say()
        assert it.names() == ONE_TURN
        assert [event.pseq for event in it.facts()] == list(range(1, len(ONE_TURN) + 1))
    assert closed.stop_reason is StopReason.ANSWERED
    assert (closed.answer, closed.complete) == ("the Danube", True)


async def test_the_message_is_durable_before_the_model_is_called(home: Path) -> None:
    gate = asyncio.Event()
    async with rig(home, [[gate, *says("yes")]]) as it, aclosing(it.operator.send_task(it.request())) as events:
        assert isinstance(await anext(events), TurnOpened)
        assert "user.message" in it.names()
        assert "response.generated" not in it.names()
        gate.set()
        async for _ in events:
            pass


async def test_the_next_turn_gets_what_was_said_before(home: Path) -> None:
    async with rig(home, [says("the Danube"), says("the Rhine")]) as it:
        first = await it.say("name a river")
        await it.say("another", first.conversation_id)
        sent = json.loads(it.model.requests[1].messages)
        started = it.model.requests[0].messages.removesuffix(b"]")
        assert it.model.requests[1].messages.startswith(started)
    assert [message["content"] for message in sent[1:]] == ["name a river", "the Danube", "another"]


async def test_a_conversation_goes_on_in_another_process(home: Path) -> None:
    async with rig(home, [says("the Danube")]) as it:
        first = await it.say("name a river")
        before = it.model.requests[0].messages
    async with rig(home, [says("the Rhine")]) as it:
        second = await it.say("another", first.conversation_id)
        assert it.model.requests[0].messages.startswith(before.removesuffix(b"]"))
        traces = await it.services.surface.views.traces(limit=1)
        assert traces[0].prefix_reuse == 1.0
    assert second.task_id == first.task_id


async def test_an_answer_that_breaks_off_is_kept_and_marked(home: Path) -> None:
    async with rig(home, [breaks("the Dan", StreamBrokenError("gone")), says("sorry")]) as it:
        closed = await it.say()
        assert closed.stop_reason is StopReason.INCOMPLETE
        assert (closed.answer, closed.complete, closed.error_type) == ("the Dan", False, "StreamBrokenError")
        messages = await it.services.surface.views.transcript(closed.conversation_id)
        assert [(message.content, message.complete) for message in messages][1] == ("the Dan", False)
        assert it.names().count("turn.failed") == 1
        await it.say("go on", closed.conversation_id)
        assert b"[cut off]" in it.model.requests[1].messages


async def test_a_failure_before_any_text_fails_the_turn_and_leaves_the_task_open(home: Path) -> None:
    async with rig(home, [[StreamBrokenError("gone")], says("now")]) as it:
        closed = await it.say()
        assert closed.stop_reason is StopReason.FAILED
        assert it.names()[-1] == "turn.finished"
        again = await it.say("once more", closed.conversation_id)
        assert again.task_id == closed.task_id


async def test_a_message_over_the_window_is_kept_and_nothing_is_sent(home: Path) -> None:
    async with rig(home, [says("never")]) as it:
        closed = await it.say("words " * 50_000)
        assert closed.stop_reason is StopReason.CONTEXT_EXHAUSTED
        assert "budget" in closed.error
        assert it.model.requests == []
        messages = await it.services.surface.views.transcript(closed.conversation_id)
        assert messages[0].content == "words " * 50_000


async def test_an_empty_message_is_refused_and_nothing_is_stored(home: Path) -> None:
    async with rig(home, []) as it:
        with pytest.raises(UsageError):
            await it.turn("  \n ")
        assert it.facts() == []


async def test_an_unknown_conversation_is_named_and_nothing_is_stored(home: Path) -> None:
    async with rig(home, [says("x")]) as it:
        with pytest.raises(NotFoundError):
            await it.turn("hello", "cnv_00000000000000000000000000")
        assert it.facts() == []


async def test_a_conversation_that_another_process_holds_is_left_alone(home: Path) -> None:
    async with rig(home, [says("one")]) as first:
        closed = await first.say()
        async with rig(home, [says("two")]) as second:
            with pytest.raises(LeaseHeldError):
                await second.turn("mine", closed.conversation_id)
            other = await second.say("another conversation")
        assert other.conversation_id != closed.conversation_id


async def test_a_second_message_waits_for_the_turn_before_it(home: Path) -> None:
    gate = asyncio.Event()
    async with rig(home, [says("zero"), [*says("one")[:-1], gate, says("one")[-1]], says("two")]) as it:
        start = await it.say()
        first = asyncio.create_task(it.turn("first", start.conversation_id))
        await until(lambda: len(it.model.requests) == 2)
        second = asyncio.create_task(it.turn("second", start.conversation_id))
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(first, second)
        started = [name for name in it.names() if name.startswith("turn.")]
        assert started == ["turn.started", "turn.finished"] * 3


async def test_a_cancelled_turn_keeps_what_was_said_and_ends_once(home: Path) -> None:
    never = asyncio.Event()
    async with rig(home, [[*says("the Danube is")[:-1], never]]) as it:
        events: list[object] = []
        async for event in it.operator.send_task(it.request()):
            events.append(event)
            if isinstance(event, TextDelta) and event.text.strip() == "is":
                assert it.operator.cancel()
                it.operator.cancel()
        closed = closing([event for event in events if isinstance(event, TurnClosed)])
        assert closed.stop_reason is StopReason.CANCELLED
        assert (closed.answer, closed.complete) == ("the Danube is", False)
        assert it.model.closed == 1
        assert Counter(it.names())["turn.finished"] == 1
        assert not it.operator.cancel()


@pytest.mark.parametrize("twice", [False, True])
async def test_cancelled_at_any_moment_a_turn_is_stored_whole_or_not_at_all(tmp_path: Path, *, twice: bool) -> None:
    async with rig(tmp_path / "home", lambda _: says("a few words of an answer")) as it:
        for ticks in [*range(40), *range(40, 400, 15)]:
            before = len(it.facts())
            watching = asyncio.create_task(it.turn(f"after {ticks}"))
            for _ in range(ticks):
                await asyncio.sleep(0)
            it.operator.cancel()
            if twice:
                await asyncio.sleep(0)
                it.operator.cancel()
            await asyncio.wait({watching})
            assert watching.exception() is None or isinstance(watching.exception(), CancelledEarlyError)
            names = Counter(it.names()[before:])
            assert names["turn.started"] == names["turn.finished"] == names["user.message"]
            assert names["response.generated"] <= names["turn.started"] <= 1
            assert it.operator.running == ()


async def test_the_task_that_runs_a_turn_may_be_cancelled_from_outside(home: Path) -> None:
    never = asyncio.Event()
    async with rig(home, [[never]]) as it:
        watching = asyncio.create_task(it.turn())
        await until(lambda: bool(it.model.requests))
        for task in asyncio.all_tasks():
            if task.get_name().startswith("turn "):
                task.cancel()
        events = await watching
        assert closing(events).stop_reason is StopReason.CANCELLED
        assert it.names()[-1] == "turn.finished"


async def test_a_consumer_that_stops_between_any_two_events_does_not_end_the_turn(tmp_path: Path) -> None:
    async with rig(tmp_path / "home", lambda _: says("a few words")) as it:
        whole = len(await it.turn())
        for stop in range(1, whole):
            before = len(it.facts())
            async with aclosing(it.operator.send_task(it.request())) as events:
                for _ in range(stop):
                    await anext(events)
            await until(lambda: not it.operator.running)
            assert Counter(it.names()[before:]) == Counter(ONE_TURN)


async def test_a_slow_consumer_does_not_hold_up_the_turn(home: Path) -> None:
    async with rig(home, [says("word " * 2000)]) as it:
        async with aclosing(it.operator.send_task(it.request())) as events:
            await anext(events)
            await until(lambda: not it.operator.running)  # nobody takes an event meanwhile
            assert it.names()[-1] == "turn.finished"
            rest = [event async for event in events]
        text = "".join(event.text for event in rest if isinstance(event, TextDelta))
        assert text == closing(rest).answer == "word " * 2000


async def test_done_completes_the_open_task_and_the_next_message_begins_another(home: Path) -> None:
    async with rig(home, lambda _: says("yes")) as it:
        first = await it.say()
        task = await it.operator.done(first.conversation_id)
        assert task.status is TaskStatus.COMPLETED
        second = await it.say("next", first.conversation_id)
        assert second.task_id != first.task_id
        with pytest.raises(UsageError):
            await it.operator.done((await it.operator.new(folder=str(it.folder))).id)


async def test_new_supersedes_the_task_and_starts_an_empty_conversation(home: Path) -> None:
    async with rig(home, lambda _: says("yes")) as it:
        first = await it.say("the first line\nand more")
        record = await it.operator.new(folder=str(it.folder))
        again = await it.say("something else", record.id)
        assert again.conversation_id == record.id != first.conversation_id
        conversations = await it.services.surface.views.conversations(folder=str(it.folder))
        assert [found.record.title for found in conversations] == ["something else", "the first line"]
        sent = json.loads(it.model.requests[1].messages)
        assert [message["content"] for message in sent[1:]] == ["something else"]


async def test_a_turn_that_a_killed_process_left_is_ended_at_the_next_start(home: Path) -> None:
    async with rig(home, [[asyncio.Event()]]) as dying:
        watching = asyncio.create_task(dying.turn())
        await until(lambda: bool(dying.model.requests))
        left = [event.event_type for event in dying.facts()]
        assert "turn.finished" not in left
        # What a kill leaves: the journal as it is. Copied while that turn still runs.
        snapshot = home.parent / "after-kill"
        copy_home(home, snapshot)
        dying.operator.cancel()
        await watching
    async with rig(snapshot, [says("again")]) as it:
        assert it.names() == [*left, "task.transition", "turn.finished"]
        body = json.loads(bytes(it.facts()[-1].body))
        assert body["stop_reason"] == "interrupted"
        closed = await it.say("go on", it.facts()[-1].partition_key)
        assert closed.stop_reason is StopReason.ANSWERED
        assert closed.task_id == body["task_id"]


def copy_home(source: Path, target: Path) -> None:
    for path in sorted(source.rglob("*")):
        copied = target / path.relative_to(source)
        if path.is_dir():
            copied.mkdir(parents=True, mode=0o700)
        elif "views-" not in path.name:
            copied.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            copied.write_bytes(path.read_bytes())
            copied.chmod(0o600)
