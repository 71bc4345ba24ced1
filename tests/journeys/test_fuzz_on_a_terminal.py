"""Whatever a model, a file, a folder or a person writes: the terminal gets text, and Textual's own sequences.

A thousand texts go through the widgets of the running app, and everything that it writes to its terminal is read;
then some of them go all the way, through a process on a terminal.
"""

import json
import logging
import os
import signal
import unicodedata
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import cycle
from pathlib import Path

import pytest
from rich.cells import cell_len

from rune.config.instructions import InstructionFile, Instructions, LeftOut
from rune.config.trust import TrustStatus
from rune.errors import ServerError
from rune.host.clock import SystemClock
from rune.models.scripted import ScriptedTransport, breaks, says
from rune.models.transport import ModelInfo
from rune.records.turns import StopReason
from rune.surface.prompt_history import Sent
from rune.surface.rows import ConversationRow, ModelRow
from rune.text.safe_text import safe_text
from rune.tui.footer_state import FooterState
from rune.tui.header_state import HeaderState
from rune.tui.screens.conversation_picker import ConversationPicker
from rune.tui.screens.history_matches import MATCHES, HistoryMatches
from rune.tui.screens.history_search import HistorySearch
from rune.tui.screens.instructions import InstructionsScreen
from rune.tui.screens.model_picker import ModelPicker
from rune.tui.screens.picker import Picker, PickerRows
from rune.tui.transcript_state import Answer, CommandOutput, Ending, Entry, Said, Thought, Told, ToolCard, Transcript
from rune.tui.widgets.completion import OPTIONS, CompletionPopup
from rune.tui.widgets.footer import Footer
from rune.tui.widgets.header import Header
from rune.tui.widgets.notice_bar import NoticeBar
from rune.tui.widgets.prompt import Prompt
from rune.tui.widgets.transcript import TranscriptView
from rune.tui.widgets.trust_bar import TrustBar
from rune.tui.widgets.waiting import WaitingMessages
from tests.journeys.hostile_text import ALONE, hostile_texts, sendable, unexpected, without_modes
from tests.journeys.shell import Shell
from tests.journeys.terminal import Pty
from tests.tui.stage import Stage, stage

TEXTS = tuple(hostile_texts(1_000))
EACH_ALONE = TEXTS[:ALONE]
PASTED = "> [Pasted"
FEWER = (*EACH_ALONE, *TEXTS[ALONE::2])  # where one text takes many lines
SIZE = (120, 400)  # much is seen at once


@asynccontextmanager
async def attacked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, size: tuple[int, int] = SIZE, **options: object
) -> AsyncGenerator[Stage]:
    """Open the app on a terminal; in the end nothing hostile was written to it, and nothing went wrong."""
    async with stage(tmp_path, size=size, painted=True, **options) as at:  # pyright: ignore[reportArgumentType]  # as named
        await at.settled()
        yield at
        await at.pilot.pause()
        assert at.app.is_running
        written = "".join(at.written)
    assert at.app.return_code == 0
    assert [ascii(piece) for piece in unexpected(written)] == []
    # That a model fails, which one here does on purpose, is health's to note.
    logged = [record for record in caplog.records if record.name != "rune.observability.health"]
    assert [record.getMessage() for record in logged if record.levelno >= logging.WARNING] == []


async def look_at_all(at: Stage) -> None:
    """Page through the transcript."""
    view = at.app.chat.query_one(TranscriptView)
    await at.paint()
    view.to_top()
    await at.paint()
    assert no_actions(at)
    while not view.following:
        view.page(1)
        await at.paint()


def no_actions(at: Stage) -> bool:
    """Say whether nothing on the screen runs an action when it is clicked."""
    strips = at.app.screen._compositor.render_strips()  # pyright: ignore[reportPrivateUsage]  # tests look inside
    metas = [style.meta for strip in strips for _, style, _ in strip if style is not None and style.meta]
    return not any("@click" in meta for meta in metas)  # the scrollbar's are of the mouse


def entries(number: int, text: str) -> Iterator[Entry]:
    """Give a text as every kind of entry where it is a single attack, else as an answer and one other kind."""
    key = f"{number}/"
    yield Answer(key=key + "answer", text=text, model=text, complete=number % 3 > 0)
    others: list[Entry] = [
        Said(key=key + "said", text=text),
        Thought(key=key + "thinking", text=text, running=True),
        ToolCard(key=key + "card", call_id=text, name=text, effect=text, state="failed", output=text),
        Told(key=key + "told", text=text, hint=text, tier=1),
        Ending(key=key + "end", reason=StopReason.FAILED, text=text, hint=text),
        CommandOutput(key=key + "command", command=text, text=text, ok=number % 2 == 0),
    ]
    yield from others if number < ALONE else others[number % len(others) :][:1]


