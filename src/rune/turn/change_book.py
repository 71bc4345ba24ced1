"""What the tools of a conversation changed in files, put together from their receipts: by turn and by file.

A receipt says what a file held before and after a call. Where one does not begin with what the one before it left,
something else changed the file in between (the person, an editor, a command). A call of which nobody knows whether it
ran (`unknown`) counts as one that may have: what the file holds tells.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from rune.records.tools import FileTouch, PreparedCall
from rune.records.turns import TurnRecord
from rune.store.intents import StoredResult
from rune.tools.file_change import ABSENT

UNDO: Final = "undo"
"""The name under which `/undo` stands in the journal."""

_BECOMES: Final = " -> "


class Touch(NamedTuple):
    """A file became another: hashes of what it held, None for no file. Not `certain`: it may have."""

    before: str | None
    after: str | None
    certain: bool = True


class Trail(NamedTuple):
    """An unbroken row of changes: what the file held before the first and after the last. `broken`: there are earlier
    ones, after which something else changed it.
    """

    before: str | None
    after: str | None
    broken: bool


class TurnChanges(msgspec.Struct, kw_only=True):
    """What one turn changed and was not taken back yet, by path as it is stored; with those it resumes it is one turn.
    `turn_id` is its last part. `tried`: the person took it back once, as far as that went.
    """

    turn_id: str
    files: dict[str, list[Touch]] = {}
    tried: bool = False


class ChangeBook(msgspec.Struct, kw_only=True):
    """`turns` that changed something, in the order of their last changes; `files`, all that was ever done to each."""

    turns: list[TurnChanges]
    files: dict[str, list[Touch]]


def book_of(results: Iterable[StoredResult], turns: Sequence[TurnRecord]) -> ChangeBook:
    """Put receipts together, given in the order in which the calls ended."""
    resumes = {turn.id: turn.resumes for turn in turns if turn.resumes is not None}
    by_turn: dict[str, TurnChanges] = {}
    files: dict[str, list[Touch]] = {}
    for stored in results:
        touches = list(_touches(stored))
        turn_id = stored.result.turn_id
        first = _first(turn_id, resumes)
        for path, touch in touches:
            _add(files.setdefault(path, []), touch)
        if stored.result.tool == UNDO:
            if first in by_turn and stored.result.outcome != "unknown":
                by_turn[first].tried = True
                for path, _ in touches:
                    by_turn[first].files.pop(path, None)
            continue
        if not touches:
            continue
        changes = by_turn.pop(first, None) or TurnChanges(turn_id=turn_id)
        changes.turn_id, changes.tried = turn_id, False
        by_turn[first] = changes  # the newest comes last
        for path, touch in touches:
            _add(changes.files.setdefault(path, []), touch)
    return ChangeBook(turns=list(by_turn.values()), files=files)


def settled(touches: Sequence[Touch], now: str | None) -> Sequence[Touch]:
    """Leave out a last change that may have been made and was not, given what the file holds now."""
    return touches[:-1] if touches and not touches[-1].certain and touches[-1].after != now else touches


def trail_of(touches: Sequence[Touch]) -> Trail:
    """Return the unbroken row of changes that ends with the last one."""
    start = len(touches) - 1
    while start > 0 and touches[start - 1].after == touches[start].before:
        start -= 1
    return Trail(touches[start].before, touches[-1].after, broken=start > 0)


def preconditions_of(undone: Iterable[tuple[str, str | None, str | None]]) -> dict[str, str]:
    """Return what an undo is bound to: for each path what it holds and what it is to hold."""
    return {path: f"{now or ABSENT}{_BECOMES}{then or ABSENT}" for path, now, then in undone}


def _touches(stored: StoredResult) -> Iterable[tuple[str, Touch]]:
    if stored.result.outcome == "unknown" and stored.prepared is not None and not stored.result.files:
        return _possible(stored.prepared)
    return [(touch.path, _certain(touch)) for touch in stored.result.files if touch.changed]


def _certain(touch: FileTouch) -> Touch:
    return Touch(touch.before, touch.after)


def _possible(call: PreparedCall) -> Iterable[tuple[str, Touch]]:
    """Return what a call would have changed, from what it was bound to."""
    given = call.preconditions
    if call.call.name == UNDO:
        for path, change in given.items():
            now, _, then = change.partition(_BECOMES)
            yield path, Touch(_hash(now), _hash(then), certain=False)
    elif {"path", "before", "after"} <= given.keys():
        yield given["path"], Touch(_hash(given["before"]), _hash(given["after"]), certain=False)


def _hash(text: str) -> str | None:
    return None if text == ABSENT else text


def _add(touches: list[Touch], touch: Touch) -> None:
    if touches and not touches[-1].certain and touches[-1].after != touch.before:
        touches.pop()  # it was not made, as is known by now
    touches.append(touch)


def _first(turn_id: str, resumes: dict[str, str]) -> str:
    """Return the turn with which a chain of resumed ones began."""
    seen: set[str] = set()
    while turn_id in resumes and turn_id not in seen:
        seen.add(turn_id)
        turn_id = resumes[turn_id]
    return turn_id
