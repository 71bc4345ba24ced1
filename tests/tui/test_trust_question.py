"""Whether a folder's files may instruct Rune is asked plainly, and answered by nothing but an answer."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.events import Paste
from textual.widgets import Input

from rune.config.trust import TrustBook, TrustStatus
from rune.text.safe_text import safe_text
from rune.tui.lines import Span, line
from rune.tui.screens.instructions import InstructionsScreen, InstructionsText, wrapped
from rune.tui.widgets.choices import MARK, READING_SECONDS, Choices
from rune.tui.widgets.trust_question import TrustQuestion, changed_paths, trust_lines
from tests.fakes.clock import CountedClock
from tests.tui.small_app import HOSTILE, SIZES, SmallApp, is_safe, screen_rows, screen_text, settled

TOLD = (TrustQuestion.Answered, TrustQuestion.TypedPast, TrustQuestion.PastedPast)


class Folder:
    """A project that brings instructions, and what was trusted of it."""

    def __init__(self, path: Path) -> None:
        self.path = path / "project"
        (self.path / ".rune").mkdir(parents=True)
        self.write("AGENTS.md", "# Rules\nsay [b]yes[/b]\n")
        self.write(".rune/config.yaml", "tests: pytest\n")
        self.book = TrustBook(path / "trust.yaml")

    def write(self, name: str, text: str) -> None:
        (self.path / name).write_bytes(text.encode("utf-8", "surrogatepass"))

    def status(self) -> TrustStatus:
        return self.book.status(self.path)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def clock() -> CountedClock:
    return CountedClock()


class Asking(SmallApp):
    """A prompt and the question."""

    def __init__(self, clock: CountedClock) -> None:
        super().__init__(listens=TOLD)
        self.question = TrustQuestion(clock)

    def compose(self) -> Any:
        yield self.question
        yield Input()

    def answers(self) -> list[str]:
        return [message.choice for message in self.told if isinstance(message, TrustQuestion.Answered)]


def test_the_question_names_the_files_in_two_rows(folder: Folder) -> None:
    first, second = trust_lines(folder.status(), 80)
    assert first.text == " Files here would instruct Rune: AGENTS.md, .rune/config.yaml"
    assert second.text == " They are not read unless you trust them."


def test_a_change_names_what_changed_only(folder: Folder) -> None:
    folder.book.grant(folder.status())
    folder.write("AGENTS.md", "# Other rules\n")
    first, _ = trust_lines(folder.status(), 80)
    assert first.text == " Files that you trusted have changed: AGENTS.md"


def test_a_line_of_a_file_cannot_pass_for_the_name_of_one(folder: Folder) -> None:
    folder.write("AGENTS.md", "-- trusted/harmless.md\nx\n")
    folder.book.grant(folder.status())
    folder.write("AGENTS.md", "++ now/harmless.md\nx\n")
    assert changed_paths(folder.status()) == ("AGENTS.md",)


def test_many_files_are_counted(folder: Folder) -> None:
    for name in "abcdef":
        folder.write(f".rune/{name}.yaml", "x")
    assert trust_lines(folder.status(), 80)[0].text.endswith(" and 6 more")


@pytest.mark.parametrize("width", [20, 40, 60, 80, 160])
def test_the_words_fit_and_name_one_file_at_least(folder: Folder, width: int) -> None:
    lines = trust_lines(folder.status(), width)
    assert all(line.cells <= width for line in lines)
    assert "AGENT" in lines[0].text


@pytest.mark.parametrize("size", SIZES)
async def test_it_is_asked_in_three_rows_with_not_now_first(
    folder: Folder, clock: CountedClock, size: tuple[int, int]
) -> None:
    app = Asking(clock)
    async with app.run_test(size=size) as pilot:
        assert not app.question.display
        app.question.ask(folder.status())
        await pilot.pause()
        assert app.question.size.height == 3
        assert f"{MARK} Not now   Look at them   Trust them" in screen_text(app)


async def test_it_does_not_take_the_keyboard_by_itself(folder: Folder, clock: CountedClock) -> None:
    app = Asking(clock)
    async with app.run_test() as pilot:
        app.query_one(Input).focus()
        app.question.ask(folder.status())
        await pilot.pause()
        await pilot.press("h", "i")
        assert app.query_one(Input).value == "hi"


@pytest.mark.parametrize(
    ("keys", "choice"),
    [
        (("enter",), "not_now"),
        (("right", "enter"), "look"),
        (("right", "right", "right", "enter"), "trust"),
        (("down", "down", "up", "enter"), "look"),
        (("right", "escape"), "not_now"),
        (("left", "enter"), "not_now"),
    ],
)
async def test_arrows_move_and_enter_answers(
    folder: Folder, clock: CountedClock, keys: tuple[str, ...], choice: str
) -> None:
    app = Asking(clock)
    async with app.run_test() as pilot:
        status = folder.status()
        app.question.ask(status, focus=True)
        clock.advance(READING_SECONDS)
        await pilot.press(*keys)
        assert app.answers() == [choice]
        (told,) = app.told
        assert isinstance(told, TrustQuestion.Answered)
        assert told.status is status


async def test_nothing_answers_before_the_question_could_be_read(folder: Folder, clock: CountedClock) -> None:
    app = Asking(clock)
    async with app.run_test() as pilot:
        app.question.ask(folder.status(), focus=True)
        clock.advance(READING_SECONDS - 0.01)
        await pilot.press("right", "enter", "escape")
        assert app.answers() == []
        clock.advance(0.01)
        await pilot.press("enter")
        assert app.answers() == ["look"]


async def test_what_is_typed_goes_past_it(folder: Folder, clock: CountedClock) -> None:
    app = Asking(clock)
    async with app.run_test() as pilot:
        app.question.ask(folder.status(), focus=True)
        clock.advance(5)
        await pilot.press("t", "space", "é")
        past = [message.character for message in app.told if isinstance(message, TrustQuestion.TypedPast)]
        assert past == ["t", " ", "é"]
        assert app.answers() == []


async def test_an_enter_among_typed_keys_does_not_answer(folder: Folder, clock: CountedClock) -> None:
    app = Asking(clock)
    async with app.run_test() as pilot:
        app.question.ask(folder.status(), focus=True)
        clock.advance(5)
        await pilot.press("right", "right", "y", "enter")
        assert app.answers() == []


async def test_a_paste_never_answers(folder: Folder, clock: CountedClock) -> None:
    app = Asking(clock)
    async with app.run_test() as pilot:
        app.question.ask(folder.status(), focus=True)
        clock.advance(5)
        app.query_one(Choices).post_message(Paste("yes\n"))
        await pilot.press("enter")
        assert app.answers() == []
        assert [message.text for message in app.told if isinstance(message, TrustQuestion.PastedPast)] == ["yes\n"]


@pytest.mark.parametrize("size", SIZES)
async def test_a_click_answers(folder: Folder, clock: CountedClock, size: tuple[int, int]) -> None:
    app = Asking(clock)
    async with app.run_test(size=size) as pilot:
        app.question.ask(folder.status())
        await pilot.pause()
        row = next(place for place, text in enumerate(screen_rows(app)) if "Trust them" in text)
        at = (screen_rows(app)[row].index("Trust them"), row)
        await pilot.click(offset=at)
        assert app.answers() == []
        clock.advance(1)
        await pilot.click(offset=at)
        assert app.answers() == ["trust"]


async def test_where_nothing_is_to_be_trusted_nothing_is_asked(folder: Folder, clock: CountedClock) -> None:
    app = Asking(clock)
    async with app.run_test() as pilot:
        app.question.ask(folder.book.grant(folder.status()))
        await pilot.pause()
        assert not app.question.asking
        assert not app.question.display


async def test_very_narrow_answers_stand_below_each_other(folder: Folder, clock: CountedClock) -> None:
    app = Asking(clock)
    async with app.run_test(size=(30, 15)) as pilot:
        app.question.ask(folder.status(), focus=True)
        await pilot.pause()
        rows = [row for row in screen_rows(app) if row.strip() in {f"{MARK} Not now", "Look at them", "Trust them"}]
        assert len(rows) == 3


@pytest.mark.parametrize("size", SIZES)
async def test_the_texts_can_be_read_in_full_before_they_are_trusted(
    folder: Folder, clock: CountedClock, size: tuple[int, int]
) -> None:
    folder.write(
        "AGENTS.md", "first [b]line[/b]\n" + "a long line " * 30 + "\n" + "line\n" * 100 + "the \u202elast\x1b[2J"
    )
    app = SmallApp()
    async with app.run_test(size=size) as pilot:
        app.push_screen(InstructionsScreen(folder.status(), clock))
        await settled(app, pilot)
        assert "What would instruct Rune" in screen_text(app)
        assert "first [b]line[/b]" in screen_text(app)
        await pilot.press("end")
        await pilot.pause()
        assert "tests: pytest" in screen_text(app)
        seen = ""
        for _ in range(200):
            seen = screen_text(app) + seen
            if "the <U+202E>last\\x1b[2J" in seen:
                break
            await pilot.press("up")
        assert "the <U+202E>last\\x1b[2J" in seen
        text = app.screen.query_one(InstructionsText)
        assert text.virtual_size.width <= text.size.width
        assert all(is_safe(row) for row in screen_rows(app))


@pytest.mark.parametrize(
    ("keys", "answer"),
    [(("escape",), None), (("enter",), None), (("right", "enter"), "not_now"), (("right", "right", "enter"), "trust")],
)
async def test_it_can_be_decided_where_it_was_read(
    folder: Folder, clock: CountedClock, keys: tuple[str, ...], answer: str | None
) -> None:
    app = SmallApp()
    answers: list[str | None] = []
    async with app.run_test() as pilot:
        app.push_screen(InstructionsScreen(folder.status(), clock), answers.append)
        await pilot.pause()
        await pilot.press("x", "enter")
        assert answers == []
        clock.advance(1)
        await pilot.press(*keys)
        await pilot.pause()
        assert answers == [answer]


async def test_a_change_is_shown_as_a_difference_with_its_marks(folder: Folder, clock: CountedClock) -> None:
    folder.book.grant(folder.status())
    folder.write("AGENTS.md", "# Rules\nsay no\x1b\n")
    app = SmallApp()
    async with app.run_test() as pilot:
        app.push_screen(InstructionsScreen(folder.status(), clock))
        await settled(app, pilot)
        rows = [row.strip() for row in screen_rows(app)]
        assert "What changed since you trusted it" in rows[0]
        assert "-say [b]yes[/b]" in rows
        assert "+say no\\x1b" in rows


async def test_what_may_not_instruct_is_shown_with_its_reason(folder: Folder, clock: CountedClock) -> None:
    folder.write(".rune/big.yaml", "x" * 40_000)
    app = SmallApp()
    async with app.run_test() as pilot:
        app.push_screen(InstructionsScreen(folder.status(), clock))
        await settled(app, pilot)
        await pilot.press("end")
        await pilot.pause()
        assert ".rune/big.yaml is left out:" in screen_text(app)


@given(text=st.text(max_size=60), width=st.integers(2, 30))
def test_wrapping_loses_nothing_and_fits(text: str, width: int) -> None:
    whole = line(Span(safe_text(text, newlines=False, tabs=False), "inserted"))
    rows = list(wrapped(whole, width))
    assert "".join(row.text for row in rows) == whole.text
    assert all(row.cells <= width for row in rows)


async def test_hostile_texts_and_names_stay_text(folder: Folder, clock: CountedClock) -> None:
    folder.write("AGENTS.md", "\n".join(HOSTILE).replace("\ud800", ""))
    for name in HOSTILE[:6]:
        folder.write(f".rune/{name.replace('/', '_')}.yaml", "x")
    app = Asking(clock)
    async with app.run_test(size=(40, 15)) as pilot:
        app.question.ask(folder.status())
        await pilot.pause()
        assert all(is_safe(row) for row in screen_rows(app))
        app.push_screen(InstructionsScreen(folder.status(), clock))
        await settled(app, pilot)
        for _ in range(40):
            assert all(is_safe(row) for row in screen_rows(app))
            await pilot.press("pagedown")
