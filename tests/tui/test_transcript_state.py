"""The reducer: a turn's events in, what is shown out."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.errors import LeaseHeldError, UsageError
from rune.records.messages import ConversationMessageRecord
from rune.records.turns import StopReason
from rune.surface.rows import TurnEnd
from rune.tui.transcript_state import (
    Answer,
    CommandOutput,
    Ending,
    Said,
    Thought,
    Told,
    ToolCard,
    Transcript,
    cancelling,
    reduce,
    refused,
    restored,
    sent,
    told,
)
from rune.turn import events as shown
from rune.turn.events import TurnEvent

TURN = "trn_1"


def opened(turn_id: str = TURN) -> shown.TurnOpened:
    return shown.TurnOpened(
        turn_id=turn_id,
        conversation_id="cnv_1",
        task_id="tsk_1",
        message_id="msg_1",
        model="m",
        provider="scripted",
        remote=False,
    )


def closed(reason: StopReason = StopReason.ANSWERED, **more: Any) -> shown.TurnClosed:
    fields: dict[str, Any] = {
        "turn_id": TURN,
        "conversation_id": "cnv_1",
        "task_id": "tsk_1",
        "stop_reason": reason,
        "model": "m",
        "answer": "",
        "complete": reason is StopReason.ANSWERED,
        "usage": None,
        "degraded": (),
        "trace_id": None,
    }
    return shown.TurnClosed(**(fields | more))


def says(text: str) -> shown.TextDelta:
    return shown.TextDelta(turn_id=TURN, text=text)


def thinks(text: str) -> shown.ThinkingDelta:
    return shown.ThinkingDelta(turn_id=TURN, text=text)


def after(*events: TurnEvent, start: Transcript | None = None) -> Transcript:
    transcript = start or sent(Transcript(), "task/1", "name a river", 10.0)
    for second, event in enumerate(events):
        transcript = reduce(transcript, event, 11.0 + second)
    return transcript


def message(number: int, role: Any, content: str, **more: Any) -> ConversationMessageRecord:
    fields: dict[str, Any] = {
        "id": f"msg_{number}",
        "ts": "2026-01-01T00:00:00.000Z",
        "role": role,
        "content": content,
        "conversation_id": "cnv_1",
        "task_id": "tsk_1",
        "turn_id": f"trn_{(number + 1) // 2}",
        "token_estimate": 1,
        "provenance": "owner" if role == "user" else "model",
    }
    return ConversationMessageRecord(**(fields | more))


def test_a_message_on_its_way_is_shown_at_once() -> None:
    transcript = sent(Transcript(), "task/1", "hello", 10.0)
    assert transcript.live == (Said(key="task/1", text="hello"),)
    assert transcript.pace is not None
    assert transcript.pace.phase == "sending"


def test_what_streams_is_one_answer_and_settles_at_the_end() -> None:
    running = after(opened(), says("The "), says("Rhine."))
    assert [entry.text for entry in running.live if isinstance(entry, Answer)] == ["The Rhine."]
    settled = after(closed(), start=running)
    assert settled.live == ()
    assert settled.pace is None
    assert [type(entry) for entry in settled.settled] == [Said, Answer]
    assert not any(entry.running for entry in settled.settled if isinstance(entry, Answer))


def test_thinking_stands_before_the_answer_and_is_over_when_that_begins() -> None:
    transcript = after(opened(), thinks("a river "), thinks("..."), says("Rhine"))
    thought, answer = transcript.live[1:]
    assert isinstance(thought, Thought)
    assert (thought.text, thought.running) == ("a river ...", False)
    assert isinstance(answer, Answer)
    assert answer.running


def test_a_notice_in_the_middle_does_not_cut_the_answer_in_two() -> None:
    notice = shown.Notice(turn_id=TURN, text="the disk is nearly full")
    transcript = after(opened(), says("The "), notice, says("Rhine."), closed())
    answers = [entry for entry in transcript.settled if isinstance(entry, Answer)]
    assert [entry.text for entry in answers] == ["The Rhine."]


def test_the_state_of_the_turn_is_told_with_figures() -> None:
    reading = after(opened(), shown.Progress(turn_id=TURN, phase="reading", done=0, total=3210))
    assert reading.pace is not None
    assert (reading.pace.phase, reading.pace.total) == ("reading", 3210)
    loading = after(opened(), shown.Progress(turn_id=TURN, phase="loading", done=0, total=None))
    assert loading.pace is not None
    assert loading.pace.phase == "loading"


def test_a_rate_is_told_only_when_it_can_be_known() -> None:
    first = after(opened(), says("a"))
    assert first.pace is not None
    assert first.pace.rate is None
    later = reduce(first, shown.TextDelta(turn_id=TURN, text="b c d", pieces=20), 14.0)
    assert later.pace is not None
    assert later.pace.rate is not None
    assert 9.99 < later.pace.rate < 10.01


def test_once_stopping_is_asked_for_it_stays_what_is_shown() -> None:
    transcript = cancelling(after(opened(), says("The ")))
    transcript = reduce(transcript, says("Rhine"), 20.0)
    assert transcript.pace is not None
    assert transcript.pace.phase == "cancelling"
    assert cancelling(Transcript()) == Transcript()


@pytest.mark.parametrize("reason", [reason for reason in StopReason if reason is not StopReason.ANSWERED])
def test_every_other_end_is_shown_with_its_reason(reason: StopReason) -> None:
    transcript = after(opened(), says("The "), closed(reason, error="no", hint="try", complete=False))
    last = transcript.settled[-1]
    assert isinstance(last, Ending)
    assert (last.reason, last.text, last.hint) == (reason, "no", "try")
    answer = transcript.settled[-2]
    assert isinstance(answer, Answer)
    assert not answer.complete


def test_a_message_that_never_became_a_turn_is_taken_out_and_the_reason_told() -> None:
    error = UsageError("it is open elsewhere", hint="close it there")
    before = Transcript(settled=(Said(key="a", text="earlier"),))
    transcript = refused(sent(before, "task/2", "hello", 1.0), error, "task/2")
    assert transcript.settled[:1] == before.settled
    (last,) = transcript.settled[1:]
    assert isinstance(last, Told)
    assert (last.text, last.hint, last.tier) == ("it is open elsewhere", "close it there", 1)
    assert transcript.pace is None
    assert issubclass(LeaseHeldError, Exception)


def test_what_a_command_says_while_a_turn_runs_stands_with_that_turn() -> None:
    output = CommandOutput(key="task/9", command="/health", text="healthy")
    transcript = told(after(opened(), says("The ")), output)
    transcript = after(says("Rhine."), closed(), start=transcript)
    assert [type(entry) for entry in transcript.settled] == [Said, Answer, CommandOutput]


def test_a_tool_call_is_one_card_from_its_check_to_its_end() -> None:
    transcript = after(
        opened(),
        shown.ToolPrepared(turn_id=TURN, call_id="c1", name="read_file", effect="reads a.py"),
        shown.ToolStarted(turn_id=TURN, call_id="c1", name="read_file"),
        shown.ToolOutput(turn_id=TURN, call_id="c1", text="x = 1\n"),
        shown.ToolFinished(turn_id=TURN, call_id="c1", name="read_file", outcome="ok", milliseconds=120),
        closed(),
    )
    (card,) = [entry for entry in transcript.settled if isinstance(entry, ToolCard)]
    assert (card.state, card.milliseconds, card.output, card.effect) == ("done", 120, "x = 1\n", "reads a.py")


def test_a_stored_conversation_looks_as_it_did() -> None:
    messages = [
        message(1, "user", "name a river"),
        message(2, "assistant", "Rhine", thinking="hm"),
        message(3, "user", "another"),
        message(4, "assistant", "Da", complete=False),
        message(5, "user", "go on"),
    ]
    ends = {
        "trn_1": TurnEnd(reason=StopReason.ANSWERED),
        "trn_2": TurnEnd(reason=StopReason.CANCELLED),
        "trn_3": TurnEnd(reason=StopReason.FAILED, error="no model", hint="get one"),
    }
    transcript = restored(messages, ends)
    kinds = [type(entry) for entry in transcript.settled]
    assert kinds == [Said, Thought, Answer, Said, Answer, Ending, Said, Ending]
    last = transcript.settled[-1]
    assert isinstance(last, Ending)
    assert (last.text, last.hint) == ("no model", "get one")
    assert transcript.live == ()


_DELTAS = st.lists(st.one_of(st.builds(says, st.text()), st.builds(thinks, st.text())), max_size=30)


@given(_DELTAS)
def test_nothing_that_was_said_is_lost_and_no_key_is_given_twice(deltas: list[TurnEvent]) -> None:
    transcript = after(opened(), *deltas, closed())
    for kind, entry_type in ((shown.TextDelta, Answer), (shown.ThinkingDelta, Thought)):
        said = "".join(delta.text for delta in deltas if isinstance(delta, kind))
        assert "".join(entry.text for entry in transcript.settled if isinstance(entry, entry_type)) == said
    keys = [entry.key for entry in transcript.settled]
    assert len(keys) == len(set(keys))


@given(_DELTAS)
def test_a_delta_leaves_what_is_settled_untouched(deltas: list[TurnEvent]) -> None:
    before = Transcript(settled=tuple(Said(key=str(number), text="x") for number in range(50)))
    transcript = after(opened(), *deltas, start=sent(before, "task/1", "hello", 1.0))
    assert transcript.settled is before.settled
