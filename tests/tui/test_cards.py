"""What the cards of tools, checklists and diffs look like."""

import pytest

from rune.tools.diffs import diff
from rune.tui.cards import DIFF_ROWS, LONG_DIFF
from rune.tui.drawing import draw, foldable, lines_of, source_of
from rune.tui.entries import Checklist, CommandOutput, Entry, ToolCard
from rune.turn.events import ChecklistItem
from tests.tui.small_app import HOSTILE, is_safe

SMALL = diff("total = 0\n", "total = Decimal(0)\n", "src/cart.py").text
LARGE = diff("", "".join(f"line {number}\n" for number in range(200)), "src/cart.py").text


def shown(entry: Entry, width: int = 80, *, opened: bool = False) -> list[str]:
    parts = draw(entry, None, opened=opened).parts
    return [line.text.rstrip() for part in parts for line in lines_of(part, width)]


def card(**fields: object) -> ToolCard:
    given: dict[str, object] = {"key": "k", "call_id": "c", "name": "edit_file", "effect": "src/cart.py +1 -1"}
    return ToolCard(**(given | fields))  # pyright: ignore[reportArgumentType]  # fields of it


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"state": "running", "seconds": 0}, "running"),
        ({"state": "running", "seconds": 14}, "running 14 s"),
        ({"state": "running", "seconds": 134}, "running 2 min 14 s"),
        ({"state": "failed", "exit_code": 3, "milliseconds": 2100}, "✗ exit 3 2.1 s"),
        ({"state": "denied"}, "✗ not allowed"),
        ({"state": "cancelled", "milliseconds": 40}, "✗ cancelled 40 ms"),
        ({"state": "unknown"}, "? may have run"),
    ],
)
def test_a_card_says_in_words_how_it_stands(fields: dict[str, object], says: str) -> None:
    assert shown(card(**fields))[0].endswith(says)


def test_what_came_of_a_call_stands_in_its_row_where_there_is_room() -> None:
    done = card(name="read_file", effect="src/cart.py", state="done", milliseconds=12, summary="lines 1-80 of 212")
    assert shown(done) == ["rune   · read_file src/cart.py · lines 1-80 of 212" + " " * 23 + "✓ 12 ms"]
    assert shown(done, 40) == ["· · read_file src/cart.py        ✓ 12 ms"]


def test_a_change_that_was_made_is_shown_as_a_diff_of_a_few_rows() -> None:
    assert [row.strip() for row in shown(card(state="done", detail=SMALL))[1:]] == [
        "src/cart.py",
        "@@ -1 +1 @@",
        "1 - total = 0",
        "1 + total = Decimal(0)",
    ]
    rows = shown(card(state="done", detail=LARGE))
    assert len(rows) == DIFF_ROWS + 2
    assert rows[-1].strip() == "… 190 more lines of the diff: ctrl+o"
    assert shown(card(state="done", detail=LARGE), opened=True)[-1].strip() == "200 + line 199"


def test_what_waits_is_folded_as_the_question_shows_it_and_opens() -> None:
    waits = card(state="waiting", detail=SMALL)
    assert len(shown(waits)) == 1
    assert foldable(waits) == "tools"
    assert len(shown(waits, opened=True)) == 5


def test_a_failure_is_open_a_few_lines_with_its_reason() -> None:
    reason = "the text to be replaced stands there three times: give more of what is around it, so that it is one"
    rows = shown(card(state="failed", summary=reason, output="".join(f"line {n}\n" for n in range(30))))
    assert " ".join(row.strip() for row in rows[1:3]) == reason
    assert rows[3].strip() == "… 24 more lines above"
    assert [row.strip() for row in rows[4:]] == [f"line {number}" for number in range(24, 30)]


def test_the_opened_output_is_whole_and_says_when_it_is_not() -> None:
    output = "".join(f"line {n}\n" for n in range(100))
    rows = shown(card(name="run_command", state="done", detail="pytest -q\nin ~/shop", output=output), opened=True)
    assert [row.strip() for row in rows[1:]] == ["pytest -q", "in ~/shop", *(f"line {n}" for n in range(100))]
    assert "evidence" in shown(card(state="done", output="a", kept=True), opened=True)[-1]


def test_a_failure_says_why_once_and_nothing_that_is_for_the_model() -> None:
    why = "Nothing was changed. The text to be replaced stands there three times: give more of what is around it."
    text = f'{why}\nAsk again.\nThe arguments of edit_file: {{"type": "object"}}'
    for summary in (why, f"{why[:60]}…"):
        failed = card(state="failed", summary=summary, output=text)
        for rows in (shown(failed), shown(failed, opened=True)):
            said = " ".join(row.strip() for row in rows[1:])
            assert said == f"{why} Ask again."
            assert "Nothing" not in rows[0]


