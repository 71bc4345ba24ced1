"""Edits by search and replacement: each search must stand at one place, and all edits are carried out or none.

What is not found character by character is looked for as small models garble it (other indentation, line numbers
copied along, "..." for what stays, HTML escapes and the like). Then too it must be one place, what was not edited keeps
the file's form, and what was done is said. When in doubt nothing is edited: a refusal tells the model what to give
instead, an edit in the wrong place tells nobody (docs/decisions/tolerant-edits.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, Literal, assert_never

from rune.tools.editing.book import Book
from rune.tools.editing.elided import elided
from rune.tools.editing.exact import MOST_PLACES, exact
from rune.tools.editing.forms import Form, forms
from rune.tools.editing.found import Found
from rune.tools.editing.nearest import nearest
from rune.tools.editing.part_of_line import part_of_line
from rune.tools.editing.whole_lines import OTHER_INDENTATION, ROUND_IT, whole_lines
from rune.tools.line_ends import Change, changed

Reason = Literal["empty", "not_found", "ambiguous", "doubtful", "overlapping", "changes_nothing", "already_there"]

_MOST_REFUSED: Final = 3  # edits that a refusal speaks of
_SHOWN: Final = 100  # characters of a line
_RECOGNISED: Final = 4  # characters that a replacement needs to be found as standing there already


@dataclass(frozen=True, slots=True)
class Edit:
    """What shall stand in the text once (`search`) is replaced by `replace`; an empty one takes it out."""

    search: str
    replace: str


@dataclass(frozen=True, slots=True)
class Edited:
    """The new text. `changes` are counted in the old one, in order; `notes` say what was done so that edits fit."""

    text: str
    changes: tuple[Change, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing was changed. `message` is for the model: why, where, what to give instead. `edit` counts from 0, and
    `lines` (from 1) are those in question.
    """

    reason: Reason
    message: str
    edit: int
    lines: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Located:
    number: int
    found: Found


def apply(text: str, edits: Sequence[Edit]) -> Edited | Refused:
    """Carry out all edits, or say why none was. Each is looked for in `text` as given, not in what others make of it.

    `text` has LF ends (`TextFile.text`); in one that has CR, searches must be exact. Raises nothing.
    """
    book = Book(text)
    located: list[_Located] = []
    refused: list[Refused] = []
    notes: list[str] = []
    seen: dict[Edit, int] = {}
    for number, given in enumerate(edits):
        edit = given if "\r" in text else Edit(_lf(given.search), _lf(given.replace))
        name = f"edit {number + 1}: " if len(edits) > 1 else ""
        if edit in seen:
            notes.append(f"{name}it is the same as edit {seen[edit] + 1} and was carried out once")
            continue
        seen[edit] = number
        found = _locate(book, edit, number)
        match found:
            case Refused():
                refused.append(found)
            case Found():
                located.append(_Located(number, found))
                notes += _notes(book, name, found)
            case _:
                assert_never(found)
        if len(refused) == _MOST_REFUSED:
            break
    return _outcome(book, edits, located, refused, notes)


def _outcome(
    book: Book, edits: Sequence[Edit], located: list[_Located], refused: list[Refused], notes: list[str]
) -> Edited | Refused:
    several = len(edits) > 1
    idle = [one for one in refused if one.reason == "changes_nothing"]
    if refused and (len(idle) < len(refused) or not located):
        first = next((one for one in refused if one not in idle), refused[0])
        told = "\n".join(f"edit {one.edit + 1}: {one.message}" if several else one.message for one in refused)
        fine = f" The other {len(located)} would fit: give them again together." if located else ""
        return Refused(first.reason, f"Nothing was changed.{fine}\n{told}", first.edit, first.lines)
    notes += [f"edit {one.edit + 1}: {one.message}" for one in idle]
    if not edits:
        return Refused("empty", "Nothing was changed: no edit was given.", 0)
    located.sort(key=lambda one: (one.found.start, one.found.end))
    for one, other in pairwise(located):
        if _overlap(one.found, other.found):
            return _overlapping(book, one, other)
    changes = sorted((change for one in located for change in one.found.changes), key=lambda change: change.start)
    return Edited(changed(book.text, changes), tuple(changes), tuple(notes))


def _locate(book: Book, edit: Edit, number: int) -> Found | Refused:
    if not edit.search:
        return Refused(
            "empty",
            "the search is empty. Give the lines that shall be replaced, or write the file as a whole.",
            number,
        )
    if edit.search == edit.replace:
        return Refused("changes_nothing", "search and replacement are the same, so it changes nothing.", number)
    places = exact(book, edit.search, edit.replace)
    if not places and "\r" not in book.text:
        places = _in_spite(book, edit)
    if not places:
        return _not_found(book, edit, number)
    if len(places) > 1:
        return _ambiguous(book, places, number)
    return _judged(book, places[0], number)


