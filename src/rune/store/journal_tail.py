"""What is appended to the journal from a moment on, by any process: for whoever looks on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rune.errors import JournalMovedError
from rune.store.event_store import Cursor, EventStore, Offset
from rune.store.failures import unavailable
from rune.store.order import Located
from rune.store.segments import segment_name

# How often what does not verify, or is not durable yet, is looked at again before it has to change first.
_LOOKS: Final = 240
Looks = dict[str, tuple[int, int]]


class JournalTail:
    """Follows the journal in `folder` that `store` reads. Keeps one place a slot, whatever came by. Blocking.

    The views play no part: it goes on while they are made anew. Nothing is read while no file of the journal has
    changed, so that asking often costs next to nothing.
    """

    def __init__(self, store: EventStore, folder: Path) -> None:
        self._store = store
        self._folder = folder
        self._after: dict[str, Offset] = {}
        self._seen: Looks | None = None
        self._moved: Looks | None = None
        self._unsure: Looks | None = None
        self._left = 0

    def begin(self) -> Cursor:
        """Follow what comes after the events that are there now; returns where they end. Raises StorageError."""
        self._after = dict(self._store.head())
        return dict(self._after)

    def fresh(self) -> Iterator[Located]:
        """Iterate over what came since the last event that was given. Raises StorageError.

        Of two events of which one was written after the other was there, the other is given first, whichever slots
        they are in: what is given is everything up to a moment that lies before the reading begins.
        """
        looks = self._looks()
        if looks == self._seen:
            return
        goal = self._store.head()
        # A line that its writer could not make durable is taken back: it is read again from before it.
        self._after = {writer: min(at, goal[writer]) for writer, at in self._after.items() if writer in goal}
        behind = {writer for writer, at in goal.items() if writer not in self._after or self._after[writer] < at}
        events = self._store.read(self._after) if behind else iter(())
        try:
            for offset, envelope in events:
                self._after[offset.writer] = offset
                yield offset, envelope
                if offset.writer in behind and offset >= goal[offset.writer]:
                    behind.remove(offset.writer)
                    if not behind:
                        break
        except JournalMovedError:
            if looks == self._moved:
                raise
            self._moved = looks  # it is just being rewritten: the next look finds the same events elsewhere
            return
        self._note(looks, goal)

    def _note(self, looks: Looks, goal: Cursor) -> None:
        """Note that nothing is to be read until a file changes, unless something stands behind what was given: what
        this process writes is in the file before it is durable. A torn end is looked at some times and no more.
        """
        if looks != self._unsure:
            self._unsure, self._left = looks, _LOOKS
        self._left -= 1
        last = {name.partition("-")[0]: (name, size) for name, (_, size) in sorted(looks.items())}
        ends = {writer: (segment_name(writer, at.segment), at.position) for writer, at in goal.items()}
        if last == ends or self._left == 0:
            self._seen = looks

    def _looks(self) -> Looks:
        try:
            return {
                path.name: (status.st_ino, status.st_size)
                for path in self._folder.glob("*.jsonl")
                for status in (path.stat(),)
            }
        except FileNotFoundError:
            return {}  # a segment was replaced while we looked: look again
        except OSError as error:
            raise unavailable(error, f"cannot look at the journal {str(self._folder)!r}") from error
