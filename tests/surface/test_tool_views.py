"""Which result belongs to which call, out of what is stored."""

import msgspec

from rune.records.approvals import PendingApprovalRecord
from rune.records.messages import ConversationMessageRecord
from rune.records.tools import PreparedCall, ToolCall, ToolResult
from rune.store.intents import StoredResult
from rune.surface.rows import CallRow
from rune.surface.tool_text import line_of
from rune.surface.tool_views import call_rows, effect_of

NOW = "2026-11-30T12:00:00.000Z"


def message(number: int, role: str, turn: str = "trn_1", **fields: object) -> ConversationMessageRecord:
    values = {
        "id": f"msg_{number}",
        "ts": NOW,
        "role": role,
        "content": f"text {number}",
        "conversation_id": "cnv_1",
        "task_id": "tsk_1",
        "turn_id": turn,
        "token_estimate": 1,
        "provenance": "tool" if role == "tool" else "model",
        **fields,
    }
    return msgspec.convert(values, ConversationMessageRecord)


def call(name: str, identity: str = "call_1", **arguments: str) -> ToolCall:
    return ToolCall(id=identity, name=name, arguments=arguments)


def asks(number: int, *calls: ToolCall, turn: str = "trn_1") -> ConversationMessageRecord:
    return message(number, "assistant", turn, tool_calls=[msgspec.to_builtins(each) for each in calls])


def said(number: int, made: ToolCall, turn: str = "trn_1") -> ConversationMessageRecord:
    return message(number, "tool", turn, tool_call_id=made.id, tool_name=made.name)


def prepared(identity: str, made: ToolCall, turn: str = "trn_1") -> PreparedCall:
    return PreparedCall(
        id=identity,
        turn_id=turn,
        call=made,
        effect=f"effect of {identity}",
        detail="+ a line",
        preconditions={},
        digest="sha256:" + "ab" * 32,
        confinement="none",
        why="every change asks",
        rule="",
    )


def result(
    identity: str,
    made: ToolCall,
    turn: str = "trn_1",
    *,
    intent: bool = False,
    outcome: str = "ok",
    told: str = "",
) -> StoredResult:
    values: dict[str, object] = {
        "id": identity,
        "turn_id": turn,
        "tool": made.name,
        "digest": "sha256:" + "ab" * 32,
        "outcome": outcome,
        "summary": f"summary of {identity}",
        "output": None,
        "milliseconds": 3,
        "confinement": "none",
        "exit_code": None,
        "files": [],
        "message_id": told,
    }
    return StoredResult(
        prepared=prepared(identity, made, turn) if intent else None,
        result=msgspec.convert(values, ToolResult),
        authorization="owner" if intent else None,
        at=NOW,
    )


def shown(rows: list[CallRow]) -> list[tuple[str, str, str, str | None]]:
    return [(row.message_id, row.call_id, row.result_message_id, row.outcome) for row in rows]


def test_reads_that_stand_side_by_side_keep_their_order() -> None:
    first, second = call("read_file", "call_1", path="a.py"), call("read_file", "call_2", path="b.py")
    rows = call_rows(
        [asks(1, first, second), said(2, first), said(3, second)], [result("cal_1", first), result("cal_2", second)]
    )
    assert shown(rows) == [("msg_1", "cal_1", "msg_2", "ok"), ("msg_1", "cal_2", "msg_3", "ok")]
    assert [(row.effect, row.text, row.summary) for row in rows] == [
        ("a.py", "text 2", "summary of cal_1"),
        ("b.py", "text 3", "summary of cal_2"),
    ]


def test_ids_that_each_answer_counts_anew_are_not_taken_for_one_another() -> None:
    look, change = call("read_file", path="a.py"), call("edit_file", path="a.py")
    rows = call_rows(
        [asks(1, look), said(2, look), asks(3, change), said(4, change), asks(5, look), said(6, look)],
        [result("cal_1", look), result("cal_2", change, intent=True), result("cal_3", look)],
    )
    assert shown(rows) == [
        ("msg_1", "cal_1", "msg_2", "ok"),
        ("msg_3", "cal_2", "msg_4", "ok"),
        ("msg_5", "cal_3", "msg_6", "ok"),
    ]
    assert (rows[1].effect, rows[1].detail, rows[1].allowed_by) == ("effect of cal_2", "+ a line", "owner")


def test_a_call_that_was_approved_ends_in_the_turn_that_goes_on() -> None:
    change = call("edit_file", path="a.py")
    rows = call_rows(
        [asks(1, change), said(2, change, "trn_2")], [result("cal_1", change, "trn_2", intent=True, outcome="denied")]
    )
    assert shown(rows) == [("msg_1", "cal_1", "msg_2", "denied")]


