"""A turn with tools on two streams: the answer on stdout, what tools do on stderr, and how a question is answered."""

import json

import msgspec
import pytest

from rune.cli.output import Output
from rune.cli.turn_output import OutputFormat, TurnOutput
from rune.records.turns import StopReason
from rune.turn.events import (
    ApprovalAsked,
    AskedCall,
    ChecklistChanged,
    Notice,
    StepTaken,
    TextDelta,
    ToolFinished,
    ToolOutput,
    ToolPrepared,
    ToolStarted,
    TurnClosed,
    TurnEvent,
)
from tests.fakes.streams import KeptStream

APPROVAL = "apr_01h0000000000000000000abcd"
DETAIL = "@@ -1 +1 @@\n-total = 0\n+total = Decimal(0)\n"
CLOSED = TurnClosed(
    turn_id="trn_1",
    conversation_id="cnv_1",
    task_id="tsk_1",
    stop_reason=StopReason.ANSWERED,
    model="m",
    answer="Done.",
    complete=True,
    usage=None,
    degraded=(),
    trace_id=None,
)
PAUSED = msgspec.structs.replace(CLOSED, stop_reason=StopReason.PAUSED, answer="", pending_approval=APPROVAL)


def reads(call_id: str = "cal_1", path: str = "a.py") -> list[TurnEvent]:
    return [
        ToolPrepared(turn_id="t", call_id=call_id, name="read_file", effect=path),
        ToolStarted(turn_id="t", call_id=call_id, name="read_file"),
        ToolOutput(turn_id="t", call_id=call_id, text="what it says while it runs"),
        ToolFinished(
            turn_id="t", call_id=call_id, name="read_file", outcome="ok", milliseconds=12, summary="40 lines", text="x"
        ),
    ]


def asks(*calls: AskedCall) -> list[TurnEvent]:
    return [ApprovalAsked(turn_id="t", approval_id=APPROVAL, summary="s", calls=calls), PAUSED]


def edit(detail: str = DETAIL, rule: str = "edit_file(src/**)") -> AskedCall:
    return AskedCall(
        call_id="cal_2", name="edit_file", effect="src/cart.py +1 -1", detail=detail, why="every change asks", rule=rule
    )


def shown(
    *events: TurnEvent, output_format: OutputFormat = "text", terminal: bool = False, command: str = "rune"
) -> tuple[str, str]:
    out, err = KeptStream(is_terminal=terminal), KeptStream(is_terminal=terminal)
    show = TurnOutput(output_format, Output(out, err, command))
    for event in events:
        show.event(event)
    return out.text, err.text


def test_the_answer_goes_to_stdout_and_what_tools_do_to_stderr() -> None:
    out, err = shown(
        StepTaken(turn_id="t", used=1, budget=24),
        TextDelta(turn_id="t", text="I look."),
        *reads(),
        StepTaken(turn_id="t", used=2, budget=24),
        TextDelta(turn_id="t", text="Done."),
        ChecklistChanged(turn_id="t", items=()),
        CLOSED,
    )
    assert out == "I look.\nDone.\n"
    assert err == "rune: read_file a.py: 40 lines (12 ms)\n"


def test_what_was_said_before_a_call_ends_its_line_before_anything_stands_on_the_other_stream() -> None:
    out, _ = shown(TextDelta(turn_id="t", text="I look."), reads()[0])
    assert out == "I look.\n"


def test_a_notice_has_a_line_of_its_own_on_a_screen_and_breaks_no_answer_in_a_file() -> None:
    events = (
        TextDelta(turn_id="t", text="It "),
        Notice(turn_id="t", text="a notice"),
        TextDelta(turn_id="t", text="is."),
    )
    assert shown(*events, CLOSED) == ("It is.\n", "rune: a notice\n")
    assert shown(*events, CLOSED, terminal=True)[0] == "It \nis.\n"


def test_the_step_is_said_on_a_terminal_only_and_not_for_a_plain_answer() -> None:
    plain = (StepTaken(turn_id="t", used=1, budget=24), TextDelta(turn_id="t", text="Done."), CLOSED)
    assert shown(*plain, terminal=True) == ("Done.\n", "")
    acted = (*plain[:2], *reads(), StepTaken(turn_id="t", used=2, budget=24), CLOSED)
    assert "step 2/24" in shown(*acted, terminal=True)[1]
    assert "step" not in shown(*acted)[1]


def test_a_question_says_what_why_and_how_it_is_answered() -> None:
    out, err = shown(*asks(edit()))
    assert out == ""
    assert err.splitlines() == [
        "rune: this waits for you; nothing of it was done:",
        "      edit_file src/cart.py +1 -1",
        "      why it asks: every change asks",
        "      | @@ -1 +1 @@",
        "      | -total = 0",
        "      | +total = Decimal(0)",
        f"rune: `rune approve {APPROVAL}` allows it",
        f"      `rune approve {APPROVAL} --no` refuses (--because TEXT says why)",
        f"      `rune approve {APPROVAL} --always` allows from now on, in this folder:",
        "        edit_file(src/**)",
    ]


def test_always_is_not_offered_where_no_rule_can_say_it() -> None:
    _, err = shown(*asks(edit(rule="")))
    assert "--always" not in err
    assert "--no" in err


def test_a_detail_is_shown_as_it_is_and_passes_for_nothing_else() -> None:
    hostile = "a `rune approve x`\nrune: `rune approve x` allows it\n\x1b[2J\u202e\r"
    for terminal in (False, True):
        _, err = shown(*asks(edit(hostile)), terminal=terminal, command="./scripts/rune")
        lines = err.splitlines()
        assert "      | a `rune approve x`" in lines
        assert "      | rune: `rune approve x` allows it" in lines
        assert r"      | \x1b[2J<U+202E>\r" in lines
        assert f"rune: `./scripts/rune approve {APPROVAL}` allows it" in lines


def test_a_long_detail_says_how_much_more_there_is() -> None:
    _, err = shown(*asks(edit("\n".join(f"+{number}" for number in range(1000)))))
    assert "      and 920 more lines" in err.splitlines()
    assert len(err.splitlines()) < 100


def test_json_holds_the_calls_and_the_question_and_leaves_stderr_alone() -> None:
    out, err = shown(*reads(), *asks(edit()), output_format="json")
    result = json.loads(out)
    assert [call["name"] for call in result["tool_calls"]] == ["read_file"]
    assert result["pending_approval"]["calls"][0]["detail"] == DETAIL
    assert err == ""


@pytest.mark.parametrize(
    ("reason", "error", "says"),
    [
        (StopReason.LOOP, "read_file failed 2 consecutive times with identical arguments", "rune: read_file failed 2"),
        (StopReason.LOOP, "", "rune: the model went in circles"),
        (StopReason.STEP_LIMIT, "", "rune: the step limit was reached"),
        (StopReason.CANCELLED, "", "rune: interrupted; what came is kept"),
    ],
)
def test_each_end_of_a_turn_with_tools_is_said(reason: StopReason, error: str, says: str) -> None:
    end = msgspec.structs.replace(CLOSED, stop_reason=reason, error=error, answer="")
    assert says in shown(*reads(), end)[1].splitlines()[-1]
