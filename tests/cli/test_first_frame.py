"""The first frame: what it looks like, when it is shown, and that nothing of it stays."""

import signal
import sys
from collections.abc import Generator

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune.cli.arguments import HelpAskedError, parse
from rune.cli.first_frame import can_show, drawn, opens_app
from rune.errors import UsageError
from rune.version import __version__
from tests.journeys.terminal import Pty

LABEL = f"v{__version__}"
# Shows the frame, then does what stands at the %s.
SCRIPT = """
import os, sys, time
from rune.cli.first_frame import FirstFrame
from rune.cli.signals import raise_on_signals
raise_on_signals()
with FirstFrame() as frame:
    frame.show(os.environ)
    %s
"""
SLEEP = "time.sleep(60)"
FLAGS = (
    *("-c", "--continue", "-r", "--resume", "-m", "--model", "--think", "--channel", "--max-steps"),
    *("--resume=abc", "--model="),
)
OTHERS = ("-p", "--print", "sessions", "list", "--version", "-V", "--help", "--json", "-cr", "task", "chat", "3", "abc")
WORDS = st.sampled_from(FLAGS + OTHERS)


def on_pty(then: str, size: tuple[int, int] = (80, 24), **environ: str) -> Pty:
    return Pty([sys.executable, "-P", "-c", SCRIPT % then], {"TERM": "xterm-256color", **environ}, size)


@pytest.fixture
def sleeping() -> Generator[Pty]:
    """Start a process that shows the frame and sleeps."""
    with on_pty(SLEEP) as terminal:
        terminal.wait_for(LABEL.encode())
        terminal.wait_for(b"> ")
        yield terminal


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["-c"],
        ["--continue"],
        ["-r", "01ABC"],
        ["--resume=01ABC", "-m", "qwen3:8b"],
        ["--channel", "chat", "--max-steps", "3", "--think", "high"],
    ],
)
def test_these_open_the_app(arguments: list[str]) -> None:
    assert opens_app(arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["-p"],
        ["-c", "-p", "hello"],
        ["-r"],
        ["-r", "-c"],
        ["--model="],
        ["-V"],
        ["--help"],
        ["doctor"],
        ["-m", "x", "events"],
        ["hello"],
        [""],
        ["--output-format", "json"],
    ],
)
def test_these_do_not(arguments: list[str]) -> None:
    assert not opens_app(arguments)


@given(st.lists(WORDS, max_size=5))
def test_what_opens_the_app_is_no_question_and_no_command(arguments: list[str]) -> None:
    if not opens_app(arguments):
        return
    try:
        options = parse(arguments)
    except UsageError:
        return  # the frame goes again, and the refusal is shown
    except HelpAskedError:
        pytest.fail("the help is no app")
    assert (options.prompt, options.command, options.version) == (None, None, False)


@given(st.integers(1, 300), st.integers(1, 100), st.booleans())
def test_the_frame_fits_whatever_the_size(columns: int, rows: int, plain: bool) -> None:
    screen = pyte.Screen(columns, rows)
    pyte.Stream(screen).feed(drawn(columns, rows, plain=plain))
    shown = [line.rstrip() for line in screen.display]
    assert shown[max(rows - 2, 0)].startswith(">")
    assert screen.cursor.y == max(rows - 2, 0)
    if rows >= 3:
        assert shown[0] == " rune  opening"[:columns].rstrip()
        assert shown[-1].strip() == LABEL[:columns]
        assert [line for line in shown[1:-2] if line] == []


def test_without_colours_there_are_no_attributes_either() -> None:
    assert "\x1b[1m" in drawn(80, 24, plain=False)
    assert "m" not in drawn(80, 24, plain=True).replace("rune", "").replace("opening", "")
    with on_pty("pass", NO_COLOR="1") as terminal:
        assert terminal.ended() == 0
        assert b"\x1b[1m" not in terminal.bytes


def test_a_terminal_without_a_screen_gets_no_frame() -> None:
    assert not can_show({"TERM": "dumb"})
    assert not can_show({"TERM": ""})
    assert not can_show({})


def test_what_is_typed_stays_unseen_and_whole_until_it_is_read() -> None:
    typed = "héllo\r\x7f\x1b[A\x04\x11\x13\x16\x1c".encode()
    with on_pty("time.sleep(0.3); data = os.read(0, 100); frame.restore(); print(data.hex())") as terminal:
        terminal.wait_for(b"> ")
        for key in typed:
            terminal.type(bytes([key]))
        assert terminal.ended() == 0
        assert terminal.after().strip() == typed.hex()


def test_what_was_typed_before_is_kept_too() -> None:
    with on_pty("data = os.read(0, 100); frame.restore(); print(data)") as terminal:
        terminal.type(b"early")
        assert terminal.ended() == 0
        assert terminal.after().strip() == "b'early'"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_a_sane_terminal(sleeping: Pty, number: signal.Signals) -> None:
    assert sleeping.settings() != sleeping.settings_before
    sleeping.signal(number)
    sleeping.ended()
    assert sleeping.settings() == sleeping.settings_before
    assert sleeping.bytes.count(b"\x1b[?1049l") == 1
    assert "KeyboardInterrupt" in sleeping.after()


def test_ctrl_c_is_heard(sleeping: Pty) -> None:
    sleeping.type(b"\x03")
    sleeping.ended()
    assert sleeping.settings() == sleeping.settings_before


def test_what_was_typed_for_the_app_does_not_go_to_the_shell(sleeping: Pty) -> None:
    sleeping.type(b"rm -r everything\r")
    sleeping.signal(signal.SIGTERM)
    sleeping.ended()
    sleeping.type(b"ls\n")
    assert sleeping.pending() == b"ls\n"


def test_stopped_it_gives_the_terminal_back_and_draws_again_when_it_goes_on() -> None:
    # A shell with job control: a process that nobody could continue is not stopped.
    shell = ["/bin/sh", "-c", 'set -m; "$@"; echo stopped; read -r _; fg >/dev/null; echo over', "sh"]
    with Pty([*shell, sys.executable, "-P", "-c", SCRIPT % SLEEP], {"TERM": "xterm-256color"}) as terminal:
        terminal.wait_for(b"> ")
        changed = terminal.settings()
        terminal.type(b"\x1a")
        terminal.wait_for(b"stopped")
        assert terminal.settings() == terminal.settings_before
        assert terminal.bytes.count(b"\x1b[?1049l") == 1
        terminal.type(b"\n")
        terminal.wait_for(lambda: terminal.bytes.count(b"> ") == 2)
        assert terminal.settings() == changed
        terminal.type(b"\x03")
        terminal.ended()
        assert terminal.settings() == terminal.settings_before


def test_restoring_twice_leaves_the_screen_once() -> None:
    with on_pty("frame.restore(); frame.restore()") as terminal:
        assert terminal.ended() == 0
        assert terminal.bytes.count(b"\x1b[?1049l") == 1
        assert terminal.settings() == terminal.settings_before


def test_handed_over_the_screen_is_the_apps_and_the_settings_come_back() -> None:
    with on_pty("frame.hand_over()") as terminal:
        assert terminal.ended() == 0
        assert b"\x1b[?1049l" not in terminal.bytes
        assert terminal.settings() == terminal.settings_before


def test_before_the_frame_next_to_nothing_is_imported() -> None:
    heavy = "{'typing', 'enum', 'signal', 're', 'contextlib', 'argparse', 'asyncio', 'textual'}"
    with on_pty(f"loaded = {heavy} & set(sys.modules); frame.restore(); print(loaded)") as terminal:
        assert terminal.ended() == 0
        assert terminal.after().strip() == "set()"