def test_a_call_that_waits_says_what_it_would_do_and_has_no_outcome() -> None:
    change, other = call("edit_file", path="a.py"), call("run_command", "call_2", command="pytest")
    question = PendingApprovalRecord(
        id="apr_1",
        turn_id="trn_1",
        conversation_id="cnv_1",
        calls=(prepared("cal_1", change),),
        loop_state="sha256:" + "ab" * 32,
        expires_at=NOW,
    )
    rows = call_rows([asks(1, change, other)], [], [question])
    assert shown(rows) == [("msg_1", "cal_1", "", None), ("msg_1", "", "", None)]
    assert [row.effect for row in rows] == ["effect of cal_1", "pytest"]
    assert [line_of(row) for row in rows] == [
        "edit_file effect of cal_1: waits for you",
        "run_command pytest: waits for you",  # its turn comes when what stands before it is answered
    ]


def test_a_call_without_a_result_for_which_nobody_is_asked_was_not_carried_out() -> None:
    change = call("edit_file", path="a.py")
    rows = call_rows([asks(1, change)], [])
    assert [line_of(row) for row in rows] == ["edit_file a.py: not carried out"]
    assert [row.waits for row in rows] == [False]


def test_a_result_belongs_to_the_message_that_it_names_whatever_turn_that_is_of() -> None:
    look = call("read_file", path="a.py")
    messages = [asks(1, look), said(2, look), asks(3, look, turn="trn_2"), said(4, look, "trn_2")]
    # Stored in another order, and both by the turn that went on after a pause.
    results = [result("cal_2", look, "trn_2", told="msg_4"), result("cal_1", look, "trn_2", told="msg_2")]
    assert shown(call_rows(messages, results)) == [("msg_1", "cal_1", "msg_2", "ok"), ("msg_3", "cal_2", "msg_4", "ok")]


def test_a_result_that_names_its_message_is_not_taken_for_another() -> None:
    look = call("read_file", path="a.py")
    rows = call_rows(
        [asks(1, look), said(2, look), asks(3, look), said(4, look)], [result("cal_2", look, told="msg_4")]
    )
    assert shown(rows) == [("msg_1", "", "msg_2", None), ("msg_3", "cal_2", "msg_4", "ok")]


def test_a_kill_of_which_the_model_was_told_says_nothing_of_a_later_call_alike() -> None:
    change = call("edit_file", path="a.py")
    killed = result("cal_1", change, intent=True, outcome="unknown", told="msg_2")
    rows = call_rows([asks(1, change), said(2, change), asks(3, change)], [killed])
    assert shown(rows) == [("msg_1", "cal_1", "msg_2", "unknown"), ("msg_3", "", "", None)]


def test_a_call_that_a_kill_cut_off_may_have_run_though_no_model_was_told() -> None:
    change = call("edit_file", path="a.py")
    rows = call_rows([asks(1, change)], [result("cal_1", change, intent=True, outcome="unknown")])
    assert shown(rows) == [("msg_1", "cal_1", "", "unknown")]


def test_a_result_without_a_receipt_is_still_what_the_model_read() -> None:
    look = call("read_file", path="a.py")
    rows = call_rows([asks(1, look), said(2, look)], [])
    assert shown(rows) == [("msg_1", "", "msg_2", None)]
    assert rows[0].text == "text 2"


def test_a_result_whose_receipt_was_erased_does_not_take_that_of_another_tool() -> None:
    look, change = call("read_file", path="a.py"), call("edit_file", path="a.py")
    rows = call_rows(
        [asks(1, look), said(2, look), asks(3, change), said(4, change)], [result("cal_2", change, intent=True)]
    )
    assert shown(rows) == [("msg_1", "", "msg_2", None), ("msg_3", "cal_2", "msg_4", "ok")]


def test_two_calls_alike_that_kills_cut_off_are_two() -> None:
    change = call("edit_file", path="a.py")
    killed = [result(f"cal_{n}", change, f"trn_{n}", intent=True, outcome="unknown") for n in (1, 2)]
    rows = call_rows([asks(1, change), asks(2, change, turn="trn_2")], killed)
    assert [row.call_id for row in rows] == ["cal_1", "cal_2"]


def test_what_a_call_is_about_stands_in_one_line() -> None:
    assert effect_of({"path": "src/a b.py", "limit": 3}) == "src/a b.py"
    assert effect_of({"command": "pytest -q\n  tests"}) == "pytest -q tests"
    assert effect_of({"items": ["é"]}) == '{"items": ["é"]}'
    assert effect_of({}) == ""
    assert effect_of({"path": 3}) == '{"path": 3}'
    assert len(effect_of({"path": "a" * 5000})) == 200
