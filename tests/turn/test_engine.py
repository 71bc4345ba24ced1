"""A turn is its own task: whoever watches, sleeps or leaves changes nothing about it."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing

import pytest

from rune.records.turns import StopReason
from rune.turn.engine import TurnEngine, TurnStream
from rune.turn.events import Notice, TextDelta, ThinkingDelta, TurnClosed, TurnEvent
from rune.turn.flight import CancelToken


def delta(text: str) -> TextDelta:
    return TextDelta(turn_id="trn_1", text=text)


def closed(reason: StopReason = StopReason.ANSWERED) -> TurnClosed:
    return TurnClosed(
        turn_id="trn_1",
        conversation_id="cnv_1",
        task_id="tsk_1",
        stop_reason=reason,
        model="m",
        answer="",
        complete=True,
        usage=None,
        degraded=(),
        trace_id=None,
    )


async def test_deltas_are_joined_when_the_queue_is_full_and_nothing_is_lost() -> None:
    stream = TurnStream(capacity=4)
    pieces = [f"{number} " for number in range(1000)]
    for piece in pieces:
        stream.put(delta(piece))
    stream.end()
    got = [event async for event in stream.events()]
    assert len(got) == 4
    deltas = [event for event in got if isinstance(event, TextDelta)]
    assert "".join(event.text for event in deltas) == "".join(pieces)
    assert sum(event.pieces for event in deltas) == len(pieces)


async def test_deltas_of_another_kind_are_never_joined() -> None:
    stream = TurnStream(capacity=1)
    events: list[TurnEvent] = [delta("a"), ThinkingDelta(turn_id="trn_1", text="b"), delta("c"), delta("d"), closed()]
    for event in events:
        stream.put(event)
    stream.end()
    got = [event async for event in stream.events()]
    assert [getattr(event, "text", "closed") for event in got] == ["a", "b", "cd", "closed"]


async def test_a_consumer_that_leaves_does_not_end_the_turn() -> None:
    engine = TurnEngine()
    gate, over = asyncio.Event(), asyncio.Event()

    async def drive(emit: Callable[[TurnEvent], None]) -> TurnClosed:
        emit(delta("one"))
        await gate.wait()
        emit(delta("two"))
        over.set()
        return closed()

    stream = engine.start("trn_1", CancelToken(), drive)
    async with aclosing(stream.events()) as events:
        assert await anext(events) == delta("one")
    gate.set()
    await asyncio.wait_for(over.wait(), 5)
    assert await engine.close()


async def test_what_the_turn_raises_reaches_the_consumer() -> None:
    async def drive(emit: Callable[[TurnEvent], None]) -> TurnClosed:
        emit(delta("one"))
        raise OSError("no")

    stream = TurnEngine().start("trn_1", CancelToken(), drive)
    got: list[TurnEvent] = []
    with pytest.raises(OSError, match="no"):
        async for event in stream.events():
            got.append(event)  # noqa: PERF401  # what came before the failure counts
    assert got == [delta("one")]


async def test_closing_the_engine_waits_for_the_closing_writes() -> None:
    engine = TurnEngine()
    token = CancelToken()
    written: list[str] = []

    async def drive(emit: Callable[[TurnEvent], None]) -> TurnClosed:
        work = asyncio.ensure_future(asyncio.Event().wait())
        token.bind(work)
        await asyncio.wait({work})
        emit(Notice(turn_id="trn_1", text="stopping"))
        await asyncio.to_thread(written.append, "end")
        return closed(StopReason.CANCELLED)

    engine.start("trn_1", token, drive)
    await asyncio.sleep(0)
    assert await engine.close()
    assert written == ["end"]
    assert engine.running == ()
