"""Rune on a terminal: one that tmux is, and one that the test is itself."""

import fcntl
import os
import pty
import select
import shlex
import shutil
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import pyte
import pytest

from tests.journeys.shell import SECONDS, Shell

POLL_SECONDS = 0.02
SHOWN = 2000  # bytes of a failed wait
CONFIG = """\
set -g default-terminal tmux-256color
set -g status off
set -s escape-time 0
set -g history-limit 0
"""
# Waits until somebody opens the other side of the pipe, so that nothing is missed of what comes; then notes the
# terminal's settings before and after, and the process between them. It stays, as a shell does.
WRAPPER = """\
: <"$1"; shift
folder=$1; shift
stty -a >"$folder/before"
sh -c 'echo $$ >"$0/pid"; exec "$@"' "$folder" "$@"
code=$?
stty -a >"$folder/after"
echo $code >"$folder/code"
exec cat >/dev/null
"""

T = TypeVar("T")

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


class Terminal:
    """Runs `python -m rune` in a tmux of its own. The server dies with it."""

    def __init__(self, shell: Shell, *arguments: str, size: tuple[int, int] = (80, 24)) -> None:
        self._shell = shell
        self._command = shell.command(*arguments)
        self._columns, self._rows = size
        self.files = shell.folder.parent / f"terminal-{time.monotonic_ns()}"
        # The path of a socket may be about 100 characters long, and that of a test's folder is longer.
        self._socket = Path("/tmp") / f"rune-{os.getpid()}-{time.monotonic_ns()}.sock"  # noqa: S108  # removed again

    def __enter__(self) -> Self:
        self.files.mkdir()
        (self.files / "tmux.conf").write_text(CONFIG)
        (self.files / "wrapper").write_text(WRAPPER)
        go = self.files / "go"
        os.mkfifo(go)
        command = ["/bin/sh", str(self.files / "wrapper"), str(go), str(self.files), *self._command]
        size = ["-x", str(self._columns), "-y", str(self._rows)]
        self._tmux("new-session", "-d", "-s", "rune", *size, "-c", str(self._shell.folder), shlex.join(command))
        self._tmux("pipe-pane", "-t", "rune", "-O", f"exec cat >{shlex.quote(str(self.files / 'bytes'))}")
        descriptor = os.open(go, os.O_WRONLY)
        os.close(descriptor)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            error.add_note(f"the screen was:\n{self.screen()}")
        self._tmux("kill-server")
        self._socket.unlink(missing_ok=True)

    def type(self, text: str) -> None:
        """Write text as if it were typed, letter for letter; no key names."""
        self._tmux("send-keys", "-t", "rune", "-l", "--", text)

    def keys(self, *names: str) -> None:
        """Press keys by their tmux names: Enter, Escape, C-d, M-Enter, PageUp, F1."""
        self._tmux("send-keys", "-t", "rune", "--", *names)

    def paste(self, text: str) -> None:
        """Paste text, bracketed where the app asks for it."""
        self._tmux("set-buffer", "-b", "pasted", "--", text)
        self._tmux("paste-buffer", "-p", "-r", "-b", "pasted", "-t", "rune")

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size."""
        self._tmux("resize-window", "-t", "rune", "-x", str(columns), "-y", str(rows))

    def screen(self) -> str:
        """Return what is seen, a line each, without what is blank at their ends."""
        return self._tmux("capture-pane", "-t", "rune", "-p")

    def cursor(self) -> tuple[int, int]:
        """Return the cursor's column and row, from 0."""
        column, row = self._tmux("display-message", "-t", "rune", "-p", "#{cursor_x} #{cursor_y}").split()
        return int(column), int(row)

    def on_alternate_screen(self) -> bool:
        """Say whether the app's screen is shown and not the shell's."""
        return self._tmux("display-message", "-t", "rune", "-p", "#{alternate_on}").strip() == "1"

    def bytes(self) -> bytes:
        """Return everything that was written to the terminal up to now."""
        written = self.files / "bytes"
        return written.read_bytes() if written.exists() else b""

    def wait_for(self, wanted: str | Callable[[str], bool], seconds: float = SECONDS) -> str:
        """Wait until the screen holds a text, or does what is asked of it; returns the screen."""

        def there() -> str | None:
            screen = self.screen()
            return screen if (wanted in screen if isinstance(wanted, str) else wanted(screen)) else None

        return until(there, f"{wanted!r} on the screen", seconds)

    def wait_gone(self, text: str, seconds: float = SECONDS) -> str:
        """Wait until the screen no longer holds a text; returns the screen."""
        return self.wait_for(lambda screen: text not in screen, seconds)

    def pid(self) -> int:
        """Return Rune's process id."""
        return until(lambda: self._noted("pid"), "a process")

    def signal(self, number: signal.Signals) -> None:
        """Send Rune a signal."""
        os.kill(self.pid(), number)

    def ended(self, seconds: float = SECONDS) -> int:
        """Wait for Rune's end; returns the exit status."""
        return until(lambda: self._noted("code"), "the end", seconds)

    def settings(self) -> tuple[str, str]:
        """Return what `stty -a` said before and, after the end, said again; without the size."""
        before, after = ((self.files / name).read_text() for name in ("before", "after"))
        # "speed 38400 baud; rows 24; columns 80; line = 0;" and then all the rest
        return before.partition("line =")[2], after.partition("line =")[2]

    def _noted(self, name: str) -> int | None:
        path = self.files / name
        text = path.read_text() if path.exists() else ""
        return int(text) if text.endswith("\n") else None

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-S", str(self._socket), "-f", str(self.files / "tmux.conf"), *arguments]
        done = subprocess.run(command, capture_output=True, env=self._environ(), timeout=SECONDS, check=False)
        assert done.returncode == 0, f"{arguments}: {done.stderr.decode()}"
        return done.stdout.decode()

    def _environ(self) -> dict[str, str]:
        return {**self._shell.environ, "LC_ALL": "C.UTF-8", "SHELL": "/bin/sh"}