def _judged(book: Book, found: Found, number: int) -> Found | Refused:
    line = book.line_of(found.start) + 1
    if found.there:
        return Refused(
            "already_there",
            f"what shall be put in stands there already, at line {line}. If it shall stand there once more, give more "
            "of the lines round it.",
            number,
            (line,),
        )
    if found.doubt:
        return Refused("doubtful", f"it was found at line {line}, but {found.doubt}.", number, (line,))
    if all(book.text[change.start : change.end] == change.text for change in found.changes):
        return Refused(
            "changes_nothing",
            f"it was found at line {line}, and the replacement is what stands there, so it changes nothing.",
            number,
            (line,),
        )
    return found


def _in_spite(book: Book, edit: Edit) -> list[Found]:
    """Return where the edit fits in spite of how it was garbled. As given comes first; what fits only without
    something that may have been wrapped round it must be the same for each way to take that off.
    """
    if not edit.search.strip():
        return []
    as_given, *others = forms(edit.search, edit.replace)
    places = _tolerantly(book, as_given)
    if places:
        return places
    found: dict[tuple[int, int], Found] = {}
    for form in others:
        for place in _tolerantly(book, form, again=True):
            known = found.setdefault((place.start, place.end), place)
            if known.doubt and not place.doubt:
                found[place.start, place.end] = place
            elif known.changes != place.changes and not place.doubt:
                found[place.start, place.end] = replace(known, doubt="its replacement can be read in two ways")
    return list(found.values())


def _tolerantly(book: Book, form: Form, *, again: bool = False) -> list[Found]:
    if not form.search.strip():
        return []
    places = exact(book, form.search, form.replace) if again and not form.whole_lines else []
    places = places or whole_lines(book, form.search, form.replace)
    if not places and not form.whole_lines:
        places = part_of_line(book, form.search, form.replace)
    places = places or elided(book, form.search, form.replace)
    return [
        replace(place, said=_both(form, place), doubt=place.doubt or form.doubt or _other_depth(form, place))
        for place in places
    ]


def _other_depth(form: Form, place: Found) -> str:
    if form.as_indented and any(OTHER_INDENTATION in said for said in place.said):
        return "its lines are indented otherwise and only the search has line numbers; give both without"
    return ""


def _both(form: Form, place: Found) -> tuple[str, ...]:
    """Return what was taken off, and what differed besides."""
    return (*form.said, *(said for said in place.said if said != ROUND_IT or not form.said))


def _ambiguous(book: Book, places: list[Found], number: int) -> Refused:
    lines = tuple(dict.fromkeys(book.line_of(place.start) + 1 for place in places))
    count = f"{len(places)} or more" if len(places) >= MOST_PLACES else f"{len(places)}"
    where = ", ".join(str(line) for line in lines)
    before = "".join(f"\n{line - 1}: {_shown(book.lines[line - 2])}" for line in lines if line > 1)
    told = f" The lines before them are:{before}" if before else ""
    return Refused(
        "ambiguous",
        f"the search fits at {count} places ({_line(lines)} {where}), and must fit at one. Add lines before or after "
        f"it, as they are in the file, until it does.{told}",
        number,
        lines,
    )


def _not_found(book: Book, edit: Edit, number: int) -> Refused:
    there = _already(book, edit.replace)
    if there is not None:
        return Refused(
            "already_there",
            f"the search is not in the file, and the replacement stands there already, at line {there + 1}.",
            number,
            (there + 1,),
        )
    near = nearest(book, edit.search)
    if not near:
        told = "Nothing in the file is like it: read the file again and copy the lines as they are."
    else:
        told = "Most like it are the following lines; copy from them exactly, without their numbers:"
        told += "".join(f"\n{line + 1}: {_shown(text)}" for line, text in near)
    return Refused("not_found", f"the search is not in the file. {told}", number, tuple(line + 1 for line, _ in near))


def _already(book: Book, replace: str) -> int | None:
    """Return the line at which a replacement stands already, when it says enough to be recognised."""
    wanted = replace.strip()
    if len(wanted) < _RECOGNISED or not any(character.isalnum() for character in wanted):
        return None
    places = exact(book, wanted, "") or whole_lines(book, replace, "")
    return book.line_of(places[0].start) if len(places) == 1 else None


def _overlap(one: Found, other: Found) -> bool:
    """Say whether two edits concern the same characters; those that only touch do not."""
    begins = min(other.start, *(change.start for change in other.changes))
    ends = max(one.end, *(change.end for change in one.changes))
    return begins < ends


def _overlapping(book: Book, one: _Located, other: _Located) -> Refused:
    lines = tuple(book.line_of(place.found.start) + 1 for place in (one, other))
    return Refused(
        "overlapping",
        f"Nothing was changed.\nedits {one.number + 1} and {other.number + 1} overlap (lines {lines[0]} and {lines[1]})"
        ". Make one edit of them.",
        max(one.number, other.number),
        lines,
    )


def _notes(book: Book, name: str, found: Found) -> list[str]:
    line = book.line_of(found.start) + 1
    return [f"{name}line {line}: {'; '.join(found.said)}"] if found.said else []


def _line(lines: Sequence[int]) -> str:
    return "line" if len(lines) == 1 else "lines"


def _shown(line: str) -> str:
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"


def _lf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
