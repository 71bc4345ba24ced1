"""Secrets in what a model asks for: they are masked before a call is stored, and such a call is not carried out.

A mask that the model read somewhere stands for a secret that it never saw. Written into a file it would destroy the
secret, so a change that holds one is refused as well. And nothing is asked about of which a part would be masked: what
is not shown cannot be approved.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

from rune.records.tools import ToolCall
from rune.text.storable import storable
from rune.tools.executor import ToolKind
from rune.tools.workplace import Workplace

_MARKER: Final = re.compile(r"\[secret:[^\[\]\n]{1,120}\]")
SECRETIVE: Final = (
    "Not done: the arguments hold what looks like a secret, and Rune keeps none in its journal. Leave it out; the "
    "person can put it in."
)
HOLDS_MARKER: Final = (
    "Not done: [secret:...] stands for a secret that you were not shown, and writing it would destroy the real one. "
    "Change only the lines around it."
)

UNNAMEABLE: Final = (
    "Not done: the name of a file that it would change holds what looks like a secret, and Rune keeps none in its "
    "journal. Leave it to the person."
)
UNSHOWABLE: Final = (
    "Not done: a part of what it would do looks like a secret where it would stand, so the person could not be shown "
    "all of it. Leave the lines around it as they are, or ask the person to do it."
)
_LONGEST_ID: Final = 200  # characters; servers give some 40


def guarded(call: ToolCall, mask: Callable[[str], str]) -> tuple[ToolCall, bool]:
    """Return a call as it is stored, and whether something had to be masked in it."""
    arguments = cast("dict[str, Any]", _masked(call.arguments, mask))
    name = mask(storable(call.name))
    kept = ToolCall(id=_id(call.id, mask), name=name, arguments=arguments, source=call.source)
    return kept, name != storable(call.name) or arguments != _storable(call.arguments)


def refusal(call: ToolCall, kind: ToolKind, *, secret: bool) -> str:
    """Return why a call is not carried out; "" when nothing stands in its way."""
    if secret:
        return SECRETIVE
    if kind in {"edit", "run"} and any(_MARKER.search(text) for text in _texts(call.arguments)):
        return HOLDS_MARKER
    return ""


def hides_what_it_does(kind: ToolKind, detail: str, shown: str) -> bool:
    """Say whether masking took something out of the text by which a person decides about a call that they have to know:
    of a change what would stand in the file, of a program all but the facts about it. A file of the project can be
    written so that what is put between two lines of it looks like a part of a key.
    """
    if detail == shown or kind not in {"edit", "run"}:
        return False
    lines, masked = detail.split("\n"), shown.split("\n")
    if len(lines) != len(masked):
        return True  # lines are gone
    if kind == "edit":
        return any(line.startswith("+") and line != other for line, other in zip(lines, masked, strict=True))
    facts = lines.index("") if "" in lines else 0
    return lines[facts:] != masked[facts:]


def openly_named(path: Path, place: Workplace) -> bool:
    """Say whether a path can be written down: nothing in its name, below the folder, would have to be masked. A link
    leads also where no argument says it.
    """
    name = storable(place.named(path))
    return place.masker.mask(name) == name


def _id(given: str, mask: Callable[[str], str]) -> str:
    """Return an id that can be kept, "" for one that cannot: it then gets another."""
    kept = storable(given)
    return kept if kept == given and len(given) <= _LONGEST_ID and mask(given) == given else ""


def _storable(arguments: dict[str, Any]) -> dict[str, Any]:
    return cast("dict[str, Any]", _masked(arguments, lambda text: text))


def _masked(value: object, mask: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return mask(storable(value))
    if isinstance(value, dict):
        items = cast("dict[str, object]", value)
        return {mask(storable(key)): _masked(each, mask) for key, each in items.items()}
    if isinstance(value, list):
        return [_masked(each, mask) for each in cast("list[object]", value)]
    return value


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for each in cast("dict[str, object]", value).values() for text in _texts(each)]
    if isinstance(value, list):
        return [text for each in cast("list[object]", value) for text in _texts(each)]
    return []
