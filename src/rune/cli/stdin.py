"""What is piped in."""

import os
import select
import stat
import sys
from collections.abc import Callable

from rune.errors import UsageError

LIMIT = 16 * 1024 * 1024
PATIENCE_SECONDS = 2.0


def read_piped(say: Callable[[str], None]) -> str:
    """Return what stdin holds when it is not a terminal; "" when it is one, closed or empty.

    `say` is told once when nothing comes, since a pipe that nobody writes to looks like a hang.
    Raises UsageError for bytes that are not UTF-8 text and for more than 16 MB.
    """
    try:
        descriptor = sys.stdin.fileno()
        mode = os.fstat(descriptor).st_mode
    except (AttributeError, ValueError, OSError):
        return ""  # started without a stdin: there is nothing to read
    if os.isatty(descriptor):
        return ""
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        ready, _, _ = select.select([descriptor], [], [], PATIENCE_SECONDS)
        if not ready:
            say("rune: reading stdin until its end (use </dev/null if nothing is piped in) ...")
    return decode(_read(descriptor))


def _read(descriptor: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while piece := os.read(descriptor, 1 << 20):
        pieces.append(piece)
        size += len(piece)
        if size > LIMIT:
            raise UsageError(
                f"more than {LIMIT // (1024 * 1024)} MB on stdin", hint="No model reads that much; send a part of it."
            )
    return b"".join(pieces)


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
