"""The views can be deleted at any time: they come back with everything, and say meanwhile how far they are."""

import asyncio
import itertools
import os
import pty
import signal
from collections.abc import Sequence
from pathlib import Path
from subprocess import Popen

from rune.bootstrap.core import VIEWS_VERSION
from tests.fakes.ids import CountedIds
from tests.journeys.shell import SECONDS, Shell
from tests.store.journals import fill

EVENTS = 16_000
VIEWS = f"views-{VIEWS_VERSION}.db"


def a_long_journal(home: Path) -> None:
    asyncio.run(fill(home, CountedIds(), list(itertools.repeat(1000, EVENTS // 1000))))


def on_a_terminal(shell: Shell, *arguments: str, stop_at: bytes = b"") -> tuple[int, bytes]:
    """Return the exit code and what a terminal gets; Ctrl-C comes when `stop_at` is seen there."""
    ours, theirs = pty.openpty()
    environ = {**shell.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8", "COLUMNS": "80"}
    with Popen(
        shell.command(*arguments), stdin=theirs, stdout=theirs, stderr=theirs, env=environ, cwd=shell.folder
    ) as run:
        os.close(theirs)
        got, sent = b"", False
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:
                break
            got += piece
            if stop_at and stop_at in got and not sent:
                sent = True
                run.send_signal(signal.SIGINT)
        os.close(ours)
        return run.wait(SECONDS), got


def versions(home: Path) -> Sequence[str]:
    return sorted(path.name for path in home.glob("views-*.db*"))


def test_deleted_views_come_back_and_say_how_far_they_are(shell: Shell) -> None:
    shell.script({"text": "Rhine and Danube"})
    assert shell.run("-p", "name two rivers").code == 0
    before = shell.run("sessions", "list", "--json").out
    (shell.home / VIEWS).unlink()
    (shell.home / "views-2.db").write_bytes(b"of an earlier version")
    (shell.home / "views-99.db").write_bytes(b"of a later version")
    after = shell.run("sessions", "list", "--json")
    assert (after.code, after.out, after.err) == (0, before, "")
    assert shell.run("sessions", "search", "danube").out
    assert versions(shell.home) == [VIEWS, "views-99.db"]


def test_a_long_rebuild_shows_a_bar_and_goes_on_after_ctrl_c(shell: Shell) -> None:
    a_long_journal(shell.home)
    code, seen = on_a_terminal(shell, "sessions", "list", "--all", stop_at=b"of 16,000")
    assert code == 130
    assert "\u2595".encode() in seen
    assert b"Traceback" not in seen
    assert b"rune: interrupted" in seen
    again = shell.run("sessions", "list", "--all")
    assert again.code == 0
    assert "of 16,000" not in again.err
    (shell.home / VIEWS).unlink()
    whole = shell.run("sessions", "list", "--all")
    assert whole.err.splitlines() == ["rune: reading the journal anew, 10,000 of 16,000 events ..."]
