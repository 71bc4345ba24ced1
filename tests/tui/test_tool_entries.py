"""The reducer and tools: every call is one card, also over a pause and a restart."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from rune.errors import RuneError
from rune.records.messages import ConversationMessageRecord
from rune.records.tools import ToolCall
from rune.records.turns import StopReason
from rune.surface.rows import ApprovalRow, CallRow, TurnEnd
from rune.tui.entries import Answer, Checklist, Ending, Entry, Said, ToolCard
from rune.tui.tool_entries import SAID_ELSE, Asked, as_of, question
from rune.tui.transcript_state import (
    Transcript,
    answering,
    closed_question,
    followed,
    own_changed,
    reduce,
    refused,
    restored,
    sent,
    ticked,
    told,
)
from rune.turn import events as shown
from rune.turn.events import AskedCall, ChecklistItem, TurnEvent
from tests.tui.test_transcript_state import TURN, after, closed, message, opened, says

ASKS = AskedCall(
    call_id="c1", name="edit_file", effect="a.py +1 -1", detail="--- a\n", why="it changes a file", rule="edit_file(**)"
)


def prepared(call_id: str = "c1", *, turn_id: str = TURN, name: str = "edit_file") -> shown.ToolPrepared:
    return shown.ToolPrepared(turn_id=turn_id, call_id=call_id, name=name, effect="a.py +1 -1", detail="--- a\n")


def started(call_id: str = "c1", *, turn_id: str = TURN) -> shown.ToolStarted:
    return shown.ToolStarted(turn_id=turn_id, call_id=call_id, name="edit_file")


def finished(call_id: str = "c1", *, turn_id: str = TURN, **fields: Any) -> shown.ToolFinished:
    given: dict[str, Any] = {"outcome": "ok", "milliseconds": 12, "summary": "+1 -1", "text": "Done: a.py"}
    return shown.ToolFinished(turn_id=turn_id, call_id=call_id, name="edit_file", **(given | fields))


def asks(*calls: AskedCall) -> shown.ApprovalAsked:
    return shown.ApprovalAsked(turn_id=TURN, approval_id="apr_1", summary="a change", calls=calls or (ASKS,))


def resumed() -> shown.TurnOpened:
    return shown.TurnOpened(
        turn_id="trn_2",
        conversation_id="cnv_1",
        task_id="tsk_1",
        message_id="msg_1",
        model="m",
        provider="scripted",
        remote=False,
        resumes=TURN,
    )


def paused() -> Transcript:
    return after(opened(), says("I change it."), prepared(), asks(), closed(StopReason.PAUSED, complete=True))


def cards(transcript: Transcript) -> list[ToolCard]:
    return [entry for entry in transcript.entries if isinstance(entry, ToolCard)]


def kinds(transcript: Transcript) -> list[type[Entry]]:
    return [type(entry) for entry in transcript.entries]


def test_output_takes_the_place_of_what_was_shown_and_the_result_that_of_both() -> None:
    seen = [
        shown.ToolOutput(turn_id=TURN, call_id="c1", text="line 1\nline 2"),
        shown.ToolOutput(turn_id=TURN, call_id="c1", text="line 2\nline 3"),
    ]
    transcript = after(opened(), prepared(), started(), *seen)
    assert cards(transcript)[0].output == "line 2\nline 3"
    (card,) = cards(after(finished(exit_code=0), start=transcript))
    assert (card.state, card.output, card.summary, card.since) == ("done", "Done: a.py", "+1 -1", None)


def test_a_running_call_is_as_old_as_it_is_and_nothing_changes_between_the_seconds() -> None:
    transcript = after(opened(), prepared(), started())
    begun = cards(transcript)[0].since
    assert begun is not None
    later = ticked(transcript, begun + 3.7)
    assert cards(later)[0].seconds == 3
    assert ticked(later, begun + 3.9) is later
    assert ticked(paused(), 100.0).settled == paused().settled


def test_a_call_of_which_nothing_was_prepared_has_a_card_too() -> None:
    (card,) = cards(after(opened(), finished(outcome="failed", summary="there is no such tool")))
    assert (card.state, card.summary, card.name) == ("failed", "there is no such tool", "edit_file")


def test_each_outcome_has_its_own_state() -> None:
    for outcome, state in (("ok", "done"), ("denied", "denied"), ("cancelled", "cancelled"), ("unknown", "unknown")):
        (card,) = cards(after(opened(), prepared(), finished(outcome=outcome)))
        assert card.state == state


def test_a_question_makes_its_cards_wait_and_the_turn_ends_with_no_other_word() -> None:
    transcript = paused()
    assert kinds(transcript) == [Said, Answer, ToolCard]
    assert cards(transcript)[0].state == "waiting"
    assert transcript.asked == Asked(approval_id="apr_1", calls=(ASKS,))
    assert transcript.pace is None


def test_an_answered_turn_goes_on_with_the_same_card() -> None:
    transcript = answering(paused(), 20.0)
    assert transcript.pace is not None
    assert transcript.asked is not None
    transcript = after(resumed(), prepared(turn_id="trn_2"), started(turn_id="trn_2"), start=transcript)
    assert transcript.asked is None
    assert [card.state for card in cards(transcript)] == ["running"]
    end = closed(turn_id="trn_2")
    transcript = after(finished(turn_id="trn_2"), says("Done."), end, start=transcript)
    assert kinds(transcript) == [Said, Answer, ToolCard, Answer]
    assert cards(transcript)[0].state == "done"


def test_while_it_goes_on_what_was_before_the_question_stays_untouched() -> None:
    before = Transcript(settled=tuple(Said(key=str(n), text="x") for n in range(50)))
    transcript = after(opened(), prepared(), asks(), closed(StopReason.PAUSED), start=sent(before, "k", "hello", 1.0))
    going = after(resumed(), started(turn_id="trn_2"), start=answering(transcript, 2.0))
    assert going.settled == transcript.settled[:51]
    assert after(says("x"), start=going).settled is going.settled


def test_a_call_behind_the_question_is_shown_once_it_is_checked_anew() -> None:
    transcript = after(opened(), prepared(), prepared("c2"), asks(), closed(StopReason.PAUSED))
    assert [card.call_id for card in cards(transcript)] == ["c1"]
    transcript = after(resumed(), prepared("c3", turn_id="trn_2"), start=answering(transcript, 2.0))
    assert [card.call_id for card in cards(transcript)] == ["c1", "c3"]


def test_a_message_instead_of_an_answer_refuses_what_was_asked() -> None:
    transcript = after(opened("trn_2"), start=sent(paused(), "k", "no, do this", 20.0))
    assert transcript.asked is None
    (card,) = cards(transcript)
    assert (card.state, card.summary) == ("denied", SAID_ELSE)


def test_an_answer_that_could_not_be_given_leaves_the_question() -> None:
    transcript = refused(answering(paused(), 20.0), RuneError("no model"), "k")
    assert transcript.asked is not None
    assert transcript.pace is None
    assert cards(transcript)[0].state == "waiting"
    assert closed_question(transcript).asked is None


def test_what_never_told_its_end_is_not_left_running() -> None:
    transcript = after(opened(), prepared(), started(), prepared("c2"), closed(StopReason.CANCELLED, complete=False))
    assert [card.state for card in cards(transcript)] == ["unknown", "cancelled"]


def test_always_is_offered_only_where_every_call_has_a_rule() -> None:
    other = AskedCall(call_id="c2", name="run_command", effect="make", detail="make", why="", rule="")
    assert Asked(approval_id="a", calls=(ASKS,)).rules == ("edit_file(**)",)
    assert Asked(approval_id="a", calls=(ASKS, ASKS)).rules == ("edit_file(**)",)
    assert Asked(approval_id="a", calls=(ASKS, other)).rules == ()


def test_a_checklist_moves_to_the_end_when_it_changes() -> None:
    def lists(state: Any) -> shown.ChecklistChanged:
        return shown.ChecklistChanged(turn_id=TURN, items=(ChecklistItem(text="look", state=state),))

    transcript = after(opened(), lists("open"), prepared(), lists("done"), closed())
    assert kinds(transcript) == [Said, ToolCard, Checklist]
    listed = transcript.settled[-1]
    assert isinstance(listed, Checklist)
    assert listed.items[0].state == "done"
    again = after(opened("trn_2"), prepared("c2", turn_id="trn_2"), lists("doing"), start=transcript)
    assert kinds(again)[-2:] == [ToolCard, Checklist]
    assert kinds(again).count(Checklist) == 1


def test_steps_are_counted_and_the_figures_are_of_one_model_call() -> None:
    transcript = after(opened(), shown.StepTaken(turn_id=TURN, used=1, budget=24), says("a"), says("b"))
    transcript = after(prepared(), started(), start=transcript)
    assert transcript.pace is not None
    assert (transcript.pace.phase, transcript.pace.doing, transcript.pace.step) == ("running", "edit_file", 1)
    transcript = reduce(transcript, shown.StepTaken(turn_id=TURN, used=2, budget=24), 50.0)
    assert transcript.pace is not None
    assert (transcript.pace.step, transcript.pace.steps, transcript.pace.pieces) == (2, 24, 0)


def test_what_the_person_runs_is_a_card_of_its_own_in_and_beside_a_turn() -> None:
    card = ToolCard(key="task/9", call_id="task/9", name="", effect="ls", state="running", since=1.0, own=True)
    for transcript in (Transcript(), after(opened())):
        running = ticked(told(transcript, card), 4.2)
        assert cards(running)[0].seconds == 3
        ended = own_changed(running, "task/9", {"state": "done", "since": None})
        assert cards(ended)[0].state == "done"
    assert cards(after(closed(), start=told(after(opened()), card)))[0].state == "running"


def stored() -> list[ConversationMessageRecord]:
    calls = (ToolCall(id="t1", name="edit_file", arguments={}), ToolCall(id="t2", name="read_file", arguments={}))
    return [
        message(1, "user", "fix it"),
        message(2, "assistant", "I look.", tool_calls=calls),
        message(3, "tool", "Done: a.py", tool_call_id="t1"),
    ]


def row(tool_call_id: str, **fields: Any) -> CallRow:
    given: dict[str, Any] = {
        "call_id": f"cal_{tool_call_id}",
        "name": "edit_file",
        "effect": "a.py +1 -1",
        "detail": "--- a\n",
    }
    return CallRow(message_id="msg_2", tool_call_id=tool_call_id, **(given | fields))


def test_a_stored_conversation_has_the_cards_of_its_calls() -> None:
    done = row("t1", outcome="ok", milliseconds=12, summary="+1 -1", text="Done: a.py", output="evd", exit_code=0)
    calls = {("msg_2", "t1"): done, ("msg_2", "t2"): row("t2", outcome="failed", summary="no such file")}
    transcript = restored(stored(), {}, calls)
    assert kinds(transcript) == [Said, Answer, ToolCard, ToolCard]
    first, second = cards(transcript)
    assert (first.state, first.output, first.kept, first.milliseconds) == ("done", "Done: a.py", True, 12)
    assert (second.state, second.summary) == ("failed", "no such file")


def test_a_stored_question_waits_and_calls_behind_it_are_not_there_yet() -> None:
    asked = question(
        ApprovalRow(
            id="apr_1",
            conversation_id="cnv_1",
            turn_id="trn_1",
            asked_at="",
            expires_at="",
            folder="",
            title="",
            calls=(AskedCall(call_id="cal_t1", name="edit_file", effect="", detail="", why="", rule=""),),
        )
    )
    calls = {("msg_2", "t1"): row("t1"), ("msg_2", "t2"): row("t2", call_id="")}
    ends = {"trn_1": TurnEnd(reason=StopReason.PAUSED)}
    transcript = restored(stored()[:2], ends, calls, asked)
    assert [card.state for card in cards(transcript)] == ["waiting"]
    assert transcript.asked == asked
    assert not any(isinstance(entry, Ending) for entry in transcript.entries)
    answered = restored(stored()[:2], ends, {("msg_2", "t1"): row("t1", outcome="ok")})
    assert followed(transcript, answered).asked is None
    assert cards(followed(transcript, answered))[0].state == "done"


def test_a_stored_call_of_which_nothing_is_kept_is_shown_by_its_name() -> None:
    assert [card.name for card in cards(restored(stored(), {}))] == ["edit_file", "read_file"]


def test_only_a_call_that_may_have_run_says_so() -> None:
    unknown = {("msg_2", "t1"): row("t1", outcome="unknown"), ("msg_2", "t2"): row("t2")}
    assert [card.state for card in cards(restored(stored(), {}, unknown))] == ["unknown", "skipped"]
    waited = after(opened(), prepared(), asks(), closed(reason=StopReason.FAILED))
    assert [card.state for card in cards(waited)] == ["skipped"]


def test_a_reason_that_was_a_permission_mode_is_not_given_in_another_one() -> None:
    why = "the permission mode is `ask`: every change asks"
    by_mode = msgspec.structs.replace(ASKS, why=why)
    asked = Asked(approval_id="apr_1", calls=(by_mode, ASKS))
    assert as_of(asked, "ask") is asked
    assert [call.why for call in as_of(asked, "edits").calls] == ["", ASKS.why]


_EVENTS = st.lists(
    st.sampled_from(
        [
            prepared(),
            prepared("c2"),
            started(),
            started("c2"),
            finished(),
            finished("c2", outcome="failed"),
            shown.ToolOutput(turn_id=TURN, call_id="c1", text="x"),
            shown.ToolOutput(turn_id=TURN, call_id="nobody", text="x"),
            asks(),
            says("word"),
            shown.ChecklistChanged(turn_id=TURN, items=(ChecklistItem(text="look", state="open"),)),
        ]
    ),
    max_size=20,
)


@given(_EVENTS)
def test_in_whatever_order_they_come_each_call_has_one_card_and_each_entry_its_key(events: list[TurnEvent]) -> None:
    transcript = after(opened(), *events)
    ids = [card.call_id for card in cards(transcript)]
    assert len(ids) == len(set(ids))
    assert "nobody" not in ids
    transcript = after(closed(), start=transcript)
    assert not any(card.state in ("running", "prepared") for card in cards(transcript))
    keys = [entry.key for entry in transcript.settled]
    assert len(keys) == len(set(keys))
