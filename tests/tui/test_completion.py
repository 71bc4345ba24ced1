"""How a slash command could go on is offered over the prompt, and never in the way of a key."""

import asyncio
from collections.abc import Awaitable, Callable

from textual.app import ComposeResult
from textual.events import Key
from textual.pilot import Pilot
from textual.widgets import Static

from rune.surface.commands.completion import Candidates, Completion
from rune.surface.prompt_history import Sent
from rune.text.safe_text import safe_text
from rune.tui.widgets.completion import DEBOUNCE_SECONDS, OPTIONS, ROWS, SLICE, CompletionPopup
from rune.tui.widgets.prompt import Prompt
from tests.tui.prompt_app import PromptApp, burst, paste, shown

COMMANDS = {
    "/help": "list the commands",
    "/health": "how each part is",
    "/new": "begin anew",
    "/trace": "what was in a prompt",
    "/trust": "let a folder instruct",
}


class CompletionApp(PromptApp):
    """A prompt with help. `asked` are the lines that the source was asked about."""

    def __init__(self, source: Callable[[str], Awaitable[Candidates]] | None = None) -> None:
        super().__init__()
        self.asked: list[str] = []
        self._source = source or self._commands

    def compose(self) -> ComposeResult:
        yield Static("above", markup=False)
        yield Prompt()
        yield CompletionPopup(self._noted)

    async def _noted(self, line: str) -> Candidates:
        self.asked.append(line)
        return await self._source(line)

    async def _commands(self, line: str) -> Candidates:
        if " " not in line or line.startswith("/he"):
            return Candidates(options=tuple(Completion(text=name, note=note) for name, note in COMMANDS.items()))
        options = tuple(Completion(text=text) for text in ("grant", "revoke"))
        return Candidates(start=line.index(" ") + 1, options=options)

    @property
    def popup(self) -> CompletionPopup:
        return self.query_one(CompletionPopup)

    @property
    def names(self) -> list[str]:
        return [option.text for option in self.popup.options]


async def until(pilot: Pilot[None], met: Callable[[], bool]) -> None:
    for _ in range(500):
        if met():
            return
        await pilot.pause()
    raise AssertionError


async def test_a_typed_slash_opens_it_and_typing_narrows_it() -> None:
    app = CompletionApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("/")
        await until(pilot, lambda: len(app.names) == 5)
        await pilot.press("h")
        assert app.names[:2] == ["/help", "/health"]
        await pilot.press(*"lth")
        assert app.names == ["/health"]
        await pilot.press("x")
        assert app.names == []
        assert not app.popup.display


async def test_it_lies_over_the_rows_above_the_prompt_and_shows_names_and_notes() -> None:
    for width in (80, 40):
        app = CompletionApp()
        async with app.run_test(size=(width, 15)) as pilot:
            await pilot.press("/", "t")
            await until(pilot, lambda app=app: app.names[:2] == ["/trace", "/trust"])
            await pilot.pause()
            rows = shown(app.popup)
            assert app.popup.region == (0, app.prompt.region.y - len(rows), width, len(rows))
            assert rows[0].startswith("\u203a /trace")
            assert "what was in a prompt" in rows[0]
            assert app.prompt.region == (0, 14, width, 1)


async def test_no_more_than_eight_rows_of_two_hundred_are_shown_and_arrows_go_through_them() -> None:
    async def many(line: str) -> Candidates:
        del line
        return Candidates(options=tuple(Completion(text=f"/c{number:03}") for number in range(300)))

    app = CompletionApp(many)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("/", "c")
        await until(pilot, lambda: len(app.names) == OPTIONS)
        await pilot.pause()
        assert app.popup.size.height == ROWS
        await pilot.press(*["down"] * 9)
        assert app.popup.chosen == Completion(text="/c009")
        assert shown(app.popup)[-1].startswith("\u203a /c009")
        assert shown(app.popup)[-1].endswith("10/200")
        await pilot.press(*["up"] * 10)
        assert app.popup.chosen == Completion(text="/c199")


async def test_tab_takes_what_is_chosen_and_the_next_word_is_offered() -> None:
    app = CompletionApp()
    async with app.run_test() as pilot:
        await pilot.press(*"/tr")
        await until(pilot, lambda: len(app.names) == 2)
        await pilot.press("down", "tab")
        await until(pilot, lambda: app.names == ["grant", "revoke"])
        assert (app.prompt.text, app.prompt.is_command) == ("/trust ", True)
        assert app.popup.chosen == Completion(text="grant")
        await pilot.press("tab", "enter")
        assert app.sent == [("/trust grant", True)]


async def test_tab_on_a_command_that_nothing_follows_leaves_no_space() -> None:
    app = CompletionApp()
    async with app.run_test() as pilot:
        await pilot.press(*"/heal")
        await until(pilot, lambda: app.names == ["/health"])
        await pilot.press("tab")
        await until(pilot, lambda: "/health " in app.asked)
        await pilot.pause()
        assert (app.prompt.text, app.names) == ("/health", [])


