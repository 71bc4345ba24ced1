"""The table of `rune sessions list`: whole where nobody sees it, and never wider than the terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from rune.cli.listing import listing
from rune.records.messages import ConversationRecord
from rune.store.conversations import Conversation

NOW = 1_796_040_000_000
MINUTES_AGO = "2026-11-30T11:58:00.000Z"


def a_row(title: str = "rivers", model: str = "scripted", *, fork: bool = False, hidden: bool = False) -> Conversation:
    record = ConversationRecord(
        id="cnv_00000000000000000000abcdef",
        channel="task",
        folder="/home/ada/poems",
        title=title,
        model=model,
        created_at=MINUTES_AGO,
        forked_from="cnv_00000000000000000000uvwxyz" if fork else None,
    )
    return Conversation(record=record, last_active=MINUTES_AGO, messages=4, hidden=hidden, renamed=False)


def test_into_a_file_it_is_whole() -> None:
    heading, line = listing([a_row("rivers " * 12)], NOW, None).splitlines()
    assert heading.split() == ["conversation", "last", "messages", "model", "title"]
    assert line.split()[:1] == ["cnv_00000000000000000000abcdef"]
    assert line.endswith(("rivers " * 12).strip())


@pytest.mark.parametrize(
    ("columns", "begins", "heading"),
    [
        (120, "cnv_00000000000000000000abcdef  ", ["conversation", "last", "messages", "model", "title"]),
        (80, "…abcdef  ", ["id", "last", "messages", "model", "title"]),
        (50, "…abcdef  ", ["id", "last", "title"]),
    ],
    ids=str,
)
def test_a_terminal_that_is_narrow_gets_less_of_each(columns: int, begins: str, heading: list[str]) -> None:
    row = a_row("rivers " * 12, "hf.co/somebody/a-model:Q4_K_M", fork=True, hidden=True)
    above, line = listing([row], NOW, columns).splitlines()
    assert above.split() == heading
    assert line.startswith(begins)
    assert line.endswith("  (hidden)") or columns < 80


@pytest.mark.parametrize("columns", [None, 120, 80, 50], ids=str)
def test_one_that_waits_says_so(columns: int | None) -> None:
    row = a_row("rivers", "")
    assert listing([row], NOW, columns, {row.record.id}).splitlines()[1].endswith("rivers  (waits for you)")
    assert "waits" not in listing([row], NOW, columns, {"cnv_other"})


@given(st.text(max_size=60), st.text(max_size=40), st.integers(1, 130), st.booleans())
def test_no_line_is_wider_than_the_terminal_while_there_is_room_for_an_age(
    title: str, model: str, columns: int, marked: bool
) -> None:
    shown = listing([a_row(title, model, fork=marked, hidden=marked)], NOW, columns)
    lines = shown.split("\n")
    assert len(lines) == 2
    assert all(cell_len(line) <= max(columns, 30) for line in lines)
