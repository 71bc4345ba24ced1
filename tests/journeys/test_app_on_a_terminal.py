"""The app on real terminals: it opens, keeps what is typed, and leaves everything as it was."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from rune.version import __version__
from tests.journeys.shell import SECONDS, Shell
from tests.journeys.terminal import Pty, Terminal, needs_tmux, until

OPEN = "scripted answers"  # the greeting says so once everything behind the app runs
EMPTY = "> message, /command"
LONG = {"text": " ".join(f"word{number}" for number in range(2000)), "delay_ms": 20}
MODES_OFF = [b"\x1b[?1000l", b"\x1b[?1003l", b"\x1b[?1006l", b"\x1b[?2004l", b"\x1b[?1004l", b"\x1b[?7h", b"\x1b[?25h"]


@pytest.fixture
def answering(shell: Shell) -> Shell:
    shell.script({"text": "The Elbe, the Po and the Loire."})
    return shell


def on_pty(shell: Shell, *arguments: str, command: list[str] | None = None) -> Pty:
    environ = {**shell.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
    return Pty(command or shell.command(*arguments), environ, folder=shell.folder)


def finished(shell: Shell) -> list[str]:
    return [event["body"]["stop_reason"] for event in shell.events("turn.finished")]


# What needs no tmux: the moments before the app stands, and how it ends.


def test_the_frame_comes_before_the_app_and_the_app_draws_over_it(answering: Shell) -> None:
    with on_pty(answering) as terminal:
        terminal.wait_for(f"v{__version__}".encode())
        assert " rune  opening" in terminal.screen()
        terminal.wait_for(lambda: OPEN in terminal.screen())
        frame, app = terminal.bytes.split(b"\x1b[?1049h")[1:]
        assert b"opening" in frame
        assert b"message, /command" in app


def test_the_prompt_stands_where_the_frame_has_shown_it(answering: Shell) -> None:
    with on_pty(answering) as terminal:
        terminal.wait_for(b"> ")
        row = next(number for number, line in enumerate(terminal.screen().splitlines()) if line.startswith(">"))
        terminal.wait_for(lambda: OPEN in terminal.screen())
        assert terminal.screen().splitlines()[row].startswith("> ")


def test_what_is_typed_from_the_first_moment_on_is_kept_once_and_in_order(answering: Shell) -> None:
    text = "the quick brown fox jümps over the lazy dog 0123456789"
    with on_pty(answering) as terminal:
        for letter in text:
            terminal.type(letter.encode())
            time.sleep(0.01)  # as somebody types, from before the frame until after the app stands
        terminal.wait_for(lambda: f"> {text}" in terminal.screen())
        assert terminal.bytes.split(b"\x1b[?1049h")[1].count(b"q") == 0
        assert terminal.screen().count("fox") == 1


def test_enter_that_is_typed_before_the_app_stands_sends(answering: Shell) -> None:
    with on_pty(answering) as terminal:
        terminal.wait_for(b"> ")
        terminal.type(b"Name three rivers\r")
        terminal.wait_for(lambda: "the Loire" in terminal.screen())
    assert [event["body"]["content"] for event in answering.events("user.message")] == ["Name three rivers"]


def test_a_broken_config_is_told_on_the_normal_screen(answering: Shell) -> None:
    answering.home.mkdir()
    (answering.home / "config.yaml").write_text("model: [")
    with on_pty(answering) as terminal:
        terminal.wait_for(b"> ")
        terminal.type(b"precious")
        assert terminal.ended() == 2
        assert "rune: " in terminal.after()
        assert "config.yaml" in terminal.after()
        assert terminal.settings() == terminal.settings_before


@pytest.mark.parametrize("arguments", [["-c", "-r", "01ABC"], ["--channel", "other"], ["--max-steps", "0"]])
def test_wrong_usage_is_told_on_the_normal_screen(answering: Shell, arguments: list[str]) -> None:
    with on_pty(answering, *arguments) as terminal:
        assert terminal.ended() == 2
        assert "rune: " in terminal.after()
        assert terminal.settings() == terminal.settings_before
    assert not answering.home.exists()


def test_a_conversation_that_is_none_is_told_on_the_normal_screen(answering: Shell) -> None:
    with on_pty(answering, "-r", "01NOTHING") as terminal:
        assert terminal.ended() == 1
        assert "01NOTHING" in terminal.after()
        assert terminal.settings() == terminal.settings_before


@pytest.mark.parametrize("wanted", [b"> ", b"\x1b[?2026$p", OPEN.encode()])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_it_in_order_at_any_time(answering: Shell, wanted: bytes, number: signal.Signals) -> None:
    with on_pty(answering) as terminal:
        terminal.wait_for(wanted)
        terminal.signal(number)
        assert terminal.ended() == 130, terminal.bytes.decode(errors="replace")[-2000:]
        assert terminal.settings() == terminal.settings_before
        assert terminal.bytes.rindex(b"\x1b[?1049l") > terminal.bytes.rindex(b"\x1b[?1049h")


def test_a_signal_closes_the_turn_that_runs(shell: Shell) -> None:
    shell.script(LONG)
    shell.environ["RUNE_COMMAND"] = "./scripts/rune"
    with on_pty(shell) as terminal:
        terminal.wait_for(b"> ")
        terminal.type(b"go on\r")
        terminal.wait_for(lambda: "word3" in terminal.screen())
        terminal.signal(signal.SIGTERM)
        assert terminal.ended() == 130
        assert "to go on: ./scripts/rune -r cnv_" in terminal.after()
        assert all(switch in terminal.bytes for switch in MODES_OFF)
    assert finished(shell) == ["cancelled"]


@pytest.mark.parametrize("ignored", ["", 'trap "" HUP; '])
def test_a_terminal_that_vanishes_ends_it(shell: Shell, ignored: str) -> None:
    shell.script(LONG)
    command = ["/bin/sh", "-c", ignored + 'exec "$@"', "sh", *shell.command()]
    with on_pty(shell, command=command) as terminal:
        terminal.wait_for(b"> ")
        terminal.type(b"go on\r")
        terminal.wait_for(lambda: "word3" in terminal.screen())
        terminal.hang_up()
        assert terminal.ended() == 130
    assert finished(shell) == ["cancelled"]


def test_stopped_it_gives_the_terminal_back_and_goes_on(answering: Shell) -> None:
    command = ["/bin/sh", "-c", 'set -m; "$@"; echo stopped; read -r _; fg >/dev/null', "sh", *answering.command()]
    with on_pty(answering, command=command) as terminal:
        terminal.wait_for(lambda: OPEN in terminal.screen())
        os.killpg(terminal.foreground(), signal.SIGTSTP)
        terminal.wait_for(b"stopped")
        assert terminal.settings() == terminal.settings_before
        terminal.type(b"\n")
        terminal.wait_for(lambda: terminal.bytes.count(b"\x1b[?1049h") == 3)
        terminal.type(b"still here")
        terminal.wait_for(lambda: "> still here" in terminal.screen())


# Where a terminal is missing.


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        ('"$@" | cat; exit ${PIPESTATUS[0]}', 2, "stdout is none"),
        ('TERM=dumb "$@"', 2, "TERM=dumb"),
        ('"$@" --output-format json', 2, "--output-format"),
        ('echo hello | "$@"', 0, "the Loire"),
        ('"$@" </dev/null', 2, "there is no message"),
    ],
)
def test_without_a_terminal_on_both_sides_there_is_no_app(answering: Shell, line: str, code: int, says: str) -> None:
    command = ["/bin/bash", "-c", line, "bash", *answering.command()]
    with on_pty(answering, command=command) as terminal:
        assert terminal.ended() == code
        assert says in terminal.screen()
        assert b"\x1b[?1049h" not in terminal.bytes


def test_stderr_elsewhere_the_app_is_on_the_screen_all_the_same(answering: Shell, tmp_path: Path) -> None:
    command = ["/bin/sh", "-c", f'exec "$@" 2>{tmp_path}/log', "sh", *answering.command()]
    with on_pty(answering, command=command) as terminal:
        terminal.wait_for(lambda: OPEN in terminal.screen())
        terminal.type(b"\x04")
        assert terminal.ended() == 0
    assert (tmp_path / "log").read_bytes() == b""


@pytest.mark.skipif(shutil.which("script") is None, reason="script is not installed")
def test_under_script_it_opens_and_ends(answering: Shell, tmp_path: Path) -> None:
    command = ["script", "-qec", " ".join(answering.command()), str(tmp_path / "typescript")]
    with on_pty(answering, command=command) as terminal:
        terminal.wait_for(lambda: OPEN in terminal.screen())
        terminal.type(b"\x04")
        assert terminal.ended() == 0


@pytest.mark.skipif(shutil.which("script") is None, reason="script is not installed")
def test_under_script_without_a_keyboard_it_opens_and_goes_with_it(answering: Shell, tmp_path: Path) -> None:
    typescript = tmp_path / "typescript"
    process = subprocess.Popen(
        ["script", "-qefc", " ".join(answering.command()), str(typescript)],
        stdin=subprocess.PIPE,  # nobody types; at its end `script` would type Ctrl+D
        stdout=subprocess.DEVNULL,
        cwd=answering.folder,
        env={**answering.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"},
    )
    try:
        until(lambda: (typescript.exists() and OPEN in typescript.read_text()) or None, "the app")
    finally:
        process.kill()
        process.communicate(timeout=SECONDS)
    until(lambda: answering.events("session.ended") or None, "the end")


def test_one_shot_loads_nothing_of_the_app(answering: Shell) -> None:
    command = answering.command("-p", "hello")
    report = subprocess.run(
        [command[0], "-X", "importtime", *command[1:]],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd=answering.folder,
        env=answering.environ,
        timeout=SECONDS,
        check=True,
    ).stderr.decode()
    names = {line.rpartition("|")[2].strip().partition(".")[0] for line in report.splitlines()}
    assert "apsw" in names, "Python's import report has another form now"
    assert not names & {"textual", "rich", "pygments"}


# On tmux.


@needs_tmux
def test_a_talk_from_the_first_key_to_the_last_line(answering: Shell) -> None:
    with Terminal(answering) as terminal:
        terminal.type("Name three rivers")
        terminal.wait_for("> Name three rivers")
        terminal.wait_for(OPEN)
        terminal.keys("Enter")
        terminal.wait_for("the Loire")
        terminal.wait_for(EMPTY)
        terminal.keys("C-d")
        assert terminal.ended() == 0
        screen = terminal.wait_for("rune -r ")
        assert not terminal.on_alternate_screen()
        before, after = terminal.settings()
        assert before == after
        assert screen.count("rune -r ") == 1


@needs_tmux
def test_resized_in_mid_stream_it_fits_and_goes_on(shell: Shell) -> None:
    shell.script(LONG)
    with Terminal(shell, size=(120, 40)) as terminal:
        terminal.wait_for(OPEN)
        terminal.type("go on")
        terminal.keys("Enter")
        terminal.wait_for("word20")
        for columns, rows in ((40, 15), (80, 24), (160, 48), (40, 15)):
            terminal.resize(columns, rows)
            until(lambda rows=rows: prompt_row(terminal) == rows - 2 or None, "the prompt in its place")
        seen = terminal.screen()
        terminal.wait_for(lambda screen: screen != seen)
        terminal.keys("Escape")
        terminal.wait_gone("esc stops")
        terminal.keys("C-d")
        assert terminal.ended() == 0
    assert finished(shell) == ["cancelled"]


def prompt_row(terminal: Terminal) -> int:
    rows = [number for number, line in enumerate(terminal.screen().splitlines()) if line.startswith("> message")]
    return rows[-1] if rows else -1


@needs_tmux
def test_escape_stops_the_turn_and_what_was_said_stays(shell: Shell) -> None:
    shell.script(LONG)
    with Terminal(shell) as terminal:
        terminal.wait_for(OPEN)
        terminal.type("go on")
        terminal.keys("Enter")
        terminal.wait_for("word5")
        terminal.keys("Escape")
        terminal.wait_gone("esc stops")
        assert "word5" in terminal.screen()
        assert finished(shell) == ["cancelled"]
        terminal.keys("C-d")
        assert terminal.ended() == 0


@needs_tmux
def test_continued_everything_is_there(answering: Shell) -> None:
    with Terminal(answering) as terminal:
        terminal.wait_for(OPEN)
        terminal.type("Name three rivers")
        terminal.keys("Enter")
        terminal.wait_for("the Loire")
        terminal.wait_for(EMPTY)
        terminal.keys("C-d")
        assert terminal.ended() == 0
    with Terminal(answering, "-c") as terminal:
        screen = terminal.wait_for("the Loire")
        assert "Name three rivers" in screen
        terminal.type("and more")
        terminal.keys("Enter")
        terminal.wait_for(lambda screen: screen.count("the Loire") == 2)
        terminal.keys("C-d")
        assert terminal.ended() == 0
    assert len({event["body"]["conversation_id"] for event in answering.events("turn.finished")}) == 1


@needs_tmux
def test_a_second_one_may_run_at_once(answering: Shell) -> None:
    with Terminal(answering) as first, Terminal(answering) as second:
        for terminal in (first, second):
            terminal.wait_for(OPEN)
            terminal.type("hello")
            terminal.keys("Enter")
        for terminal in (first, second):
            terminal.wait_for("the Loire")
            terminal.keys("C-d")
            assert terminal.ended() == 0
    assert finished(answering) == ["answered", "answered"]


@needs_tmux
def test_killed_in_mid_stream_the_next_one_starts_and_closes_the_turn(shell: Shell) -> None:
    shell.script(LONG)
    with Terminal(shell) as terminal:
        terminal.wait_for(OPEN)
        terminal.type("go on")
        terminal.keys("Enter")
        terminal.wait_for("word5")
        terminal.signal(signal.SIGKILL)
        assert terminal.ended() == 137
    with Terminal(shell, "-c") as terminal:
        terminal.wait_for("go on")
        terminal.keys("C-d")
        assert terminal.ended() == 0
    assert finished(shell) == ["interrupted"]
