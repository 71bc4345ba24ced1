"""What the entries of a transcript look like."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.records.turns import StopReason
from rune.text.safe_text import safe_text
from rune.tui.drawing import Drawn, draw, foldable, guess_entry, lines_of, source_of
from rune.tui.lines import STYLES, Line, copied
from rune.tui.transcript_state import Answer, CommandOutput, Ending, Entry, Said, Thought, Told, ToolCard
from rune.turn.bounds import UNSAVED
from tests.tui.small_app import HOSTILE


def _lines(entry: Entry, width: int = 80, *, before: Entry | None = None, opened: bool = False) -> list[Line]:
    return [line for part in draw(entry, before, opened=opened).parts for line in lines_of(part, width)]


def _text(entry: Entry, width: int = 80, *, before: Entry | None = None, opened: bool = False) -> list[str]:
    return [line.text.rstrip() for line in _lines(entry, width, before=before, opened=opened)]


SAID = Said(key="s", text="fix the failing test")
THOUGHT = Thought(key="t", text="first I look\nthen I leap")
CARD = ToolCard(key="c", call_id="1", name="read_file", effect="tests/test_cart.py", state="done", milliseconds=120)


def test_a_wide_gutter_names_who_speaks() -> None:
    assert _text(SAID) == ["you    fix the failing test"]
    assert _text(Answer(key="a", text="Done."), before=SAID) == ["", "rune   Done."]


def test_a_narrow_gutter_has_a_mark() -> None:
    assert _text(SAID, 40) == ["> fix the failing test"]
    assert _text(Answer(key="a", text="Done."), 40, before=SAID) == ["", "· Done."]


def test_what_was_wrapped_is_copied_in_one_line_and_without_the_gutter() -> None:
    said = Said(key="s", text="a message that is longer than the line it has here")
    lines = _lines(said, 30)
    assert len(lines) > 1
    assert copied(lines) == said.text


def test_rune_is_named_once_for_a_thought_and_the_answer_after_it() -> None:
    assert _text(THOUGHT, before=SAID) == ["", "rune   ▸ thought, 6 words"]
    assert _text(Answer(key="a", text="Done."), before=THOUGHT) == ["       Done."]


def test_each_message_of_the_person_is_marked() -> None:
    assert _text(SAID, before=Said(key="r", text="before")) == ["", "you    fix the failing test"]


def test_a_message_that_the_person_did_not_type_says_where_it_came_from() -> None:
    assert _text(Said(key="s", text="x", provenance="piped")) == ["you    from a pipe", "       x"]


def test_an_opened_thought_shows_its_text() -> None:
    assert _text(THOUGHT, opened=True) == [
        "rune   ▾ thought, 6 words",
        "       first I look",
        "       then I leap",
        "",
    ]


def test_a_running_thought_shows_its_last_words() -> None:
    text = "one two " * 500 + "the very last words"
    (row,) = _text(Thought(key="t", text=text, running=True))
    assert row.startswith("rune   ▸ thinking … ")
    assert row.endswith("the very last words")
    assert len(row) <= 80


def test_an_answer_that_broke_off_says_so() -> None:
    assert _text(Answer(key="a", text="It was", complete=False))[-1].strip() == "… not complete"
    assert "not complete" not in "".join(_text(Answer(key="a", text="It was", complete=False, running=True)))


def test_an_answer_without_text_that_broke_off_is_still_seen() -> None:
    assert _text(Answer(key="a", text="", complete=False)) == ["rune   … not complete"]


def test_a_tool_call_is_one_row_with_its_time_at_the_edge() -> None:
    (row,) = _text(CARD)
    assert row.startswith("rune   · read_file tests/test_cart.py ")
    assert row.endswith("✓ 120 ms")
    assert len(row) == 80


@pytest.mark.parametrize(
    ("state", "milliseconds", "word"),
    [
        ("prepared", None, "prepared"),
        ("waiting", None, "waiting for you"),
        ("running", None, "running"),
        ("done", None, "✓ done"),
        ("done", 1250, "✓ 1.2 s"),
        ("failed", 3, "✗ failed 3 ms"),
    ],
)
def test_a_tool_call_says_in_words_how_far_it_is(state: str, milliseconds: int | None, word: str) -> None:
    card = ToolCard(key="c", call_id="1", name="run", state=state, milliseconds=milliseconds)  # pyright: ignore[reportArgumentType]  # parametrized
    assert _text(card)[0].endswith(word)


def test_the_output_of_a_running_tool_is_its_bounded_tail() -> None:
    output = "".join(f"line {number}\n" for number in range(100))
    rows = _text(ToolCard(key="c", call_id="1", name="run", state="running", output=output))
    assert rows[1].strip() == "… 92 more lines above"
    assert [row.strip() for row in rows[2:]] == [f"line {number}" for number in range(92, 100)]


def test_the_output_of_a_finished_tool_is_folded_until_it_is_opened() -> None:
    card = ToolCard(key="c", call_id="1", name="run", state="done", output="a\nb\n")
    assert len(_text(card)) == 1
    assert [row.strip() for row in _text(card, opened=True)[1:]] == ["a", "b"]


@pytest.mark.parametrize("reason", [reason for reason in StopReason if reason is not StopReason.ANSWERED])
def test_every_ending_is_told_in_words(reason: StopReason) -> None:
    text = " ".join(_text(Ending(key="e", reason=reason, text="why it ended", hint="what to do")))
    assert "why it ended" in text
    assert "what to do" in text
    assert len(text) > len("why it ended what to do") + 5


@pytest.mark.parametrize(
    ("reason", "kept", "words"),
    [
        (StopReason.CANCELLED, True, "· cancelled; what came is kept"),
        (StopReason.CANCELLED, False, "· cancelled"),
        (StopReason.INTERRUPTED, True, "· interrupted when Rune was ended; what came is kept"),
        (StopReason.INTERRUPTED, False, "· interrupted when Rune was ended; what was being written is lost"),
        (StopReason.INCOMPLETE, True, "· the answer broke off; what came is kept"),
        (StopReason.INCOMPLETE, False, "· the answer broke off"),
        (StopReason.LENGTH, False, "· stopped at the length limit"),
        (StopReason.FAILED, True, "! failed; what came is kept"),
        (StopReason.FAILED, False, "! failed"),
    ],
)
def test_an_ending_says_that_something_is_kept_only_where_it_is(reason: StopReason, kept: bool, words: str) -> None:
    assert _text(Ending(key="e", reason=reason, kept=kept)) == [f"       {words}"]


def test_why_it_failed_comes_before_what_is_kept() -> None:
    (row,) = _text(Ending(key="e", reason=StopReason.FAILED, text="no server answers"))
    assert row == "       ! failed: no server answers; what came is kept"


def test_what_could_not_be_saved_is_not_told_as_kept() -> None:
    row = " ".join(_text(Ending(key="e", reason=StopReason.FAILED, text=f"{UNSAVED}: the disk is full")))
    assert "this turn could not be saved: the disk is full" in row
    assert "is kept" not in row
    assert "gone when Rune is left" in row


def test_a_failure_has_a_mark_and_news_another() -> None:
    assert _text(Told(key="n", text="loaded")) == ["       · loaded"]
    assert _text(Told(key="n", text="disk full", hint="make room", tier=0)) == [
        "       ! disk full",
        "         make room",
    ]


def test_what_a_command_answers_keeps_its_layout_and_stands_to_the_left() -> None:
    rows = _text(CommandOutput(key="c", command="/health", text="store    ok\n  disk   12 %"))
    assert rows == ["you    /health", "  store    ok", "    disk   12 %"]


def test_why_a_command_failed_stands_where_its_output_would() -> None:
    rows = _text(CommandOutput(key="c", command="/x", text="no\nUsage: /x", ok=False))
    assert rows == ["you    /x", "  ! this did not work", "  no", "  Usage: /x"]


@pytest.mark.parametrize("width", [30, 40, 60])
def test_what_a_command_answers_is_wrapped_under_its_columns(width: int) -> None:
    text = "/resume [ID]  list the conversations of this folder\na sentence that is long and goes on and on"
    rows = _text(CommandOutput(key="c", command="/help", text=text), width)[1:]
    assert all(len(row) <= width for row in rows)
    starts = [len(row) - len(row.lstrip()) for row in rows]
    assert starts.count(2) == 2  # one for each line of the text


def _paste(lines: int) -> Said:
    return Said(key="s", text="\n".join(f"line {number}" for number in range(1, lines + 1)))


def test_a_long_paste_is_folded_to_its_head() -> None:
    rows = _text(_paste(5000))
    assert rows[0] == "you    line 1"
    assert rows[-2:] == ["       line 12", "       … 4,988 more lines"]
    assert len(rows) == 13
    assert foldable(_paste(5000))
    assert source_of(_paste(5000)) == _paste(5000).text


def test_a_message_of_a_page_is_shown_whole() -> None:
    assert len(_text(_paste(40))) == 40
    assert not foldable(_paste(40))
    assert len(_text(_paste(41))) == 13
    assert _text(_paste(41))[-1].strip() == "… 29 more lines"


def test_an_opened_paste_is_shown_whole_and_can_be_folded_again() -> None:
    said = _paste(5000)
    drawn = draw(said, None, opened=True)
    rows = _text(said, opened=True)
    assert rows[-2:] == ["       line 5000", "       ▴ fold it again"]
    assert drawn.parts[-1].action == "fold"
    assert "".join(part.source for part in drawn.parts) == said.text


def test_a_paste_of_one_endless_line_is_folded_too() -> None:
    rows = _text(Said(key="s", text="x" * 1_000_000))
    assert rows[-1].strip() == "… 998,000 more characters"
    assert len(rows) < 40


@given(st.text(st.sampled_from("ab\n"), max_size=300), st.integers(0, 60), st.integers(0, 9_000))
def test_head_and_rest_are_the_whole(text: str, lines: int, characters: int) -> None:
    said = Said(key="s", text=text + "y\n" * lines + "z" * characters + text)
    sources = [part.source for part in draw(said, None).parts]
    if foldable(said):
        assert said.text.startswith(sources[0])
        assert len(sources) == 2
        assert guess_entry(said, None, 80) < 100
    else:
        assert "".join(sources) == said.text


def test_a_part_that_cannot_change_is_the_same_object_while_an_answer_grows() -> None:
    text, known = "", None
    for number in range(60):
        text += f"Paragraph {number} is here.\n\n"
        before: Drawn | None = known
        known = draw(Answer(key="a", text=text, running=True), SAID, known=before)
        if before is not None:
            assert known.parts[: max(len(before.parts) - 2, 0)] == before.parts[: max(len(before.parts) - 2, 0)]
    assert known is not None
    settled = draw(Answer(key="a", text=text), SAID, known=known)
    assert settled.parts[:-2] == known.parts[: len(settled.parts) - 2]
    assert len(settled.parts) == 60


def test_an_opened_thought_that_grows_is_laid_out_only_at_its_end() -> None:
    text = "a line of thought\n" * 200
    known = draw(Thought(key="t", text=text, running=True), None, opened=True)
    grown = draw(Thought(key="t", text=text + "and more", running=True), None, opened=True, known=known)
    assert len(grown.parts) == 8  # the row, six chunks, the blank line
    assert grown.parts[1:5] == known.parts[1:5]


def test_an_entry_that_did_not_change_is_what_it_was() -> None:
    known = draw(Answer(key="a", text="x"), SAID)
    assert draw(Answer(key="a", text="x"), SAID, known=known) is known


@given(st.text(max_size=300), st.integers(1, 100))
def test_growing_and_drawing_at_once_look_the_same(text: str, cut: int) -> None:
    pieces = [text[: len(text) * number // 4] for number in range(1, 4)]
    known: Drawn | None = None
    for piece in pieces:
        known = draw(Answer(key="a", text=piece, running=True), SAID, known=known)
    known = draw(Answer(key="a", text=text), SAID, known=known)
    assert [lines_of(part, cut) for part in known.parts] == [
        lines_of(part, cut) for part in draw(Answer(key="a", text=text), SAID).parts
    ]


def _all_kinds(text: str) -> list[Entry]:
    return [
        Said(key="1", text=text, provenance="web"),
        Thought(key="2", text=text),
        Thought(key="3", text=text, running=True),
        Answer(key="4", text=text, complete=False),
        ToolCard(key="5", call_id=text, name=text, effect=text, state="failed", output=text),
        Told(key="6", text=text, hint=text, tier=1),
        Ending(key="7", reason=StopReason.FAILED, text=text, hint=text),
        CommandOutput(key="8", command=text, text=text, ok=False),
    ]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("width", [1, 2, 3, 9, 40, 80])
def test_no_line_is_unsafe_or_wider_than_asked(text: str, width: int) -> None:
    for entry in _all_kinds(text):
        for opened in (False, True):
            for line in _lines(entry, width, before=SAID, opened=opened):
                assert safe_text(line.text, newlines=False, tabs=False) == line.text
                assert line.cells <= max(width, 2), (entry, line)  # a wide character needs two
                assert {name for span in line.spans for name in span.style.split()} <= set(STYLES)


@given(st.text(max_size=400), st.integers(1, 120))
def test_any_text_is_drawn_safely(text: str, width: int) -> None:
    for entry in _all_kinds(text):
        assert guess_entry(entry, SAID, width) >= 1
        for line in _lines(entry, width, opened=True):
            assert safe_text(line.text, newlines=False, tabs=False) == line.text
