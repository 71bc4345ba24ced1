"""Looking with Python, in a process of its own: a pattern may take for ever, and nothing else ends it then.

`search_by_python` starts `python -m rune.tools.searching.by_python` and gives it the search as JSON; what comes back is
a line of JSON for each match.
"""

import asyncio
import codecs
import ctypes
import math
import re
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from rune.errors import CommandNotStartedError, ToolError
from rune.host.paths import real_path, storable_path
from rune.tools.files import WorkspaceFiles
from rune.tools.globs import globs
from rune.tools.places import Places, folded
from rune.tools.searching.child import run_child
from rune.tools.searching.search import (
    MOST_BYTES,
    MOST_MATCHES,
    MOST_OF_A_LINE,
    SECONDS,
    UNSEARCHED,
    Match,
    Outcome,
    Search,
)
from rune.tools.walking import LeftOut, walk

_PR_SET_PDEATHSIG: Final = 1
_MARKS: Final = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
# With these a line may match that the whole text does not.
_LOOKS_AROUND: Final = re.compile(r"\\[AZ]|\(\?")


class _Order(msgspec.Struct, frozen=True, kw_only=True):
    """A search as the process is given it; paths as text. `only` is how many bytes of one file follow, or None."""

    pattern: str
    start: str
    only: int | None
    glob: str
    ignore_case: bool
    literal: bool
    reading: tuple[str, ...]
    writing: tuple[str, ...]
    own: tuple[str, ...]


class _Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A match, its file's name as `storable_path` writes it."""

    place: str
    number: int
    line: bytes


async def search_by_python(
    search: Search, *, folder: int, places: Places, environment: Mapping[str, str], stop: asyncio.Event
) -> Outcome:
    """Look; `folder` is `search.start`, open. Raises CommandNotStartedError."""
    flags = re.IGNORECASE if search.ignore_case else 0
    try:
        re.compile(re.escape(search.pattern) if search.literal else search.pattern, flags)
    except (re.error, OverflowError, RecursionError) as error:
        return Outcome(refused=str(error))
    order = _Order(
        pattern=search.pattern,
        start=storable_path(search.start),
        only=None if search.only is None else len(search.only),
        glob=search.glob.text if search.glob else "",
        ignore_case=search.ignore_case,
        literal=search.literal,
        reading=tuple(storable_path(each) for each in places.reading),
        writing=tuple(storable_path(each) for each in places.writing),
        own=tuple(storable_path(each) for each in places.own),
    )
    matches: list[Match] = []
    rest = b""
    decoder = msgspec.json.Decoder(_Answer)

    def take(chunk: bytes) -> bool:
        nonlocal rest
        *lines, rest = (rest + chunk).split(b"\n")
        matches.extend(_match(decoder.decode(line)) for line in lines)
        return len(matches) < MOST_MATCHES

    ended = await run_child(
        [sys.executable, "-P", "-m", __name__],
        folder=folder,
        named=search.start,
        environment=environment,
        given=msgspec.json.encode(order) + b"\n" + (search.only or b""),
        take=take,
        stop=stop,
        seconds=SECONDS,
    )
    if ended.code:
        raise CommandNotStartedError(f"the search ended with {ended.code}: {ended.complaint.strip()[-300:]}")
    return Outcome(
        matches=sorted(matches)[:MOST_MATCHES],
        complete=ended.code is not None,
        stopped=ended.stopped,
        timed_out=ended.timed_out,
    )


def _match(answer: _Answer) -> Match:
    parts = str(real_path(answer.place)).split("/") if answer.place else ()
    return Match(tuple(parts), answer.number, answer.line)


def lines_that_match(data: bytes, pattern: re.Pattern[str]) -> Iterator[tuple[int, bytes]]:
    """Give number and beginning of each line in which the pattern is found; nothing for what is no text."""
    text = _text(data)
    if text is None:
        return
    # Where a line alone matches, the whole text does so at the same place: most lines are passed by in one go.
    each = _LOOKS_AROUND.search(pattern.pattern) is not None
    number, start = 1, 0
    while start <= len(text):
        if not each:
            found = pattern.search(text, start)
            if found is None:
                return
            begin = text.rfind("\n", start, found.start()) + 1 or start
            number += text.count("\n", start, begin)
            start = begin
        end = text.find("\n", start)
        line = text[start : end if end >= 0 else len(text)]
        if pattern.search(line):
            yield number, line.encode("utf-8", "surrogateescape")[:MOST_OF_A_LINE]
        if end < 0:
            return
        number, start = number + 1, end + 1


def _text(data: bytes) -> str | None:
    """Return what a pattern is matched against, with LF for each CRLF and none at the end; None for what is no text."""
    text = _decoded(data)
    if "\0" in text or not text:
        return None
    return text.replace("\r\n", "\n").removesuffix("\n").removesuffix("\r")


def _decoded(data: bytes) -> str:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            errors = "surrogateescape" if encoding == "utf-8" else "replace"
            return data[len(mark) :].decode(encoding, errors)
    return data.decode("utf-8", "surrogateescape")


def find(search: Search, places: Places) -> Iterator[Match]:
    """Give the lines that match, in order, here and now: it blocks, maybe for ever. Raises re.error for no pattern."""
    text = re.escape(search.pattern) if search.literal else search.pattern
    pattern = re.compile(text, re.MULTILINE | (re.IGNORECASE if search.ignore_case else 0))
    if search.only is not None:
        for number, line in lines_that_match(search.only, pattern):
            yield Match((), number, line)
        return
    unsearched = UNSEARCHED.removesuffix("*")
    with WorkspaceFiles(search.start, places) as files:
        for found in walk(files, places, search.start, LeftOut()):
            parts = tuple(found.place.split("/"))
            if found.kind != "file" or folded(parts[-1]).startswith(unsearched):
                continue
            if search.glob is not None and not search.glob.fit(found.place):
                continue
            try:
                data = files.read(str(search.start / found.place), most=MOST_BYTES).data
            except ToolError:
                continue  # closed, too large, or gone meanwhile: ripgrep passes it by as well
            for number, line in lines_that_match(data, pattern):
                yield Match(parts, number, line)


def _paths(texts: tuple[str, ...]) -> tuple[Path, ...]:
    return tuple(real_path(text) for text in texts)


def _end_in_time() -> None:
    """Have the system end this process when Rune is gone or forgot it: within a pattern no Python runs any more."""
    signal.alarm(math.ceil(SECONDS) + 1)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> int:
    """Read a search from stdin, write what is found to stdout."""
    _end_in_time()
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=_Order)
    start = real_path(order.start)
    search = Search(
        pattern=order.pattern,
        start=start,
        only=None if order.only is None else sys.stdin.buffer.read(),
        glob=globs(order.glob, start=start) if order.glob else None,
        ignore_case=order.ignore_case,
        literal=order.literal,
    )
    places = Places(reading=_paths(order.reading), writing=_paths(order.writing), own=_paths(order.own))
    for number, match in enumerate(find(search, places), 1):
        answer = _Answer(storable_path(Path(*match.parts)) if match.parts else "", match.number, match.line)
        sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
        if number == MOST_MATCHES:
            break
    sys.stdout.buffer.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
