"""Looking with ripgrep, started so that neither a configuration nor the project changes what it does.

It goes through the folder itself, which is what makes it fast; that it leaves out what `walking` leaves out is a matter
of its options, held by a campaign of generated folders.
"""

import asyncio
import os
import re
import shutil
from collections.abc import Mapping
from typing import Final

from rune.text.storable import storable
from rune.tools.places import Places
from rune.tools.searching.child import run_child
from rune.tools.searching.search import (
    MOST_MATCHES,
    MOST_OF_A_LINE,
    SECONDS,
    UNSEARCHED,
    Match,
    Outcome,
    Search,
)
from rune.tools.walking import FILLED

_OPTIONS: Final = (
    "--no-config",
    "--null",  # after a file's name
    "--with-filename",
    "--line-number",
    "--no-heading",
    "--color=never",
    "--no-follow",
    "--no-messages",
    "--crlf",
    "--hidden",  # files; folders are taken out below
    "--no-ignore-global",
    "--no-ignore-exclude",
    "--no-ignore-dot",
    "--no-require-git",
    f"--max-columns={MOST_OF_A_LINE}",
    "--max-columns-preview",
)
_MATCH: Final = re.compile(rb"([^\0]+)\0(\d+):([^\n]*)\n")
# In a file with zero bytes: it is none in which to look, and what stood before them is taken back.
_BINARY: Final = re.compile(rb"(?s)\A(?:(.+?): WARNING: stopped searching binary file [^\n]*\n)")
_CUT: Final = re.compile(rb" \[\.\.\. (?:omitted end of long line|\d+ more match(?:es)?)\]\Z")
_PLAIN_NAMES: Final = re.compile(r"[\w.*?+-]+")
_PATTERN_REFUSED: Final = 2


def find_ripgrep(environment: Mapping[str, str]) -> str | None:
    """Return where ripgrep is, by the search path of commands, in which nothing of the project lies."""
    return shutil.which("rg", path=environment.get("PATH", ""))


async def search_by_ripgrep(
    program: str, search: Search, *, folder: int, places: Places, environment: Mapping[str, str], stop: asyncio.Event
) -> Outcome:
    """Look; `folder` is `search.start`, open. Raises CommandNotStartedError."""
    reader = _Reader(search)
    options = [*_OPTIONS, "--ignore-case" if search.ignore_case else "--case-sensitive"]
    if search.literal:
        options.append("--fixed-strings")
    if search.only is None:
        options += _names(search, places)
    ended = await run_child(
        [program, *options, f"--regexp={search.pattern}", "--", "-" if search.only is not None else "."],
        folder=folder,
        named=search.start,
        environment=environment,
        given=search.only or b"",
        take=reader.take,
        stop=stop,
        seconds=SECONDS,
    )
    matches = reader.finish()
    refused = ended.complaint.strip() if ended.code == _PATTERN_REFUSED and not matches else ""
    return Outcome(
        matches=matches,
        refused=_reason(refused),
        complete=ended.code is not None and not ended.enough,
        stopped=ended.stopped,
        timed_out=ended.timed_out,
    )


def _names(search: Search, places: Places) -> list[str]:
    """Return the options that say in which files to look."""
    options = ["--glob=!.*/", *(f"--glob=!{name}/" for name in FILLED)]
    # A type is asked for names alone, after .gitignore: a `--glob` of its own would bring back what that left out, and
    # `--iglob` takes longer.
    if search.glob is not None and search.glob.names and all(map(_PLAIN_NAMES.fullmatch, search.glob.texts)):
        options += [f"--type-add=wanted:{text}" for text in search.glob.texts]
        options.append("--type=wanted")
    options += [f"--type-add=unsearched:{name}" for name in (".git", UNSEARCHED)]
    for pattern in places.secret_globs(search.start):
        chain = pattern.removeprefix("**/")
        if chain == pattern or ("/" in chain and not chain.startswith(".")):
            options.append(f"--iglob=!{pattern}")
        elif "/" not in chain:
            options.append(f"--type-add=unsearched:{_in_any_case(chain)}")
    # What is left is in a hidden folder: it is not entered, and where the search starts in one it has its own pattern.
    return [*options, "--type-not=unsearched"]


def _in_any_case(name: str) -> str:
    return "".join(f"[{each.lower()}{each.upper()}]" if each.isalpha() else each for each in name)


def _reason(said: str) -> str:
    """Return the sentence in what ripgrep says of a pattern."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    found = next((line.removeprefix("error: ") for line in lines if line.startswith("error: ")), "")
    return storable(found or " ".join(lines))


class _Reader:
    """Makes matches out of what ripgrep writes."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._rest = b""
        self._matches: list[Match] = []
        self._binary: set[bytes] = set()
        self._wanted: dict[bytes, tuple[str, ...] | None] = {}

    def take(self, chunk: bytes) -> bool:
        """Take a piece; return whether more is wanted."""
        whole = self._rest + chunk
        end = 0
        for found in _MATCH.finditer(whole):
            end = found.end()
            place, number, line = found.groups()
            parts = self._parts(self._after_warnings(place))
            if parts is not None:
                self._matches.append(Match(parts, int(number), _beginning(line)))
        self._rest = whole[end:]
        return len(self._matches) < MOST_MATCHES

    def finish(self) -> list[Match]:
        """Return what was found, in order."""
        self._after_warnings(self._rest)
        binary = {self._split(place) for place in self._binary}
        return sorted(match for match in self._matches if match.parts not in binary)[:MOST_MATCHES]

    def _after_warnings(self, text: bytes) -> bytes:
        while warning := _BINARY.match(text):
            self._binary.add(warning[1])
            text = text[warning.end() :]
        return text

    def _parts(self, place: bytes) -> tuple[str, ...] | None:
        """Return a file's name in parts, None for one that is not wanted."""
        if place not in self._wanted:
            parts = self._split(place)
            glob = self._search.glob
            wanted = glob is None or not parts or glob.fit("/".join(parts))
            self._wanted[place] = parts if wanted else None
        return self._wanted[place]

    def _split(self, place: bytes) -> tuple[str, ...]:
        return () if self._search.only is not None else tuple(os.fsdecode(place.removeprefix(b"./")).split("/"))


def _beginning(line: bytes) -> bytes:
    line = line.removesuffix(b"\r")
    return line if len(line) <= MOST_OF_A_LINE else _CUT.sub(b"", line)[:MOST_OF_A_LINE]
