"""The two streams of a command. Every byte that reaches a terminal has gone through `safe_text`."""

import os
import sys
from typing import TextIO

from rune.text.safe_text import SafeStream, safe_text


class Output:
    """Writes answers to stdout and everything else to stderr.

    On a terminal foreign text is made visible; into a file or a pipe the answer goes as it came, but
    for what UTF-8 cannot hold. A reader that went away raises BrokenPipeError.
    """

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self._out_is_terminal = self._out.isatty()
        self.err_is_terminal = self._err.isatty()
        self._stream = SafeStream()
        self._last = ""
        for stream in (self._out, self._err):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace", newline="\n")  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]  # TextIOWrapper only

    def answer(self, text: str) -> None:
        """Write a piece of an answer as it comes."""
        shown = self._stream.feed(text) if self._out_is_terminal else text
        if shown:
            self._write(shown)

    def end_answer(self) -> None:
        """Finish an answer: what was held back, and a newline when it lacks one."""
        rest = self._stream.finish() if self._out_is_terminal else ""
        self._stream = SafeStream()
        if rest:
            self._write(rest)
        if self._last and not self._last.endswith("\n"):
            self._write("\n")
        self._last = ""

    def line(self, text: str) -> None:
        """Write whole lines to stdout."""
        self._write((safe_text(text) if self._out_is_terminal else text) + "\n")

    def note(self, text: str) -> None:
        """Write a line to stderr."""
        self._err.write((safe_text(text) if self.err_is_terminal else text) + "\n")
        self._err.flush()

    def problem(self, message: str, hint: str = "") -> None:
        """Write what went wrong and what to do to stderr."""
        self.note(f"rune: {message}")
        if hint:
            self.note(f"      {hint}")

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
        self._last = text


def give_up_stdout() -> None:
    """Point stdout at nothing after its reader went away, so that the interpreter's own exit is quiet."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
