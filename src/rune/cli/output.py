"""The two streams of a command. Every byte that reaches a terminal has gone through `safe_text`."""

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from rune.cli.descriptors import STDERR, STDOUT
from rune.cli.streams import Stream, StreamClosedError
from rune.text.invocation import suggested
from rune.text.safe_text import SafeStream, SafeText, safe_text

_COLUMNS: Final = 80


class StdoutLostError(Exception):
    """Nothing arrives on stdout any more. `message` is empty when its reader went away: it has seen enough."""

    def __init__(self, failure: OSError) -> None:
        if isinstance(failure, BrokenPipeError):
            self.message = ""
        elif isinstance(failure, StreamClosedError):
            self.message = "stdout is closed"
        else:
            self.message = f"stdout cannot be written: {failure.strerror or failure}"
        super().__init__(self.message or "the reader of stdout went away")


class Output:
    """Writes answers to stdout and everything else to stderr, in UTF-8 whatever the locale; never waits.

    On a terminal foreign text is made visible; into a file or a pipe the answer goes as it came, but
    for what UTF-8 cannot hold. A stdout that takes nothing raises StdoutLostError, at the latest when it
    is asked for with `check`; a stderr that takes nothing is no reason to stop.
    """

    def __init__(self, out: Stream, err: Stream, command: str = "rune") -> None:
        """`command` is what a person types to start Rune; it is what suggestions name."""
        self._command = command
        self._out = out
        self._err = err
        self._stream = SafeStream()
        self._last = ""
        self._status = ""
        self.enough = False
        """Whether the reader of stdout may go away at any time: what is written has no end of its own."""

    @property
    def out_is_terminal(self) -> bool:
        """Whether a person sees stdout."""
        return self._out.is_terminal

    @property
    def err_is_terminal(self) -> bool:
        """Whether a person sees stderr as it comes."""
        return self._err.is_terminal

    @property
    def out_columns(self) -> int | None:
        """How many cells a line of the terminal behind stdout has; None when it is no terminal."""
        if not self._out.is_terminal:
            return None
        try:
            return os.get_terminal_size(STDOUT).columns or _COLUMNS
        except OSError:
            return _COLUMNS

    @property
    def err_columns(self) -> int:
        """How many cells a line of the terminal behind stderr has."""
        try:
            return os.get_terminal_size(STDERR).columns or _COLUMNS
        except OSError:
            return _COLUMNS

    def check(self) -> None:
        """Raise StdoutLostError when stdout takes nothing any more."""
        if self._out.lost is not None:
            raise StdoutLostError(self._out.lost)

    def check_reader(self) -> None:
        """Raise StdoutLostError when nobody will read stdout any more, although nothing was written since."""
        self._out.look()
        self.check()

    @property
    def unread(self) -> int:
        """How many bytes wait for the reader of stdout."""
        return self._out.unwritten

    @contextmanager
    def when_lost(self, tell: Callable[[], None]) -> Generator[None]:
        """Have `tell` called, on another thread, when stdout stops taking anything while this lasts."""
        self._out.on_lost = tell
        try:
            yield
        finally:
            self._out.on_lost = None

    def answer(self, text: str) -> None:
        """Write a piece of an answer as it comes."""
        shown = self._stream.feed(text) if self._out.is_terminal else text
        if shown:
            self._write(shown)

    def end_answer(self) -> None:
        """Finish an answer: what was held back, and a newline when it lacks one."""
        rest = self._stream.finish() if self._out.is_terminal else ""
        self._stream = SafeStream()
        if rest:
            self._write(rest)
        if self._last and not self._last.endswith("\n"):
            self._write("\n")
        self._last = ""

    def line(self, text: str) -> None:
        """Write whole lines to stdout."""
        self._write((safe_text(text) if self._out.is_terminal else text) + "\n")

    def own_line(self, text: str) -> None:
        """Write lines in Rune's own words to stdout: commands in them are as the person has to type them."""
        self.line(suggested(text, self._command))

    def note(self, text: str) -> None:
        """Write one line to stderr, whatever line breaks foreign text brings along."""
        self.status("")
        line = suggested(" ".join(text.splitlines()), self._command)
        self._err.write(_encoded((safe_text(line) if self._err.is_terminal else line) + "\n"))

    def foreign_line(self, text: SafeText, indent: str = "") -> None:
        """Write one line to stderr as it is: what a person decides by is nowhere made another, terminal or not."""
        self.status("")
        self._err.write(_encoded(f"{indent}{text}\n"))

    def status(self, text: str) -> None:
        """Show a line on the terminal behind stderr until the next one, which takes its place; "" wipes it.

        It must fit into `err_columns`, and hold no foreign text.
        """
        if self._err.is_terminal and text != self._status:
            over = " " * (len(self._status) - len(text))
            self._err.write(_encoded(f"\r{text}{over}" if text else f"\r{over}\r"))
            self._status = text

    def problem(self, message: str, hint: str = "") -> None:
        """Write what went wrong and what to do to stderr."""
        self.note(f"rune: {message}")
        if hint:
            self.note(f"      {hint}")

    def _write(self, text: str) -> None:
        self.check()
        self.status("")
        self._out.write(_encoded(text))
        self._last = text


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")
