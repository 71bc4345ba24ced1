"""Calls in a line, and what a person decides by: nothing foreign in it passes for Rune's own words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.records.tools import Outcome
from rune.surface.rows import ApprovalRow
from rune.surface.tool_text import BAR, approval_lines, asked_lines, call_line, rules_of, took, waiting_lines
from rune.text.cells import cell_len
from rune.text.safe_text import safe_text
from rune.turn.events import AskedCall

NOW_MS = 1_796_040_000_000
HOSTILE = st.text(st.characters()) | st.sampled_from(
    ["rune: allowed", "\n| x\nrune: `rune approve all`", "\x1b[2J\x9b1m\u202e", "a\r\nb\u2028c", "\U000e0041\u200b"]
)


def asked(effect: str = "src/cart.py +1 -1", detail: str = "", why: str = "", rule: str = "") -> AskedCall:
    return AskedCall(call_id="cal_1", name="edit_file", effect=effect, detail=detail, why=why, rule=rule)


def row(*calls: AskedCall, **fields: str) -> ApprovalRow:
    return ApprovalRow(
        id="apr_01h0000000000000000000abcd",
        conversation_id="cnv_1",
        turn_id="trn_1",
        asked_at="2026-11-30T12:00:00.000Z",
        expires_at="2026-12-30T12:00:00.000Z",
        folder=fields.pop("folder", "/home/ada/shop"),
        title=fields.pop("title", "mend the cart"),
        calls=calls,
        **fields,  # pyright: ignore[reportArgumentType]  # literals, widened by the keywords
    )


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(None, ""), (0, "0 ms"), (999, "999 ms"), (1400, "1.4 s"), (59_999, "59 s"), (200_000, "3 min 20 s")],
)
def test_how_long_it_took(milliseconds: int | None, text: str) -> None:
    assert took(milliseconds) == text


@pytest.mark.parametrize(
    ("outcome", "summary", "line"),
    [
        ("ok", "", "edit_file src/cart.py +1 -1: done (12 ms)"),
        ("ok", "2 places\nchanged", "edit_file src/cart.py +1 -1: 2 places changed (12 ms)"),
        ("ok", "src/cart.py +1 -1: 40 lines", "edit_file src/cart.py +1 -1: 40 lines (12 ms)"),
        ("ok", "+1 -1", "edit_file src/cart.py +1 -1: done (12 ms)"),
        ("ok", "exit code 0 (0.3 s)", "edit_file src/cart.py +1 -1: exit code 0 (0.3 s)"),
        ("ok", "found (2 hits)", "edit_file src/cart.py +1 -1: found (2 hits) (12 ms)"),
        ("failed", "not found", "edit_file src/cart.py +1 -1: failed: not found (12 ms)"),
        ("denied", "", "edit_file src/cart.py +1 -1: not allowed (12 ms)"),
        ("unknown", "", "edit_file src/cart.py +1 -1: may have run (12 ms)"),
        (None, "", "edit_file src/cart.py +1 -1: not carried out (12 ms)"),
    ],
)
def test_a_call_and_what_came_of_it_is_one_line(outcome: Outcome | None, summary: str, line: str) -> None:
    assert call_line("edit_file", "src/cart.py +1 -1", outcome, summary=summary, milliseconds=12) == line


@given(HOSTILE, HOSTILE, HOSTILE, HOSTILE)
def test_every_line_of_a_detail_stands_behind_the_bar_and_is_safe(
    effect: str, detail: str, why: str, rule: str
) -> None:
    lines = list(asked_lines(asked(effect, detail, why, rule)))
    own = 1 + bool(why)
    assert all(line.startswith(BAR) for line in lines[own:])
    assert all(safe_text(line, newlines=False) == line for line in lines)
    assert "\n".join(line.removeprefix(BAR) for line in lines[own:]) == safe_text(detail).removesuffix("\n")


def test_a_long_detail_is_cut_only_where_that_is_wanted_and_says_so() -> None:
    call = asked(detail="\n".join(f"+{number}" for number in range(5000)))
    assert len(list(asked_lines(call))) == 5001
    short = list(asked_lines(call, most=80))
    assert (len(short), short[-1]) == (82, "and 4,920 more lines")


def test_what_always_would_allow_is_each_rule_once() -> None:
    calls = [asked(rule="edit_file(src/**)"), asked(rule="edit_file(src/**)"), asked(rule="")]
    assert rules_of(calls) == ("edit_file(src/**)",)


@given(HOSTILE, HOSTILE)
def test_a_list_of_questions_has_lines_that_fit(folder: str, effect: str) -> None:
    lines = list(waiting_lines([row(asked(effect), folder=folder)], NOW_MS))
    assert len(lines) == 2
    assert all(cell_len(line) <= 76 and safe_text(line, newlines=False) == line for line in lines)
    assert lines[0].startswith("…00abcd  ")


@given(HOSTILE, HOSTILE, HOSTILE)
def test_all_of_a_question_is_safe_whatever_is_in_it(title: str, detail: str, reason: str) -> None:
    one = row(asked(detail=detail, rule=title), title=title, standing="decided", decision="deny", reason=reason)
    assert all(safe_text(line, newlines=False) == line for line in approval_lines(one, NOW_MS))


def test_all_of_a_question_says_how_it_was_answered() -> None:
    said = row(asked(), standing="decided", decision="deny", reason="not\nthere", closed_at="2026-11-30T12:01:00.000Z")
    assert [*approval_lines(said, NOW_MS)][-1].startswith("refused by you ")
    assert [*approval_lines(said, NOW_MS)][-1].endswith(": not there")
    assert "expired" in [*approval_lines(row(asked(), standing="expired"), NOW_MS)][-1]
    assert [*approval_lines(row(asked()), NOW_MS)][-1] == "edit_file src/cart.py +1 -1"
