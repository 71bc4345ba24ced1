"""The first frame: header, prompt and version on the screen before anything heavy is imported.

Imports next to nothing, like everything that runs before it. Keys that are typed meanwhile stay in the terminal's
own queue, unseen and as they were typed, until the app reads them. What was typed before even this ran has been
through the terminal's own editing: an Enter among it is a new line by now.
"""

from __future__ import annotations

import _signal as signal
import os
import termios

from rune.cli.descriptors import STDIN, STDOUT, put, wait_for
from rune.cli.signals import SIGNALS
from rune.version import __version__

TYPE_CHECKING = False  # as in typing, which takes longer to import than all of this
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

MARK = "> "
_HEADER = " rune  opening"
_FALLBACK = (80, 24)
_LEAST_ROWS = 3  # below, there is room for the prompt only
_IFLAG, _LFLAG, _CC = 0, 3, 6
PATIENCE_SECONDS = 0.5
# What the app may have switched on: the mouse, focus, bracketed paste, lines that do not wrap, its own keys.
_MODES_OFF = "\x1b[?1000l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[?7h\x1b[<u"
_ALTERNATE, _NORMAL = "\x1b[?1049h", "\x1b[m\x1b[?25h\x1b[?1049l"

_ALONE = frozenset({"-c", "--continue"})
_WITH_VALUE = frozenset({"-r", "--resume", "-m", "--model", "--think", "--channel", "--max-steps"})


def opens_app(arguments: Sequence[str]) -> bool:
    """Say whether these arguments open the app. Forms that are allowed but rare (`-cr ID`) are not recognised."""
    rest = iter(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        if argument in _ALONE:
            continue
        if argument in _WITH_VALUE:
            value = next(rest, "")
        elif not (equals and name.startswith("--") and name in _WITH_VALUE):
            return False
        if not value or value.startswith("-"):
            return False
    return True


def can_show(environ: Mapping[str, str]) -> bool:
    """Say whether stdin and stdout are a terminal that knows what a screen is."""
    return (environ.get("TERM") or "dumb") != "dumb" and os.isatty(STDIN) and os.isatty(STDOUT)


def drawn(columns: int, rows: int, *, plain: bool) -> str:
    """Return the frame for a terminal of this size; `plain` without attributes. The cursor ends behind the mark."""
    strong, faint, normal = ("", "", "") if plain else ("\x1b[1m", "\x1b[2m", "\x1b[m")
    label = f"v{__version__}"[:columns]
    pieces = [_ALTERNATE, "\x1b[H\x1b[2J"]
    if rows >= _LEAST_ROWS:
        pieces.append(f"\x1b[1;1H{strong}{_HEADER[:columns]}{normal}")
        pieces.append(f"\x1b[{rows};{columns - len(label) + 1}H{faint}{label}{normal}")
    pieces.append(f"\x1b[{max(rows - 1, 1)};1H{MARK[:columns]}")
    return "".join(pieces)


class FirstFrame:
    """The frame on this process's terminal. `restore` must follow `show`, whatever happens in between; a `with` sees
    to that too.
    """

    def __init__(self) -> None:
        self._settings: list[Any] | None = None
        self._drawn = False
        self._plain = False

    def __enter__(self) -> FirstFrame:
        return self

    def __exit__(self, *_: object) -> None:
        self.restore()

    def show(self, environ: Mapping[str, str]) -> None:
        """Let the terminal keep what is typed, and draw. A terminal that cannot be set is left alone."""
        try:
            self._settings = termios.tcgetattr(STDIN)
        except termios.error:
            return
        self._plain = bool(environ.get("NO_COLOR"))
        if signal.getsignal(signal.SIGTSTP) == signal.SIG_DFL:
            signal.signal(signal.SIGTSTP, self._stopped)
        self._enter()

    def hand_over(self) -> None:
        """Note that the app has the screen now, and leaves it by itself; the settings are still this one's to undo."""
        self._drawn = False

    def restore(self) -> None:
        """Undo everything: screen, cursor, settings. What was typed for the app goes to nobody else.

        May be called twice, and is not interrupted.
        """
        if self._settings is None:
            return
        heard = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            self._leave()
            for number in (signal.SIGTSTP, signal.SIGCONT):  # the app sets both for itself and leaves them so
                if signal.getsignal(number) != signal.SIG_IGN:
                    signal.signal(number, signal.SIG_DFL)
            self._settings = None
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, heard)

    def lend(self) -> None:
        """Give the settings back for a while: the process is about to be stopped. The app keeps its own."""
        self._set_back()

    def abandon(self) -> None:
        """Give the terminal back on any thread and without waiting for it: the last act when the app hangs."""
        if self._settings is None:
            return
        self._set_back()
        if wait_for(STDOUT, writing=True, seconds=PATIENCE_SECONDS):
            _write(_MODES_OFF + _NORMAL)

    def _enter(self) -> None:
        settings = termios.tcgetattr(STDIN)
        settings[_LFLAG] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN)
        # Enter must stay what it is: with ICRNL it would be read as Ctrl+J.
        settings[_IFLAG] &= ~(termios.ICRNL | termios.INLCR | termios.IGNCR | termios.IXON | termios.IXOFF)
        settings[_CC][termios.VMIN], settings[_CC][termios.VTIME] = 1, 0
        # Ctrl-C and Ctrl-Z still work, and are answered here. Ctrl-\\ would end Rune with the screen as it is.
        settings[_CC][termios.VQUIT] = bytes([os.fpathconf(STDIN, "PC_VDISABLE") & 0xFF])
        try:
            # NOW: neither does it wait for a terminal that is stopped, nor does it drop what was typed already.
            termios.tcsetattr(STDIN, termios.TCSANOW, settings)
            self._drawn = True
            _write(drawn(*_size(), plain=self._plain))
        except termios.error:
            return

    def _leave(self) -> None:
        if self._drawn:
            _write(_NORMAL)
        self._drawn = False
        self._set_back()

    def _set_back(self) -> None:
        try:
            termios.tcflush(STDIN, termios.TCIFLUSH)
            termios.tcsetattr(STDIN, termios.TCSANOW, self._settings or termios.tcgetattr(STDIN))
        except termios.error:
            return  # the terminal is gone

    def _stopped(self, number: int, _frame: object) -> None:
        """Ctrl-Z: stop with the terminal as it was, and draw again when it goes on."""
        self._leave()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        signal.signal(number, self._stopped)
        self._enter()


def _size() -> tuple[int, int]:
    try:
        columns, rows = os.get_terminal_size(STDOUT)
    except OSError:
        return _FALLBACK
    return (columns, rows) if columns > 0 and rows > 0 else _FALLBACK


def _write(text: str) -> None:
    data = text.encode("ascii")
    try:
        while data:
            data = data[put(STDOUT, data) :]
    except OSError:
        return  # the terminal is gone