@pytest.mark.parametrize(
    ("fields", "row"),
    [
        ({"state": "done", "summary": "+1 -1"}, "edit_file src/cart.py +1 -1 ✓ done"),
        ({"name": "list_directory", "effect": ".", "summary": ".: 13 names"}, "list_directory . · 13 names ✓ done"),
        ({"name": "run_command", "effect": "ls", "summary": "exit code 0 (0.1 s)"}, "run_command ls ✓ done"),
        (
            {
                "name": "run_command",
                "effect": "ls",
                "summary": "exit code 2 (0.1 s)",
                "state": "failed",
                "exit_code": 2,
            },
            "run_command ls ✗ exit 2",
        ),
    ],
)
def test_nothing_is_said_twice_in_a_row(fields: dict[str, object], row: str) -> None:
    assert " ".join(shown(card(**({"state": "done"} | fields)))[0].split()).endswith(row)


def test_the_way_to_all_of_the_output_is_one_for_the_person() -> None:
    output = "exit code 0 (0.1 s)\nNot all of the output is here; read_artifact b2bc7d3f8b65 shows it.\na"
    long = {"state": "done", "kept": True, "artifact": "b2bc7d3f8b65", "summary": "exit code 0 (0.1 s)"}
    rows = shown(card(name="run_command", effect="make", output=output, **long), opened=True)
    assert [row.strip() for row in rows[1:]] == [
        "Not all of the output is here; `/artifact b2bc7d3f8b65` shows it.",
        "a",
    ]
    rows = shown(card(name="run_command", effect="make", output="a", **long), opened=True)
    assert rows[-1].strip() == "this is not all of it; `/artifact b2bc7d3f8b65` shows it"


def test_a_diff_stays_one_after_the_change_was_made() -> None:
    waits = shown(card(state="waiting", detail=SMALL), opened=True)
    made = card(state="done", detail=SMALL, summary="+1 -1", output=f"Done: src/cart.py +1 -1\n{SMALL}")
    rows = shown(made, opened=True)
    assert rows[1:5] == waits[1:]
    assert [row.strip() for row in rows[5:]] == ["Done: src/cart.py +1 -1"]
    only = shown(card(state="done", output=SMALL), opened=True)
    assert only[1:] == waits[1:]


def test_what_the_person_ran_is_theirs_and_says_so() -> None:
    own = card(name="", effect="ls", own=True, state="done", milliseconds=3, output="a\nb")
    rows = shown(own)
    assert rows[0].startswith("you    ▾ ! ls")
    assert [row.strip() for row in rows[1:]] == ["ran as you, outside the sandbox", "a", "b"]


def test_a_checklist_says_without_colour_what_is_done() -> None:
    items = (
        ChecklistItem(text="look", state="done"),
        ChecklistItem(text="fix", state="doing"),
        ChecklistItem(text="test", state="open"),
    )
    rows = [row.strip() for row in shown(Checklist(key="k", items=items))]
    assert rows == ["rune   · checklist, 1 of 3 done", "☑ look", "▶ fix", "☐ test"]


def test_a_command_that_answers_with_a_diff_is_drawn_as_one() -> None:
    said = CommandOutput(key="k", command="/diff", text=f"the last turn changed 1 file:\n\n{SMALL}")
    rows = [row.strip() for row in shown(said)]
    assert rows[1:] == ["the last turn changed 1 file:", "", "src/cart.py", "@@ -1 +1 @@", "1 - total = 0", rows[-1]]
    assert rows[-1] == "1 + total = Decimal(0)"
    assert source_of(said) == said.text
    assert foldable(said) == ""


def test_a_long_diff_of_a_command_is_cut_until_it_is_opened() -> None:
    said = CommandOutput(key="k", command="/diff", text=LARGE)
    assert len(shown(said)) == LONG_DIFF + 2
    assert foldable(said) == "tools"
    assert shown(said, opened=True)[-1].strip() == "200 + line 199"


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("width", [1, 12, 40, 80])
@pytest.mark.parametrize("opened", [True, False])
def test_whatever_a_tool_says_is_drawn_safely_and_fits(hostile: str, width: int, opened: bool) -> None:
    detail = diff("a\n", f"{hostile}\n", hostile).text
    for state in ("running", "failed", "done", "waiting"):
        entry = card(name=hostile, effect=hostile, detail=detail, summary=hostile, output=hostile, state=state)
        for part in draw(entry, None, opened=opened).parts:
            for each in lines_of(part, width):
                assert is_safe(each.text)
                assert each.cells <= width
    for part in draw(Checklist(key="k", items=(ChecklistItem(text=hostile, state="open"),)), None).parts:
        assert all(is_safe(each.text) and each.cells <= width for each in lines_of(part, width))
