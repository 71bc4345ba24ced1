"""What programs read keeps its names."""

import json

import msgspec
import pytest

from rune.errors import LeaseHeldError
from rune.records.turns import StopReason
from rune.surface.stream_json import CallsSeen, error_line, error_object, event_line, result_object
from rune.turn.events import (
    ApprovalAsked,
    AskedCall,
    ChecklistChanged,
    ChecklistItem,
    Notice,
    Progress,
    StepTaken,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolOutput,
    ToolPrepared,
    ToolStarted,
    TurnClosed,
    TurnEvent,
)

CLOSED = TurnClosed(
    turn_id="trn_1",
    conversation_id="cnv_1",
    task_id="tsk_1",
    stop_reason=StopReason.INCOMPLETE,
    model="m",
    answer="half \ud800 \u2028",
    complete=False,
    usage=None,
    degraded=("project",),
    trace_id=None,
    error="it broke",
    error_type="StreamBrokenError",
    hint="again",
)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (
            TextDelta(turn_id="t", text="é"),
            {"version": 1, "type": "text_delta", "turn_id": "t", "text": "é", "pieces": 1},
        ),
        (
            ThinkingDelta(turn_id="t", text="so", pieces=3),
            {"version": 1, "type": "thinking_delta", "turn_id": "t", "text": "so", "pieces": 3},
        ),
        (
            Progress(turn_id="t", phase="reading", done=1, total=None),
            {"version": 1, "type": "progress", "turn_id": "t", "phase": "reading", "done": 1, "total": None},
        ),
        (
            Notice(turn_id=None, text="x"),
            {"version": 1, "type": "notice", "turn_id": None, "text": "x", "hint": "", "tier": None, "about": ""},
        ),
    ],
)
def test_an_event_is_one_ascii_line(event: msgspec.Struct, expected: dict[str, object]) -> None:
    line = event_line(event)  # pyright: ignore[reportArgumentType]  # members of the union, widened by parametrize
    assert line.isascii()
    assert "\n" not in line
    assert json.loads(line) == expected


def test_the_result_keeps_its_keys_and_holds_any_text() -> None:
    line = result_object(CLOSED)
    result = json.loads(line)
    assert line.isascii()
    assert result["answer"] == "half \ud800 \u2028"
    assert result["error"] == {"type": "StreamBrokenError", "message": "it broke", "hint": "again"}
    assert next(iter(result)) == "version"
    assert set(json.loads(error_object(LeaseHeldError("cnv_1", pid=7, since="")))) == set(result)


def test_an_error_before_a_turn_is_a_line_of_its_own_type() -> None:
    line = json.loads(error_line(LeaseHeldError("cnv_1", pid=7, since="")))
    assert (line["type"], line["error_type"]) == ("error", "LeaseHeldError")
    assert "7" in line["message"]


ASKED = AskedCall(call_id="cal_2", name="edit_file", effect="a +1", detail="+ é", why="it asks", rule="edit_file(a)")
ACTED: tuple[TurnEvent, ...] = (
    StepTaken(turn_id="t", used=1, budget=24),
    ToolPrepared(turn_id="t", call_id="cal_1", name="read_file", effect="a"),
    ToolStarted(turn_id="t", call_id="cal_1", name="read_file"),
    ToolOutput(turn_id="t", call_id="cal_1", text="..."),
    ToolFinished(turn_id="t", call_id="cal_1", name="read_file", outcome="ok", milliseconds=3, summary="2 lines"),
    ToolFinished(turn_id="t", call_id="cal_0", name="nonsense", outcome="failed", milliseconds=None),
    ToolPrepared(turn_id="t", call_id="cal_2", name="edit_file", effect="a +1", detail="+ é"),
    ApprovalAsked(turn_id="t", approval_id="apr_1", summary="1 change", calls=(ASKED,)),
    ChecklistChanged(turn_id="t", items=(ChecklistItem(text="look", state="done"),)),
)


def test_the_result_names_each_call_and_what_the_turn_waits_for() -> None:
    seen = CallsSeen()
    for event in ACTED:
        seen.note(event)
    paused = msgspec.structs.replace(CLOSED, pending_approval="apr_1", iterations_used=2, iteration_budget=24)
    result = json.loads(result_object(paused, seen))
    assert [(call["call_id"], call["effect"], call["outcome"], call["summary"]) for call in result["tool_calls"]] == [
        ("cal_1", "a", "ok", "2 lines"),
        ("cal_0", "", "failed", ""),
        ("cal_2", "a +1", None, ""),
    ]
    assert result["pending_approval"] == {"id": "apr_1", "summary": "1 change", "calls": [msgspec.to_builtins(ASKED)]}
    assert (result["iterations_used"], result["iteration_budget"]) == (2, 24)
    assert set(result) == set(json.loads(result_object(CLOSED)))


def test_a_turn_that_waits_for_nothing_says_so() -> None:
    seen = CallsSeen()
    for event in ACTED:
        seen.note(event)
    assert json.loads(result_object(CLOSED, seen))["pending_approval"] is None
    other = msgspec.structs.replace(CLOSED, pending_approval="apr_2")
    assert json.loads(result_object(other, seen))["pending_approval"] == {"id": "apr_2", "summary": "", "calls": []}


@pytest.mark.parametrize("event", ACTED, ids=lambda event: type(event).__name__)
def test_what_tools_do_is_a_line_each(event: TurnEvent) -> None:
    line = event_line(event)
    assert line.isascii()
    assert json.loads(line) == {"version": 1, **json.loads(msgspec.json.encode(event))}
