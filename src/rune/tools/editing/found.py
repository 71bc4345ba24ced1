"""Where an edit was found, and what it would do there."""

from dataclasses import dataclass

from rune.tools.line_ends import Change


@dataclass(frozen=True, slots=True)
class Found:
    """One place of a text, `start` to `end`, in which a search was found.

    `changes` carry the edit out, unless `doubt` says why that is not certain; `said` is what was done so that it fits.
    `there` says that what shall be put in stands there already.
    """

    start: int
    end: int
    changes: tuple[Change, ...] = ()
    said: tuple[str, ...] = ()
    doubt: str = ""
    there: bool = False
