"""What ends the app from outside: it is asked once, and there is an end even when nothing listens."""

import signal
import sys
from pathlib import Path

import pytest

from tests.journeys.terminal import Pty

# Waits to be asked for its end, in the way that stands at the %s.
SCRIPT = """
import os, select, signal, stat, sys, threading, time
from rune.cli.endings import Endings, stderr_on_screen
asked = []
over = threading.Event()
def end():
    asked.append(1)
    over.set()
endings = Endings(lambda: os._exit(7), deadline=0.3)
%s
"""
IN_ORDER = """
with endings.watch(end):
    print("ready", flush=True)
    over.wait()
    {then}
sys.exit(10 * len(asked) + endings.asked)
"""
DEAF = """
with endings.watch(lambda: None):
    print("ready", flush=True)
    time.sleep(60)
"""
# As a loop reads that was told that there is something, but reads only once the terminal was replaced.
REPLACED = "[time.sleep(0.01) for _ in iter(lambda: stat.S_ISFIFO(os.fstat(0).st_mode), True)]; "
READING = (
    REPLACED + "os.read(0, 100); quiet = not select.select([0], [], [], 0.1)[0]; os.write(1, b'x'); asked += [quiet]"
)
ENVIRON = {"TERM": "xterm-256color"}


def script(body: str) -> list[str]:
    return [sys.executable, "-P", "-c", SCRIPT % body]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_asks_for_the_end(number: signal.Signals) -> None:
    with Pty(script(IN_ORDER.format(then="pass")), ENVIRON) as terminal:
        terminal.wait_for(b"ready")
        terminal.signal(number)
        assert terminal.ended() == 11


def test_it_is_asked_once_however_many_come() -> None:
    again = "[os.kill(os.getpid(), signal.SIGTERM) for _ in range(3)]"
    with Pty(script(IN_ORDER.format(then=again)), ENVIRON) as terminal:
        terminal.wait_for(b"ready")
        terminal.signal(signal.SIGINT)
        assert terminal.ended() == 11


@pytest.mark.parametrize("ignored", ["", 'trap "" HUP; '])
def test_a_terminal_that_goes_asks_for_the_end_and_keeps_nobody_busy(ignored: str) -> None:
    command = ["/bin/sh", "-c", ignored + 'exec "$@"', "sh", *script(IN_ORDER.format(then=READING))]
    with Pty(command, ENVIRON) as terminal:
        terminal.wait_for(b"ready")
        terminal.hang_up()
        assert terminal.ended() == 21


def test_who_does_not_listen_is_ended_all_the_same() -> None:
    with Pty(script(DEAF), ENVIRON) as terminal:
        terminal.wait_for(b"ready")
        terminal.signal(signal.SIGTERM)
        assert terminal.ended() == 7


def test_what_was_ignored_stays_ignored() -> None:
    command = ["/bin/sh", "-c", 'trap "" TERM; exec "$@"', "sh", *script(IN_ORDER.format(then="pass"))]
    with Pty(command, ENVIRON) as terminal:
        terminal.wait_for(b"ready")
        terminal.signal(signal.SIGTERM)
        terminal.signal(signal.SIGHUP)
        assert terminal.ended() == 11


def test_stderr_is_the_screen_only_while_the_app_is_there(tmp_path: Path) -> None:
    log = tmp_path / "log"
    body = "with stderr_on_screen():\n    os.write(2, b'drawn')\nos.write(2, b'said')"
    command = ["/bin/sh", "-c", f'exec "$@" 2>{log}', "sh", *script(body)]
    with Pty(command, ENVIRON) as terminal:
        assert terminal.ended() == 0
        assert terminal.bytes == b"drawn"
    assert log.read_bytes() == b"said"
