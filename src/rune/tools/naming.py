"""Names of files as a model reads and writes them: each in one line, and found again by what was shown."""

import difflib
from collections.abc import Iterable
from pathlib import Path

from rune.host.paths import storable_path
from rune.text.safe_text import safe_text


def shown_name(path: str | Path) -> str:
    r"""Return a path in one line: what is no text as `storable_path` writes it, what is not seen or turns a line by
    name (`\n`, `<U+202E>`).
    """
    return safe_text(storable_path(Path(path)), newlines=False, tabs=False)


def meant(given: str, names: Iterable[str]) -> str | None:
    """Return the one name that is shown as `given`; None where there is none, or more than one."""
    found = [name for name in names if shown_name(name) == given]
    return found[0] if len(found) == 1 else None


def nearest(given: str, names: Iterable[str], most: int = 3) -> list[str]:
    """Return the names that are most like the given one, as they are shown, the nearest first."""
    by_folded = {name.casefold(): name for name in sorted(names, reverse=True)}
    found = difflib.get_close_matches(given.casefold(), by_folded, n=most, cutoff=0.6)
    return [shown_name(by_folded[name]) for name in found]