async def test_what_is_typed_while_the_arguments_are_asked_for_stays_as_it_is() -> None:
    gate = asyncio.Event()

    async def slow(line: str) -> Candidates:
        if line == "/trust ":
            await gate.wait()
            return Candidates(start=7, options=(Completion(text="grant"),))
        return Candidates(options=(Completion(text="/trust"),))

    app = CompletionApp(slow)
    async with app.run_test() as pilot:
        await pilot.press(*"/tr")
        await until(pilot, lambda: app.names == ["/trust"])
        app.prompt.post_message(Key("tab", "\t"))
        await until(pilot, lambda: "/trust " in app.asked)
        app.prompt.post_message(Key("x", "x"))
        await until(pilot, lambda: app.prompt.text == "/trustx")
        gate.set()
        await pilot.pause()
        assert app.prompt.text == "/trustx"


async def test_enter_takes_what_does_not_stand_there_yet_and_then_sends() -> None:
    app = CompletionApp()
    async with app.run_test() as pilot:
        await pilot.press(*"/hel")
        await until(pilot, lambda: app.names[:1] == ["/help"])
        await pilot.press("enter")
        assert (app.prompt.text, app.sent) == ("/help", [])
        await pilot.press("enter")
        assert app.sent == [("/help", True)]


async def test_enter_takes_nothing_for_its_note_alone() -> None:
    async def modes(line: str) -> Candidates:
        options = (
            Completion(text="ask", note="each change asks"),
            Completion(text="edits", note="for a project of fools"),
        )
        return Candidates(start=line.index(" ") + 1, options=options) if " " in line else Candidates()

    for line, then in (("/permissions foo", "/permissions edits "), ("/thinking x", "")):
        app = CompletionApp(modes)
        async with app.run_test() as pilot:
            await pilot.press(*line)
            await until(pilot, lambda app=app, then=then: bool(app.names) is bool(then))
            await pilot.press("enter")
            assert app.sent == [(line, True)]
            if then:
                await pilot.press(*line)
                await until(pilot, lambda app=app: bool(app.names))
                await pilot.press("tab")
                assert app.prompt.text == then.strip()


async def test_enter_sends_at_once_what_was_typed_in_full() -> None:
    app = CompletionApp()
    async with app.run_test() as pilot:
        await pilot.press(*"/help")
        await until(pilot, lambda: bool(app.names))
        await pilot.press("enter")
        assert app.sent == [("/help", True)]
        burst(app.prompt, "/new\r")
        await until(pilot, lambda: len(app.sent) == 2)
        assert app.sent[1] == ("/new", True)


async def test_a_line_and_enter_typed_by_a_program_are_sent_whatever_is_offered() -> None:
    for keys, gap in (("/trust gr", 0.0002), ("/trust grant", 0.0002), ("/trust gr", 0.15)):
        app = CompletionApp()
        async with app.run_test() as pilot:
            await pilot.press(*"/trust ")
            await until(pilot, lambda app=app: app.names == ["grant", "revoke"])
            await pilot.press("ctrl+u")
            burst(app.prompt, keys)
            enter = Key("enter", "\r")
            enter.time = 1000 + len(keys) * 0.0002 + gap
            app.prompt.post_message(enter)
            await until(pilot, lambda app=app: bool(app.sent))
            assert app.sent == [(keys, True)]


async def test_enter_sends_what_stands_there_and_is_offered() -> None:
    app = CompletionApp()
    async with app.run_test() as pilot:
        await pilot.press(*"/trust ")
        await until(pilot, lambda: app.names == ["grant", "revoke"])
        await pilot.press(*"grant", "enter")
        assert app.sent == [("/trust grant", True)]


async def test_enter_sends_the_end_of_an_id_at_once_and_completes_its_beginning() -> None:
    ids = ("cnv_01m8qhw28556m3k5xqmjra9rwr", "cnv_01m8qhw28556m3k5xqmj35xvrf")

    async def conversations(line: str) -> Candidates:
        options = tuple(Completion(text=each) for each in ids) if " " in line else ()
        return Candidates(start=line.find(" ") + 1, options=options)

    for typed, sent in (("35xvrf", "/resume 35xvrf"), ("cnv_01m8qhw28556m3k5xqmj3", "")):
        app = CompletionApp(conversations)
        async with app.run_test() as pilot:
            await pilot.press(*"/resume ")
            await until(pilot, lambda app=app: len(app.names) == 2)
            await pilot.press(*typed)
            await until(pilot, lambda app=app: app.names == [ids[1]])
            await pilot.press("enter")
            assert [text for text, _ in app.sent] == ([sent] if sent else [])
            assert sent or app.prompt.text == f"/resume {ids[1]}"