def until(seen: Callable[[], T | None], what: str, seconds: float = SECONDS) -> T:
    """Ask again and again until there is something."""
    deadline = time.monotonic() + seconds
    while (value := seen()) is None:
        assert time.monotonic() < deadline, f"{what} did not come in {seconds:g} s"
        time.sleep(POLL_SECONDS)
    return value


class Pty:
    """Runs a command on a terminal that the test is itself: all its bytes are kept, and drawn by pyte.

    It answers what a terminal is asked only where `answers` says so. Nothing is read but while something is
    waited for. pyte knows one screen: what the command leaves behind on the normal one is found in `after`.
    """

    def __init__(
        self,
        command: list[str],
        environ: dict[str, str],
        size: tuple[int, int] = (80, 24),
        folder: Path | None = None,
    ) -> None:
        self._folder = folder
        self.bytes = b""
        self.answers: dict[bytes, bytes] = {}
        self._command = command
        self._environ = environ
        self._size = size
        self._drawing = pyte.Screen(*size)
        self._stream = pyte.ByteStream(self._drawing)

    def __enter__(self) -> Self:
        # Its own side of the terminal is held open too: the settings can be asked for after the command's end.
        self._master, self._slave = pty.openpty()
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", self._size[1], self._size[0], 0, 0))
        self.settings_before = self.settings()
        self._process = subprocess.Popen(
            self._command,
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            env=self._environ,
            cwd=self._folder,
            start_new_session=True,
            preexec_fn=_take_terminal,  # noqa: PLW1509  # what login does; nothing of the test runs in between
        )
        self.began = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(SECONDS)
        self.hang_up()

    def settings(self) -> list[object]:
        """Return what the terminal is set to, as termios gives it."""
        return list(termios.tcgetattr(self._slave))

    def foreground(self) -> int:
        """Return the group of processes that the terminal belongs to."""
        return os.tcgetpgrp(self._master)

    def type(self, data: bytes) -> None:
        """Send what the keys of a terminal send."""
        os.write(self._master, data)

    def pending(self) -> bytes:
        """Return what was typed and nobody has read, as a shell would get it."""
        waits = select.select([self._slave], [], [], POLL_SECONDS)[0]
        return os.read(self._slave, 1 << 16) if waits else b""

    def signal(self, number: signal.Signals) -> None:
        """Send the command a signal."""
        self._process.send_signal(number)

    def hang_up(self) -> None:
        """Close the terminal, as a window that is closed does."""
        for descriptor in {self._master, self._slave}:
            if descriptor >= 0:
                os.close(descriptor)
        self._master = self._slave = -1

    def screen(self) -> str:
        """Return what is seen, a line each, without what is blank at their ends."""
        return "\n".join(line.rstrip() for line in self._drawing.display)

    def after(self) -> str:
        """Return what was written once the app's screen was left for the last time."""
        return self.bytes.rpartition(b"\x1b[?1049l")[2].decode()

    def wait_for(self, wanted: bytes | Callable[[], bool], seconds: float = SECONDS) -> None:
        """Read until these bytes came, or until what is asked is so."""
        self._read_until(lambda: wanted in self.bytes if isinstance(wanted, bytes) else wanted(), repr(wanted), seconds)

    def state(self) -> str:
        """Return the process's state as Linux tells it: R, S, T (stopped), Z."""
        return Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()[0]

    def ended(self, seconds: float = SECONDS) -> int:
        """Read until the command's end; returns the exit status."""
        self._read_until(lambda: self._process.poll() is not None, "the end", seconds)
        self._read()
        return self._process.returncode

    def _read_until(self, seen: Callable[[], bool], what: str, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not seen():
            over = self._process.poll() is not None
            self._read()
            assert not over or seen(), f"it ended without {what}, with {self.bytes[-SHOWN:]!r}"
            assert time.monotonic() < deadline, f"{what} did not come in {seconds:g} s, only {self.bytes[-SHOWN:]!r}"

    def _read(self) -> None:
        if self._master < 0:
            time.sleep(POLL_SECONDS)
            return
        while select.select([self._master], [], [], POLL_SECONDS)[0]:
            piece = os.read(self._master, 1 << 16)
            self.bytes += piece
            self._stream.feed(piece)
            for question, answer in self.answers.items():
                if question in piece:
                    os.write(self._master, answer)


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
