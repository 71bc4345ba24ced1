"""What is piped in."""

import errno
import os
import stat
from collections.abc import Callable

from rune.cli.descriptors import STDIN, wait_for
from rune.errors import UsageError

LIMIT = 4 * 1024 * 1024
PATIENCE_SECONDS = 2.0


def is_terminal() -> bool:
    """Say whether a person types there."""
    return os.isatty(STDIN)


def read_piped(say: Callable[[str], None]) -> str:
    """Return what stdin holds when it is not a terminal; "" when it is one, closed, empty or only for writing.

    `say` is told once when nothing comes, since a pipe that nobody writes to looks like a hang.
    Raises UsageError for bytes that are not UTF-8 text, for more than 4 MB, and when reading fails.
    """
    if is_terminal():
        return ""
    try:
        mode = os.fstat(STDIN).st_mode
        if (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)) and not wait_for(STDIN, seconds=PATIENCE_SECONDS):
            say("rune: reading stdin until its end (use </dev/null if nothing is piped in) ...")
        return decode(_read())
    except OSError as error:
        if error.errno == errno.EBADF:
            return ""  # open for writing, or not at all: nobody can have put something there
        raise UsageError(
            f"stdin cannot be read: {error.strerror or error}", hint="Use </dev/null if nothing is piped in."
        ) from error


def _read() -> bytes:
    pieces: list[bytes] = []
    size = 0
    while piece := _piece():
        pieces.append(piece)
        size += len(piece)
        if size > LIMIT:
            raise UsageError(
                f"more than {LIMIT // (1024 * 1024)} MB on stdin", hint="No model reads that much; send a part of it."
            )
    return b"".join(pieces)


def _piece() -> bytes:
    while True:
        try:
            return os.read(STDIN, 1 << 20)
        except BlockingIOError:
            wait_for(STDIN)


def decode(data: bytes) -> str:
    """Return bytes as text. Raises UsageError when they are not UTF-8 text."""
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"stdin is not UTF-8 text (byte {error.start} is 0x{data[error.start]:02x})",
            hint="Rune reads text; convert the file first, for example with iconv.",
        ) from error
    if "\0" in text:
        raise UsageError(
            f"stdin is binary (a NUL byte at {text.index(chr(0))})", hint="Rune reads text; name the file instead."
        )
    return text
