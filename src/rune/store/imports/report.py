"""What an import came to."""

from collections import Counter
from typing import Literal, Protocol

import msgspec

from rune.store.imports.arrivals import Became

ImportKind = Literal["events", "operator", "pins"]

SHOWN = 20
"""So many things that were left, and so many notes, are named; the rest are counted."""


class Named(msgspec.Struct, frozen=True):
    """Something that a person should look at: where in the file, and what about it."""

    where: str
    text: str


class ImportReport(msgspec.Struct, kw_only=True):
    """Counts of one run. `seen` are lines, tasks or chunks that hold something; each of them is new, already there,
    or left. `new` counts by what they became; `conversations` those that began. `left_named` and `noted_named`
    are the first 20 of each kind, `noted` how many notes there were.
    """

    seen: int = 0
    there: int = 0
    left: int = 0
    noted: int = 0
    conversations: int = 0
    new: Counter[Became] = msgspec.field(default_factory=Counter[Became])
    left_named: list[Named] = msgspec.field(default_factory=list[Named])
    noted_named: list[Named] = msgspec.field(default_factory=list[Named])

    @property
    def arrived(self) -> int:
        """How many are new."""
        return self.new.total()


class Listener(Protocol):
    """Is told how an import goes on, as it does."""

    def left(self, named: Named) -> None:
        """One of the first 20 that were left."""
        ...

    def noted(self, named: Named) -> None:
        """One of the first 20 notes."""
        ...

    def progress(self, seen: int) -> None:
        """So many are done and stored; called after each batch."""
        ...
