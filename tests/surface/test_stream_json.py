"""What programs read keeps its names."""

import json

import msgspec
import pytest

from rune.errors import LeaseHeldError
from rune.records.turns import StopReason
from rune.surface.stream_json import error_line, error_object, event_line, result_object
from rune.turn.events import Notice, Progress, TextDelta, ThinkingDelta, TurnClosed

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
