"""Which offered tool a model means by the name that it wrote."""

import re
from collections.abc import Collection, Iterator
from typing import Final

_NAMESPACES: Final = ("functions", "function", "tools", "tool", "default_api", "default", "api")
_MARKS: Final = (".", ":", "/")
_SERVER: Final = re.compile(r"mcp__(?=.)")
_STRIPPED: Final = 3


def offered_name(written: str, offered: Collection[str]) -> str | None:
    """Return the offered name: as written, or what is left without namespaces when that is exactly one of them."""
    if written in offered:
        return written
    candidates = {written}
    for _ in range(_STRIPPED):
        candidates = {rest for candidate in candidates for rest in _without_a_namespace(candidate)}
        found = candidates.intersection(offered)
        if found:
            return found.pop() if len(found) == 1 else None
    return None


def _without_a_namespace(name: str) -> Iterator[str]:
    for namespace in _NAMESPACES:
        for mark in _MARKS:
            if name.startswith(namespace + mark):
                yield name[len(namespace) + len(mark) :]
    if _SERVER.match(name):
        place = name.find("__", len("mcp__") + 1)
        while place >= 0:  # a server's name may itself hold two underscores
            yield name[place + 2 :]
            place = name.find("__", place + 1)
