"""What a model may do next in a turn, and what its answer means where it is no answer to the person."""

import asyncio
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from rune.errors import ToolError
from rune.models.first_guess import is_tiny
from rune.models.text_tools.essay import described_instead_of_acting
from rune.records.tools import ToolSchema
from rune.tools.demand import asks_for_work
from rune.tools.moves import ENDINGS, NOTHING_TO_CHANGE, Moves, editable_paths, legal_moves, situation_of
from rune.tools.project_commands import detect
from rune.tools.project_facts import read_project
from rune.tools.text_file import TextFile, decode
from rune.tools.walking import LeftOut, walk
from rune.tools.workplace import Workplace
from rune.turn.flight import Answer, Flight, ModelRun
from rune.turn.session import Session

_LISTED: Final = 301  # one more than are enumerated: then nothing is
_LOOKED_AT: Final = 20_000  # names, folders and what is left out among them
_MOST_BYTES: Final = 20_000
_MOST_LINES: Final = 300
_SLOW_SECONDS: Final = 1.0
_ENDS: Final = frozenset(ending.name for ending in ENDINGS)


class MoveBook:
    """Decides about moves: those of a model that is held to a schema, and what a native answer was meant as."""

    def __init__(self) -> None:
        self._slow: dict[Path, tuple[tuple[str, ...], tuple[str, ...]]] = {}

    async def legal(self, flight: Flight, session: Session, offered: Sequence[ToolSchema], place: Workplace) -> Moves:
        """Return what a model that is held to a schema may do now. A folder that cannot be listed narrows nothing."""
        task = flight.message.content if flight.message is not None else ""
        files, checks = await self._around(place)
        before = len(session.made) - _made_since(session, flight)
        situation = situation_of(
            task,
            calls=session.made[before:],
            earlier=session.made[:before],
            folder=place.folder,
            files=files,
            checks=checks,
        )
        mask = place.masker.mask
        situation = replace(situation, files=_showable(situation.files, mask), seen=_showable(situation.seen, mask))
        if flight.model is not None and is_tiny(flight.model.info):
            paths = editable_paths(situation)
            # Of several files a line would have to be chosen with its file: then it writes what it looks for.
            lines = await asyncio.to_thread(_lines_of, place, paths[0]) if len(paths) == 1 else ()
            situation = replace(situation, lines=_showable(lines, mask))
        return legal_moves(offered, situation)

    async def _around(self, place: Workplace) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the files that there are and what checks them; of a folder that takes long to look at what was seen
        the first time: it is asked for before each answer.
        """
        if (known := self._slow.get(place.folder)) is not None:
            return known
        loop = asyncio.get_running_loop()
        began = loop.time()
        found = await asyncio.to_thread(_surroundings, place)
        if loop.time() - began > _SLOW_SECONDS:
            self._slow[place.folder] = found
        return found

    def is_essay(self, flight: Flight, run: ModelRun, answer: Answer, offered: Sequence[ToolSchema]) -> bool:
        """Say whether a native answer only describes what was to be done: it is asked for once more, constrained."""
        if not offered or flight.acted or run.protocol == "constrained" or flight.message is None:
            return False
        asked = asks_for_work(flight.message.content)
        return answer.complete and described_instead_of_acting(answer.content, asked_for_work=asked)

    def gives_up(self, answer: Answer) -> str | None:
        """Return what the person is told by an answer that is the move to do nothing more; None for any other."""
        call = next((call for call in answer.calls if call.name in _ENDS), None)
        if call is None:
            return None
        reason = str(call.arguments.get("reason", "")).strip()
        said = "Nothing was changed" if call.name == NOTHING_TO_CHANGE.name else "Not done: I am stuck"
        return f"{said}. {reason}" if reason else f"{said}."


def _made_since(session: Session, flight: Flight) -> int:
    """Return how many calls were made for the turn's message, before a pause too."""
    count = 0
    for message in reversed(session.history):
        if flight.message is not None and message.id == flight.message.id:
            break
        count += message.role == "tool"
    return min(count, len(session.made))


def _showable(paths: tuple[str, ...], mask: Callable[[str], str]) -> tuple[str, ...]:
    """Return those in whose name nothing is masked: a schema is sent and kept, and calls with others are refused."""
    together = "\n".join(paths)
    return paths if mask(together) == together else tuple(path for path in paths if mask(path) == path)


def _surroundings(place: Workplace) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the files that there are, () for too many to choose from, and the command that checks the project."""
    facts = read_project(place)
    try:
        checks = (shlex.join(detect("test", facts).words("")),)
    except ToolError:
        checks = ()
    files: list[str] = []
    looked_at = count()
    stop = partial(_enough, looked_at)
    try:
        for found in walk(place.files, place.places, place.folder, LeftOut(), stop=stop):
            if found.kind == "file" and not _is_empty(place.folder / found.place):
                files.append(found.place)
            if len(files) >= _LISTED:
                return (), checks
    except ToolError:
        return (), checks  # the folder is closed or gone: then nothing is narrowed, and the tools say why
    return (tuple(files) if next(looked_at) <= _LOOKED_AT else ()), checks


def _lines_of(place: Workplace, path: str) -> tuple[str, ...]:
    """Return the lines of a file that stand in it once, () for more than can be chosen from."""
    try:
        file = decode(place.files.read(path, most=_MOST_BYTES).data)
    except ToolError:
        return ()  # too large, or gone: then the model writes what it looks for, and is told why it is not there
    if not isinstance(file, TextFile) or "\r" in file.text:
        return ()
    lines = Counter(file.text.split("\n"))
    chosen = tuple(line for line, times in lines.items() if times == 1 and line.strip())
    return chosen if len(chosen) <= _MOST_LINES else ()


def _is_empty(path: Path) -> bool:
    """Whether there is nothing in a file to read (`__init__.py`, mostly)."""
    try:
        return path.lstat().st_size == 0
    except OSError:
        return False  # gone, or closed: whoever reads it is told


def _enough(looked_at: Iterator[int]) -> bool:
    return next(looked_at) >= _LOOKED_AT
