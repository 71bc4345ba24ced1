"""What is looked for, and what was found."""

from pathlib import Path
from typing import Final

import msgspec

from rune.tools.globs import Globs

MOST_BYTES: Final = 64 * 1024 * 1024
"""Of one file; in larger ones nothing is looked for (`files.MOST_BYTES`)."""
MOST_MATCHES: Final = 20_000
"""After so many a search ends: nobody reads them, and they cost memory."""
MOST_OF_A_LINE: Final = 1_000
"""Bytes of a line that are kept."""
SECONDS: Final = 30.0
UNSEARCHED: Final = ".env*"
"""Files in which nothing is looked for, `.env.example` included: a pattern for both engines has no exceptions."""


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """`start` is a real folder; `only` the content of one file, to look into that alone. `glob`: files of such names
    below the folder. `literal`: the pattern is plain text.
    """

    pattern: str
    start: Path
    only: bytes | None = None
    glob: Globs | None = None
    ignore_case: bool = False
    literal: bool = False


class Match(msgspec.Struct, frozen=True, order=True):
    """A line that matches: the file's parts below the folder (none for the only file), the line's number from 1, and
    the beginning of its bytes.
    """

    parts: tuple[str, ...]
    number: int
    line: bytes


class Outcome(msgspec.Struct, kw_only=True):
    """`matches` in order of files and lines. `complete`: there are no others. `refused` says what is wrong with the
    pattern, `stopped` that the person ended it, `timed_out` that it took longer than SECONDS.
    """

    matches: list[Match] = []
    refused: str = ""
    complete: bool = True
    stopped: bool = False
    timed_out: bool = False