async def test_nothing_is_offered_for_what_comes_from_the_history_until_something_is_typed() -> None:
    app = CompletionApp()
    async with app.run_test() as pilot:
        app.prompt.use_history([Sent("first"), Sent("/trust gr", command=True), Sent("/tr", command=True)])
        await pilot.press("up")
        await pilot.pause(DEBOUNCE_SECONDS * 2)
        assert (app.prompt.text, app.names, app.asked) == ("/tr", [], [])
        await pilot.press("up", "up")
        assert app.prompt.text == "first"
        await pilot.press("down", "a")
        await until(pilot, lambda: "/trust gra" in app.asked)
        assert app.names == ["grant"]
        app.prompt.set_text("/tr", as_command=True)
        await pilot.pause(DEBOUNCE_SECONDS * 2)
        assert app.names == []
        await pilot.press("u")
        await until(pilot, lambda: app.names == ["/trust"])


async def test_a_row_says_when_only_tab_would_take_it() -> None:
    app = CompletionApp()
    async with app.run_test(size=(40, 15)) as pilot:
        await pilot.press(*"/trust ")
        await until(pilot, lambda: app.names == ["grant", "revoke"])
        await pilot.pause()
        assert shown(app.popup) == ["\u203a grant" + " " * 29 + "tab", "  revoke"]
        await pilot.press("down")
        assert shown(app.popup) == ["  grant", "\u203a revoke"]


async def test_enter_behind_a_finished_word_sends() -> None:
    app = CompletionApp()
    async with app.run_test() as pilot:
        await pilot.press(*"/trust ")
        await until(pilot, lambda: app.names == ["grant", "revoke"])
        await pilot.press("enter")
        assert app.sent == [("/trust ", True)]
        await pilot.press(*"/trust ")
        await until(pilot, lambda: app.names == ["grant", "revoke"])
        await pilot.press("down", "enter", "enter")
        assert app.sent[1] == ("/trust revoke", True)


async def test_escape_closes_it_and_only_then_is_told() -> None:
    app = CompletionApp()
    async with app.run_test() as pilot:
        await pilot.press(*"/h")
        await until(pilot, lambda: bool(app.names))
        await pilot.press("escape")
        assert (app.names, app.told) == ([], [])
        await pilot.press("e", "escape")
        await pilot.pause(0.1)
        assert app.names == []
        assert [type(told) for told in app.told] == [Prompt.EscapePressed]
        await pilot.press("ctrl+u", "/")
        await until(pilot, lambda: len(app.names) == 5)


async def test_nothing_is_offered_for_what_is_no_typed_command() -> None:
    app = CompletionApp()
    async with app.run_test() as pilot:
        paste(app.prompt, "/h")
        await pilot.press("e", "ctrl+u", "!", "h", "ctrl+u", "a", "/", "h")
        await pilot.pause(0.1)
        assert app.asked == []
        await pilot.press("ctrl+u", *"/new", "ctrl+j", "x")
        await pilot.pause(0.1)
        assert app.names == []


async def test_an_answer_that_comes_too_late_is_thrown_away() -> None:
    gates: dict[str, asyncio.Event] = {}

    async def slow(line: str) -> Candidates:
        await gates.setdefault(line, asyncio.Event()).wait()
        return Candidates(options=(Completion(text=f"/for {line}"),))

    app = CompletionApp(slow)
    async with app.run_test() as pilot:
        await pilot.press("/")
        await until(pilot, lambda: app.asked == ["/"])
        await app.prompt.on_key(Key("f", "f"))
        app.popup.follow()
        gates["/"].set()
        for _ in range(9):
            await asyncio.sleep(0)
        assert app.names == []
        await until(pilot, lambda: app.asked == ["/", "/f"])
        gates["/f"].set()
        await until(pilot, lambda: app.names == ["/for /f"])


async def test_the_source_is_not_asked_for_each_of_many_quick_keys() -> None:
    app = CompletionApp()
    async with app.run_test() as pilot:
        burst(app.prompt, "/health", gap=0.02)
        await until(pilot, lambda: app.names == ["/health"])
        assert app.asked == ["/health"]


async def test_thousands_are_narrowed_in_slices() -> None:
    async def thousands(line: str) -> Candidates:
        del line
        return Candidates(options=tuple(Completion(text=f"/c{number}") for number in range(SLICE * 6)))

    app = CompletionApp(thousands)
    async with app.run_test() as pilot:
        await pilot.press(*"/c2999")
        await until(pilot, lambda: app.names == ["/c2999"])
        await pilot.press("tab", "enter")
        assert app.sent == [("/c2999", True)]


async def test_foreign_text_is_shown_safe_and_is_no_markup() -> None:
    async def hostile(line: str) -> Candidates:
        del line
        return Candidates(options=(Completion(text="/[red]x\x1b", note="[/] a\nb\u202e[@click=app.bell]c[/]"),))

    app = CompletionApp(hostile)
    async with app.run_test() as pilot:
        await pilot.press("/")
        await until(pilot, lambda: bool(app.names))
        await pilot.pause()
        (row,) = shown(app.popup)
        assert row == "\u203a /[red]x\\x1b  [/] a\\nb<U+202E>[@click=app.bell]c[/]"
        assert safe_text(row, newlines=False) == row
        await pilot.press("tab")
        assert app.prompt.text == "/[red]x\x1b"
