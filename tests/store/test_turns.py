"""Turns that ended, turns that did not, and the traces of their model calls."""

from pathlib import Path

import pytest

from rune.errors import NotFoundError
from rune.records.traces import InferenceTraceRecord
from rune.records.turns import StopReason, TurnRecord
from rune.store.ledger import Draft
from tests.store.builders import CONVERSATION, a_failure, a_trace, a_turn, an_id
from tests.store.spine import Spine, a_memory_store, a_spine, events

OTHER = an_id("cnv", 2)


@pytest.fixture
def views(tmp_path: Path) -> Path:
    return tmp_path / "views-1.db"


def turn_fact(turn: TurnRecord) -> Draft:
    kind = "turn.started" if turn.stop_reason is None else "turn.finished"
    return Draft(event_type=kind, body=turn, partition=turn.conversation_id)


async def trace_them(spine: Spine, *traces: InferenceTraceRecord) -> None:
    for trace in traces:
        assert trace.conversation_id is not None
        await spine.ledger.adopt(trace.conversation_id)
        await spine.ledger.emit(Draft(event_type="inference.traced", body=trace, partition=trace.conversation_id))


async def test_a_turn_that_began_and_did_not_end_is_open(views: Path) -> None:
    async with a_spine(views) as spine:
        for conversation in (CONVERSATION, OTHER):
            await spine.ledger.adopt(conversation)
        ended = a_turn(1, stop_reason=StopReason.ANSWERED)
        for turn in (a_turn(1), a_turn(2), ended, a_turn(3, OTHER)):
            await spine.ledger.emit(turn_fact(turn))
        assert await spine.turns.open_turns() == [a_turn(2), a_turn(3, OTHER)]
        assert await spine.turns.open_turns(CONVERSATION) == [a_turn(2)]
        assert await spine.turns.turns(CONVERSATION) == [ended, a_turn(2)]
        assert await spine.turns.get(an_id("trn", 1)) == ended
        with pytest.raises(NotFoundError):
            await spine.turns.get(an_id("trn", 9))


async def test_an_end_read_before_its_beginning_is_the_end(views: Path) -> None:
    ended = a_turn(1, stop_reason=StopReason.INTERRUPTED)
    store = a_memory_store()
    story = events(("turn.started", a_turn(1)), ("turn.finished", ended), partition=CONVERSATION)
    await store.append_many(story[::-1])
    async with a_spine(views, store) as spine:
        assert await spine.turns.open_turns() == []
        assert await spine.turns.turns(CONVERSATION) == [ended]


async def test_what_made_a_turn_fail_is_kept_beside_it(views: Path) -> None:
    async with a_spine(views) as spine:
        for conversation in (CONVERSATION, OTHER):
            await spine.ledger.adopt(conversation)
        await spine.ledger.emit(turn_fact(a_turn(1)))
        for failure in (a_failure(1), a_failure(3, OTHER)):
            draft = Draft(event_type="turn.failed", body=failure, partition=failure.conversation_id)
            await spine.ledger.emit(draft)
        assert await spine.turns.failures(CONVERSATION) == {an_id("trn", 1): a_failure(1)}
        assert await spine.turns.failures(an_id("cnv", 9)) == {}


async def test_a_failure_read_before_its_turn_or_twice_is_the_last_one(views: Path) -> None:
    store = a_memory_store()
    story = events(
        ("turn.started", a_turn(1)),
        ("turn.failed", a_failure(1, message="first")),
        ("turn.failed", a_failure(1, message="last")),
        partition=CONVERSATION,
    )
    await store.append_many(story[::-1])
    async with a_spine(views, store) as spine:
        assert await spine.turns.failures(CONVERSATION) == {an_id("trn", 1): a_failure(1, message="last")}


async def test_a_trace_comes_back_whole_by_id_turn_and_conversation(views: Path) -> None:
    async with a_spine(views) as spine:
        # Long enough to lie in evidence.
        first, second, third = a_trace(1, history=300), a_trace(2), a_trace(3, OTHER)
        await trace_them(spine, first, second, third)
        assert await spine.traces.get(an_id("trc", 1)) == first
        assert await spine.traces.latest() == third
        assert await spine.traces.latest(CONVERSATION) == second
        assert await spine.traces.latest(an_id("cnv", 9)) is None
        assert await spine.traces.newest(limit=2) == [third, second]
        assert await spine.traces.newest(CONVERSATION) == [second, first]
        assert await spine.traces.of_turn(an_id("trn", 2)) == [second]
        with pytest.raises(NotFoundError):
            await spine.traces.get(an_id("trc", 9))


async def test_summaries_say_what_a_list_shows(views: Path) -> None:
    async with a_spine(views) as spine:
        await trace_them(spine, a_trace(1), a_trace(2), a_trace(3, OTHER))
        summaries = await spine.traces.summaries(limit=2)
        assert [each.id for each in summaries] == [an_id("trc", 3), an_id("trc", 2)]
        assert [each.id for each in await spine.traces.summaries(CONVERSATION)] == [an_id("trc", 2), an_id("trc", 1)]
        newest = summaries[0]
        assert (newest.conversation_id, newest.turn_id, newest.model) == (OTHER, an_id("trn", 3), "llama3.2")
        assert (newest.prompt_tokens_served, newest.output_tokens, newest.dropped) == (120, 9, 1)
        assert newest.timestamp == "2026-11-30T14:00:00.000Z"


async def test_a_trace_is_found_by_a_part_of_its_id(views: Path) -> None:
    async with a_spine(views) as spine:
        await trace_them(spine, a_trace("7a"), a_trace("7b"))
        assert await spine.traces.resolve("7b") == an_id("trc", "7b")
        assert await spine.traces.resolve(an_id("trc", "7a")) == an_id("trc", "7a")
        with pytest.raises(NotFoundError, match="could be"):
            await spine.traces.resolve("0000")
        with pytest.raises(NotFoundError):
            await spine.traces.resolve("zz")