def pieces(texts: Sequence[str], many: int) -> Iterator[Sequence[str]]:
    return (texts[first : first + many] for first in range(0, len(texts), many))


def test_the_grammar_tells_every_attack_from_what_textual_writes() -> None:
    frame = "\x1b[?2026h\x1b[1;1H\x1b[0m\x1b[38;2;1;2;3;48;5;7;1m{}\x1b[0m\n\x1b[2;1H\x1b[0;97mend\x1b[0m\x1b[?2026l"
    assert unexpected(frame.format("the Elbe")) == []
    missed = [
        text
        for text in EACH_ALONE
        if not unexpected(frame.format(text)) and not unexpected(frame.format(text.replace("\n", "\\n")))
    ]
    assert [text for text in missed if safe_text(text, newlines=False, tabs=False) != text] == []


async def test_in_the_transcript(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with attacked(tmp_path, caplog) as at:
        view = at.app.chat.query_one(TranscriptView)
        for first in range(0, len(TEXTS), 100):
            shown = [entry for number in range(first, first + 100) for entry in entries(number, TEXTS[number])]
            view.show(Transcript(settled=tuple(shown)))
            await look_at_all(at)


async def test_in_thinking_that_is_open(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with attacked(tmp_path, caplog) as at:
        view = at.app.chat.query_one(TranscriptView)
        for texts in pieces(TEXTS, 350):  # all folded ones are in view at once
            view.show(Transcript(settled=tuple(Thought(key=text, text=text) for text in texts)))
            await at.paint()
            view.toggle_thinking()
            await look_at_all(at)


async def test_in_the_bars_and_in_the_prompt(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with attacked(tmp_path, caplog, (120, 40)) as at:
        for text in EACH_ALONE:
            await show_in_bars(at, [text])
        for texts in pieces(TEXTS[ALONE:], 8):
            await show_in_bars(at, texts)
        assert no_actions(at)


async def show_in_bars(at: Stage, texts: Sequence[str]) -> None:
    chat, each = at.app.chat, cycle(texts)
    header = HeaderState(
        model=next(each), where="local", failing=(next(each),), worst_tier=1, folder=f"/home/{next(each)}"
    )
    chat.query_one(Header).show(header)
    chat.query_one(Footer).show(FooterState(hint=next(each), version=next(each), model=next(each)))
    chat.query_one(WaitingMessages).show([next(each), next(each)])
    chat.query_one(NoticeBar).offer((next(each),))
    chat.query_one(Prompt).set_text("\n".join(texts), as_command=len(texts) > 1)
    await at.paint()


async def test_in_the_pickers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    models = [
        ModelRow(name=text, provider=text, parameters=text, quantisation=text, capabilities=(text,), refused=refused)
        for text, refused in zip(TEXTS, cycle(("", "no room for it", "")))
    ]
    talks = [
        ConversationRow(
            id=text, title=text, channel="task", folder=text, last_active="2026-11-30T12:00:00.000Z", messages=1
        )
        for text in TEXTS
    ]

    async def load_models() -> tuple[Sequence[ModelRow], Sequence[str]]:
        return models, TEXTS[:40]  # more than there is room for

    async def load_talks() -> Sequence[ConversationRow]:
        return talks

    async with attacked(tmp_path, caplog) as at:
        for picker in (ModelPicker(load_models, current=TEXTS[3]), ConversationPicker(load_talks, now_ms=0)):
            await look_through(at, picker)


async def look_through(at: Stage, picker: Picker) -> None:
    await at.app.push_screen(picker)
    await at.settled()
    rows = picker.query_one(PickerRows)
    await at.until(lambda: rows.size.height > 1, "the rows")
    for _ in range(0, len(TEXTS), rows.size.height - 1):
        picker.action_page(1)
        await at.paint()
    assert no_actions(at)
    picker.dismiss(None)
    await at.pilot.pause()


async def test_in_the_search_for_what_was_sent(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with attacked(tmp_path, caplog, (120, 40)) as at:
        for texts in pieces(EACH_ALONE, MATCHES):
            await at.app.push_screen(HistorySearch([Sent(text) for text in texts]))
            await at.pilot.pause()
            found = at.app.screen.query_one(HistoryMatches).option_list
            assert found.option_count == len(set(texts))
            for place in range(found.option_count):
                found.highlighted = place
                await at.paint()
            await at.paste(texts[0])
            at.app.pop_screen()


async def test_in_what_would_instruct(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with attacked(tmp_path, caplog) as at:
        bar = at.app.chat.query_one(TrustBar)
        for texts in pieces(EACH_ALONE, 3):
            bar.ask(status(texts))
            await at.paint()
        changed = tuple(f"{sign}{text}" for text, sign in zip(FEWER, cycle("+-@# ")))
        for changes in ((), changed):
            screen = InstructionsScreen(status(FEWER, changes), SystemClock())
            await at.app.push_screen(screen)
            await at.settled()
            seen = ""
            while (now := at.text()) != seen:
                seen = now
                await at.pilot.press("pagedown")
            assert "\n" in seen
            at.app.pop_screen()
            await at.pilot.pause()


def status(texts: Sequence[str], changes: tuple[str, ...] = ()) -> TrustStatus:
    files = tuple(InstructionFile(path=text, text=text, sha256="0" * 64) for text in texts)
    left_out = tuple(LeftOut(path=text, reason=text) for text in texts)
    root = Path("/home") / texts[0].replace("\0", "")
    found = Instructions(root=root, places=(), files=files, configuration=(), left_out=left_out)
    return TrustStatus(state="changed" if changes else "untrusted", instructions=found, changes=changes)


async def test_in_what_a_command_could_go_on_with(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    names = dict.fromkeys(sendable(text) for text in EACH_ALONE)
    models = [ModelInfo(name=name, provider="scripted", capabilities=frozenset({"chat"})) for name in names]
    async with attacked(tmp_path, caplog, (120, 40), model=ScriptedTransport(models=models)) as at:
        await at.type("/model ")
        popup = at.app.chat.query_one(CompletionPopup)
        await at.until(lambda: len(popup.options) == min(len(names), OPTIONS), "the names")
        for _ in range(OPTIONS):
            assert popup.takes_key("down")
            await at.paint()


async def test_in_a_talk(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    texts = [" ".join(each) for each in pieces(FEWER, 100)]
    answers = [says(text, thinking=text) for text in texts[1::2]]
    answers += [breaks(text, ServerError(text, status=500, phase="token")) for text in texts[::2]]
    async with attacked(tmp_path, caplog, answers=answers) as at:
        for number, text in enumerate(texts, 1):
            await at.paste(text)
            await at.pilot.press("enter")
            await at.until(lambda many=number: len(at.model.requests) == many and not at.talk.busy, "the end of a turn")
        await look_at_all(at)


# All the way: from files, folders, a model and keys through a process to a terminal.


def drawn_by_pyte(text: str) -> bool:
    """Say whether pyte draws what follows in the line too: it stops at what has no width and no combining class."""
    return all(cell_len(char) or unicodedata.combining(char) for char in safe_text(text))


def on_pty(shell: Shell) -> Pty:
    environ = {**shell.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
    return Pty(shell.command(), environ, size=(120, 40), folder=shell.folder)


def opened(shell: Shell, *, folder: bytes, text: str, model: str) -> None:
    """Put a text wherever one comes from but the keyboard."""
    shell.folder = Path(os.fsdecode(os.fsencode(shell.folder) + b"/" + folder))
    shell.folder.mkdir()
    (shell.folder / "AGENTS.md").write_text(text.replace("\0", ""), encoding="utf-8")  # a NUL makes it no text
    script = shell.folder.parent / "script.json"
    slow = {"text": "done " * 500, "delay_ms": 20}
    answers = [{"text": f"{text} answered", "thinking": text}, {"text": text, "error": "server"}, slow]
    script.write_text(json.dumps({"answers": answers, "model": model}))
    shell.environ["RUNE_SCRIPTED_MODEL"] = str(script)


def pasted(terminal: Pty, text: str) -> None:
    """Paste a text as terminals do, which let no ESC through."""
    terminal.type(b"\x1b[200~" + sendable(text.replace("\x1b", "")).encode() + b"\x1b[201~")


def sees(terminal: Pty, *texts: str) -> None:
    """Wait until one of these is on the screen."""
    terminal.wait_for(lambda: any(text in terminal.screen() for text in texts))


def commands(terminal: Pty, line: str) -> None:
    """Type a command as somebody does, letter after letter: what comes at once was pasted."""
    for length, letter in enumerate(line, 1):
        terminal.type(letter.encode())
        sees(terminal, f"> {line[:length]}".rstrip())
    terminal.type(b"\r")


def says_there(terminal: Pty, text: str) -> None:
    """Paste a text, and send it once it is there."""
    pasted(terminal, text)
    sees(terminal, f"> {text.split(maxsplit=1)[0]}", PASTED)
    terminal.type(b"\r")


def spent_day(shell: Shell, said: Sequence[str]) -> tuple[str, list[str]]:
    """Look at everything that shows foreign text; returns what was written, without modes, and those."""
    with on_pty(shell) as terminal:
        sees(terminal, "message, /command")
        sees(terminal, "scr1pted")
        says_there(terminal, f"first {said[0]}")
        sees(terminal, "answered")
        terminal.type(b"\x14")  # ctrl+t: the thinking
        for keys, shows in ((b"\x0c", "Models"), (b"", "Conversations"), (b"\x12", "esc leaves")):
            terminal.type(keys) if keys else commands(terminal, "/resume")
            sees(terminal, shows)
            pasted(terminal, said[1])
            terminal.type(b"\x1b")
            terminal.wait_for(lambda gone=shows: gone not in terminal.screen())
        commands(terminal, "/trust")
        sees(terminal, "What would instruct Rune")
        terminal.type(b"\x1b")
        terminal.wait_for(lambda: "What would instruct Rune" not in terminal.screen())
        commands(terminal, "/model [/x] [red]")  # which shows what there is on the way
        sees(terminal, "did not work")
        says_there(terminal, f"second {said[2]}")
        sees(terminal, "it failed")
        says_there(terminal, f"third {said[3]}")
        sees(terminal, "done done")
        says_there(terminal, f"fourth {said[4]}")
        sees(terminal, "waiting")
        pasted(terminal, f"fifth {said[5]}")
        sees(terminal, "> fifth", PASTED)
        drafts = shell.home / "state" / "drafts"
        terminal.wait_for(lambda: any(b"fifth" in path.read_bytes() for path in drafts.glob("*.json")))
        terminal.signal(signal.SIGKILL)
        assert terminal.ended() == -signal.SIGKILL
        written = terminal.bytes
    with on_pty(shell) as terminal:
        sees(terminal, "unsent")
        terminal.type(b"\x1b[A")
        sees(terminal, "> fourth", PASTED, "\n\N{UPWARDS ARROW} ")  # or its end, as much of it as there is room for
        terminal.type(b"\x03")
        sees(terminal, "message, /command")
        terminal.type(b"\x04")
        assert terminal.ended() == 0
        written += terminal.bytes
    return without_modes(written.decode())


def quiet_day(shell: Shell) -> tuple[str, list[str]]:
    """Begin and end the same way, with nothing in between."""
    with on_pty(shell) as first:
        sees(first, "scr1pted")
        first.signal(signal.SIGKILL)
        first.ended()
    with on_pty(shell) as second:
        sees(second, "scr1pted")
        second.type(b"\x04")
        second.ended()
    return without_modes((first.bytes + second.bytes).decode())


def test_all_the_way(tmp_path: Path) -> None:
    for each in ("quiet", "hostile"):
        (tmp_path / each).mkdir()
    quiet, hostile = Shell(tmp_path / "quiet"), Shell(tmp_path / "hostile")
    opened(quiet, folder=b"rivers", text="the Elbe", model="scr1pted")
    written, modes = quiet_day(quiet)
    assert unexpected(written) == []
    attacks = [text for text in EACH_ALONE if drawn_by_pyte(text)]
    texts = [" ".join(each) for each in pieces(attacks, len(attacks) // 6)]
    opened(
        hostile,
        folder=b"\x1b]0;x\x07\xe2\x80\xae[red][x]\xff\n\x9b2J",
        text=sendable(" ".join(attacks)),
        model="scr1pted" + sendable("\x1b]52;c;RVZJTA==\x07\u202e[/x]\x9b2J\ue000"),
    )
    written, hostile_modes = spent_day(hostile, texts)
    assert [ascii(piece) for piece in unexpected(written)] == []
    assert hostile_modes == modes
