"""The question that waits: it shows exactly what would run, and takes no answer that was not meant as one."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from textual.events import Key, Paste
from textual.pilot import Pilot

from rune.text.safe_text import safe_text
from rune.tools.diffs import diff
from rune.tui.approval_lines import body_lines, choice_lines, choices_of, hint_lines
from rune.tui.key_runs import KeyRun
from rune.tui.lines import MARK, copied
from rune.tui.tool_entries import Asked
from rune.tui.widgets.approval_bar import ApprovalBar
from rune.tui.widgets.choices import READING_SECONDS
from rune.turn.events import AskedCall
from tests.fakes.clock import CountedClock
from tests.tui.small_app import HOSTILE, SIZES, SmallApp, is_safe, screen_rows, screen_text

CHANGE = diff("total = 0\n", "total = Decimal(0)\n", "src/cart.py").text
LONG = diff("", "".join(f"line {number}\n" for number in range(90)), "src/cart.py").text
STRAY = "tab writes a message instead (this is then not done)"
TOLD = (ApprovalBar.Answered, ApprovalBar.ReasonAsked, ApprovalBar.Passed, ApprovalBar.Left)


def call(
    detail: str = CHANGE, *, rule: str = "edit_file(src/**)", effect: str = "src/cart.py +1 -1", why: str = "it edits"
) -> AskedCall:
    return AskedCall(call_id=f"c{effect}", name="edit_file", effect=effect, detail=detail, why=why, rule=rule)


def asked(*calls: AskedCall, identity: str = "apr_1") -> Asked:
    return Asked(approval_id=identity, calls=calls or (call(),))


class Bar:
    """A bar that was asked something, and what it told."""

    def __init__(self, app: SmallApp, pilot: Pilot[None], bar: ApprovalBar, clock: CountedClock) -> None:
        self.app, self.pilot, self.bar, self.clock = app, pilot, bar, clock

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        for _ in range(3):
            await self.pilot.pause()

    @property
    def answers(self) -> list[tuple[str, bool]]:
        return [(each.decision, each.always) for each in self.app.told if isinstance(each, ApprovalBar.Answered)]

    @property
    def passed(self) -> list[object]:
        return [each.what for each in self.app.told if isinstance(each, ApprovalBar.Passed)]


@asynccontextmanager
async def bar_of(
    question: Asked,
    size: tuple[int, int] = (80, 24),
    *,
    seconds: float = READING_SECONDS,
    quiet: float = 0.0,
) -> AsyncGenerator[Bar]:
    clock = CountedClock()
    bar = ApprovalBar(clock, quiet=quiet)
    app = SmallApp(bar, listens=TOLD)
    async with app.run_test(size=size) as pilot:
        bar.ask(question)
        bar.focus()
        await pilot.pause()
        clock.advance(seconds)
        yield Bar(app, pilot, bar, clock)


@pytest.mark.parametrize(
    ("keys", "answers"),
    [
        (["y"], [("allow", False)]),
        (["a"], []),
        (["a", "enter"], [("allow", True)]),
        (["a", "x", "enter"], []),
        (["n"], [("deny", False)]),
        (["right", "enter"], [("allow", False)]),
        (["down", "right", "right", "enter"], [("deny", False)]),
        (["left", "left", "enter"], [("deny", False)]),
        (["enter"], []),
    ],
)
async def test_keys_and_arrows_answer_and_enter_alone_does_not(
    keys: list[str], answers: list[tuple[str, bool]]
) -> None:
    async with bar_of(asked()) as it:
        await it.press(*keys)
        assert it.answers == answers
        assert it.passed == []


async def test_no_answer_counts_before_it_could_be_read() -> None:
    async with bar_of(asked(), seconds=READING_SECONDS - 0.01) as it:
        await it.press("y", "a", "n", "right", "enter")
        assert it.answers == it.passed == []
        it.clock.advance(0.02)
        await it.press("y")
        assert it.answers == [("allow", False)]


async def test_another_question_must_be_read_anew() -> None:
    async with bar_of(asked()) as it:
        it.bar.ask(asked(identity="apr_2"))
        await it.press("y")
        assert it.answers == []
        it.clock.advance(READING_SECONDS)
        await it.press("y")
        assert it.answers == [("allow", False)]


async def test_what_is_pasted_never_answers_with_or_without_brackets() -> None:
    async with bar_of(asked()) as it:
        it.bar.post_message(KeyRun([Key("y", "y"), Key("enter", "\r")]))
        await it.pilot.pause()
        assert it.passed == []
        assert STRAY in screen_text(it.app)
        it.bar.post_message(Paste("y"))
        await it.pilot.pause()
        assert it.answers == []
        assert [type(each) for each in it.passed] == [Paste]


async def test_what_is_typed_quickly_behind_a_tab_is_for_the_prompt() -> None:
    async with bar_of(asked()) as it:
        it.bar.post_message(KeyRun([Key("y", "y"), Key("tab", "\t"), Key("n", "n"), Key("o", "o")]))
        await it.pilot.pause()
        assert it.answers == []
        assert len(it.app.said(ApprovalBar.Left)) == 1
        (run,) = it.passed
        assert isinstance(run, KeyRun)
        assert [key.key for key in run.keys] == ["n", "o"]


async def test_a_word_that_begins_like_an_answer_answers_nothing_and_says_where_to_write() -> None:
    async with bar_of(asked(), quiet=60.0) as it:
        await it.press("y")
        assert f"{MARK} y allow" in screen_text(it.app)
        await it.press("e", "s")
        assert it.answers == it.passed == []
        assert MARK not in screen_text(it.app)
        assert STRAY in screen_text(it.app)
        assert not it.app.said(ApprovalBar.ReasonAsked)


async def test_a_letter_right_behind_one_that_is_none_answers_nothing() -> None:
    async with bar_of(asked()) as it:
        await it.press("x", "y", "n", "a", "enter")
        assert it.answers == it.passed == []
        it.clock.advance(READING_SECONDS)
        await it.press("y")
        assert it.answers == [("allow", False)]


async def test_enter_behind_a_letter_means_it_and_an_arrow_takes_it_back() -> None:
    async with bar_of(asked(), quiet=60.0) as it:
        await it.press("y", "left", "escape")
        assert it.answers == []
        await it.press("y", "enter")
        assert it.answers == [("allow", False)]
        assert it.passed == []


async def test_a_rule_for_good_is_marked_and_waits_for_enter() -> None:
    async with bar_of(asked()) as it:
        await it.press("a")
        assert f"{MARK} a always edit_file(src/**)" in screen_text(it.app)
        assert "enter allows this, and such calls for good" in screen_text(it.app)
        assert it.answers == []
        await it.press("enter")
        assert it.answers == [("allow", True)]


async def test_a_letter_does_not_answer_another_question_than_the_one_that_was_seen() -> None:
    async with bar_of(asked(), quiet=60.0) as it:
        await it.press("y")
        it.bar.ask(asked(identity="apr_2"))
        it.clock.advance(READING_SECONDS)
        await it.press("n")
        assert it.answers == it.passed == []
        assert f"{MARK} n no" in screen_text(it.app)


async def test_what_is_no_answer_stays_here_and_keys_of_the_app_are_passed_on() -> None:
    async with bar_of(asked(call(rule=""))) as it:
        await it.press("x", "a", "ctrl+u", "backspace")
        assert it.answers == it.passed == []
        assert STRAY in screen_text(it.app)
        await it.press("ctrl+c")
        assert [key.key for key in it.passed if isinstance(key, Key)] == ["ctrl+c"]


@pytest.mark.parametrize("key", ["y", "a"])
async def test_nothing_is_allowed_before_its_last_row_was_in_sight(key: str) -> None:
    async with bar_of(asked(call(LONG))) as it:
        await it.press(key)
        assert "more below: y again" in screen_text(it.app)
        assert MARK not in screen_text(it.app)
        for _ in range(20):
            assert it.answers == []
            if "line 89" in screen_text(it.app):
                break
            await it.press("y")
        assert "line 89" in screen_text(it.app)
        await it.press("home", "y")
        assert it.answers == [("allow", False)]


async def test_what_was_not_seen_can_be_refused() -> None:
    async with bar_of(asked(call(LONG))) as it:
        await it.press("right", "enter")
        assert it.answers == []
        await it.press("n")
        assert it.answers == [("deny", False)]


async def test_the_rows_that_are_seen_are_numbered_of_all() -> None:
    async with bar_of(asked(call(LONG))) as it:
        count = len([*body_lines(asked(call(LONG)), 80)])
        head = screen_rows(it.app)[0]
        assert f"of {count} ↓" in head
        assert "↑" not in head
        await it.press("pagedown", "down")
        assert f"of {count} ↑↓" in screen_rows(it.app)[0]
        await it.press("end")
        assert f"-{count} of {count} ↑" in screen_rows(it.app)[0]
        assert "↓" not in screen_rows(it.app)[0]


async def test_where_it_cannot_be_answered_there_are_no_keys() -> None:
    async with bar_of(asked()) as it:
        it.bar.ask(asked(), elsewhere="open in process 4711: answer it there")
        await it.pilot.pause()
        text = screen_text(it.app)
        assert "open in process 4711: answer it there" in text
        assert not any(words in text for words in ("y allow", "n no", "esc"))
        assert not it.bar.answerable
        assert it.bar.ask(asked())
        await it.pilot.pause()
        assert "y allow" in screen_text(it.app)


async def test_esc_leaves_it_for_later_and_e_asks_for_the_reason() -> None:
    async with bar_of(asked()) as it:
        await it.press("escape")
        assert len(it.app.said(ApprovalBar.Left)) == 1
        await it.press("e")
        assert len(it.app.said(ApprovalBar.ReasonAsked)) == 1
        assert it.answers == []


async def test_always_shows_its_rule_and_is_there_only_where_every_call_has_one() -> None:
    async with bar_of(asked()) as it:
        assert "a always edit_file(src/**)" in screen_text(it.app)
        it.bar.ask(asked(call(), call(rule=""), identity="apr_2"))
        await it.pilot.pause()
        assert "always" not in screen_text(it.app)
        it.clock.advance(1)
        await it.press("a")
        assert it.answers == []


@pytest.mark.parametrize("size", [*SIZES, (200, 50)])
async def test_all_of_what_would_run_can_be_scrolled_to(size: tuple[int, int]) -> None:
    async with bar_of(asked(call(LONG)), size) as it:
        rows = screen_rows(it.app)
        assert it.bar.size.height <= max(size[1] * 3 // 5, size[1] - 5 if size[1] < 20 else 0)
        assert any("y allow" in row for row in rows)
        assert any("n no" in row for row in rows)
        seen: set[str] = set()
        for _ in range(400):
            seen |= {row.split("+")[-1].strip() for row in screen_rows(it.app) if "+ line" in row}
            if not it.bar.scrolls or f"line {89}" in seen:
                break
            it.bar.page(1)
            await it.pilot.pause()
        assert seen == {f"line {number}" for number in range(90)}
        await it.press("home")
        assert any("edit_file src/cart.py" in row for row in screen_rows(it.app))
        await it.press("end")
        assert any("line 89" in row for row in screen_rows(it.app))


async def test_it_takes_no_room_when_nothing_waits() -> None:
    async with bar_of(asked()) as it:
        it.bar.ask(None)
        await it.pilot.pause()
        assert not it.bar.display


async def test_it_is_laid_out_anew_when_the_window_is_resized() -> None:
    async with bar_of(asked()) as it:
        await it.pilot.resize_terminal(40, 15)
        await it.pilot.pause()
        rows = screen_rows(it.app)
        assert all(len(row) <= 40 for row in rows)
        assert any("a always edit_file(src/**)" in row for row in rows)
        assert any("e no, because" in row for row in rows)


def test_several_calls_begin_with_a_list_of_them() -> None:
    long = "make " + "all " * 30
    both = asked(call(), call(f"{long}\nin ~/shop", effect=f"{long[:20]}…"))
    first, second, third, *_ = (line.text for line in body_lines(both, 80))
    assert first == " 1/2 edit_file src/cart.py +1 -1"
    assert second.startswith(" 2/2 edit_file make all all all all all all")
    assert len(second) == 80
    assert third == ""


def test_several_calls_are_shown_one_after_another_with_their_reasons() -> None:
    both = asked(call(), call("make all\nin ~/shop", effect="make all", why="commands always ask"))
    text = "\n".join(line.text for line in [*body_lines(both, 80)][2:])
    assert text.index("1/2 edit_file") < text.index("2/2 edit_file") < text.index("in ~/shop")
    assert "asks because it edits" in text
    assert "asks because commands always ask" in text


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("width", [10, 20, 40, 80])
def test_hostile_text_is_shown_whole_and_safely(hostile: str, width: int) -> None:
    question = asked(call(hostile, effect=hostile, rule=hostile, why=hostile))
    rows = [*body_lines(question, width), *choice_lines(choices_of(question), 0, width)]
    for each in rows:
        assert is_safe(each.text)
        assert each.cells <= width
    shown = "".join(copied(body_lines(question, 10_000)).split())
    assert "".join(safe_text(hostile).split()) in shown


def test_what_cannot_be_seen_is_told_apart_from_what_was_written_so() -> None:
    hidden = [*body_lines(asked(call("rm \x1b[2J\u202e", effect="rm")), 80)]
    written = [*body_lines(asked(call("rm \\x1b[2J<U+202E>", effect="rm")), 80)]
    assert any("cannot be seen" in row.text for row in hidden)
    assert not any("cannot be seen" in row.text for row in written)
    (row,) = (row for row in hidden if row.text.startswith(" rm \\x1b"))
    assert [span.text for span in row.spans if "warning" in span.style] == ["\\x1b", "<U+202E>"]


@pytest.mark.parametrize("width", [20, 40, 80])
@pytest.mark.parametrize(("focused", "typed"), [(True, False), (False, False), (False, True)])
def test_it_says_what_a_message_would_do(width: int, focused: bool, typed: bool) -> None:
    rows = [row.text for row in hint_lines(focused=focused, typed=typed, width=width)]
    assert len(rows) <= 2
    assert all(len(row) <= width for row in rows)
    text = " ".join(row.strip() for row in rows)
    assert "…" not in text
    assert ("esc later" if focused else "tab: answer") in text
    if width == 80 and not focused:
        assert "instead" in text


def test_a_hint_takes_two_rows_rather_than_saying_less() -> None:
    rows = [row.text.strip() for row in hint_lines(focused=True, typed=False, width=40, hint="stray")]
    assert " ".join(rows) == STRAY
    assert len(rows) == 2
