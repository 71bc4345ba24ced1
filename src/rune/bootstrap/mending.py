"""What `rune doctor --mend` does: each thing is said before it is done, nothing is asked, nothing is thrown away
that could be needed.
"""

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from rune.bootstrap.comparison import compare_with_journal
from rune.bootstrap.core import VIEWS_VERSION, open_engine
from rune.bootstrap.erasing import open_erasure
from rune.bootstrap.examination import DAY_MS
from rune.errors import RuneError, StorageUnavailableError
from rune.host.clock import Clock, SystemClock
from rune.host.files import is_locked
from rune.host.ids import UlidSource
from rune.host.paths import Home, device_id, prepare, resolve_home
from rune.host.permissions import open_places, tighten
from rune.store.durable_store import DurableEventStore
from rune.store.evidence_store import EvidenceStore
from rune.store.mending.backups import BackupBook, unshare
from rune.store.mending.damage import Damage, find_damage
from rune.store.mending.journal_inspection import JournalState, inspect_journal
from rune.store.mending.quarantine import quarantine
from rune.store.mending.views_inspection import inspect_views
from rune.store.segments import segment_name
from rune.store.slots import claim_this_slot
from rune.surface.erasure import places_lines
from rune.surface.journal_checks import views as judged_views
from rune.surface.sizes import counted, size_text

_UNFINISHED: Final = re.compile(r"\.(?P<slot>w[0-9]{3})-.*\.tmp")


class Mended(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was to be mended: `what` was announced, `problem` says why it could not be done ("": it was)."""

    what: str
    problem: str = ""


def mend(environ: Mapping[str, str], say: Callable[[str], None]) -> tuple[Mended, ...]:
    """Mend what can be mended in the home that `environ` names. `say` gets each thing before it is done, and why one
    could not be. Blocks. Raises StorageUnavailableError where there is no home to be found.
    """
    home = resolve_home(environ)
    if not home.data_dir.is_dir():
        return ()
    return _Mending(environ, home, SystemClock(), say).run()


class _Mending:
    """Goes through what can be wrong, in the order in which one thing rests on another."""

    def __init__(self, environ: Mapping[str, str], home: Home, clock: Clock, say: Callable[[str], None]) -> None:
        self._environ = environ
        self._home = home
        self._clock = clock
        self._ids = UlidSource(clock)
        self._say = say
        self._evidence = EvidenceStore(home.evidence, clock)
        self._backups = BackupBook(home, clock)
        self._done: list[Mended] = []
        self._moved = False

    def run(self) -> tuple[Mended, ...]:
        for step in (self._permissions, self._leftovers, self._damage, self._erasing, self._views):
            try:
                step()
            except (RuneError, OSError) as error:
                self._failed("looking at it", error)
        return tuple(self._done)

    def _do(self, what: str, work: Callable[[], object]) -> bool:
        """Say it, do it, keep how it went."""
        self._say(what)
        try:
            work()
        except (RuneError, OSError) as error:
            self._failed(what, error)
            return False
        self._done.append(Mended(what=what))
        return True

    def _failed(self, what: str, error: RuneError | OSError) -> None:
        problem = error.in_one_line if isinstance(error, RuneError) else str(error)
        self._say(f"that could not be done: {problem}")
        self._done.append(Mended(what=what, problem=problem))

    def _permissions(self) -> None:
        for place in open_places(self._home):
            self._do(f"closing {place.path} to others (mode {place.wanted:04o})", lambda place=place: tighten(place))
        prepare(self._home)

    def _leftovers(self) -> None:
        if count := sum(self._is_old(path) for path in _entries(self._home.evidence / "unfinished")):
            self._do(f"removing {counted(count, 'unfinished blob')} of over a day ago", self._evidence.sweep)
        if left := self._backups.unfinished():
            self._do(f"removing {counted(len(left), 'unfinished backup')}", self._backups.remove_unfinished)
        for path in (*_entries(self._home.journal), *_entries(self._home.state)):
            if path.name.startswith(".") and path.name.endswith(".tmp") and self._is_old(path) and self._is_free(path):
                self._do(f"removing {path}, which a killed process left unfinished", path.unlink)

    def _damage(self) -> None:
        found = find_damage(self._home.journal, self._evidence) if self._home.journal.is_dir() else ()
        strange = [each.refusal for each in found if each.refusal is not None]
        for refusal in strange:
            # What another program or a later Rune wrote is no damage, and nothing is mended beside it.
            self._say(f"left alone: {refusal.in_one_line}")
            self._done.append(
                Mended(what=f"leaving alone what cannot be read: {refusal.message}", problem=refusal.hint)
            )
        damaged = [each for each in found if each.refusal is None]
        if strange and damaged:
            self._say(f"{counted(len(damaged), 'damaged place')} can be mended once that is done")
        if strange or not damaged:
            return
        for each in damaged:
            place = f"{each.segment}, line {each.line:,}, byte {each.byte:,}"
            self._say(f"damaged: {place}: {each.reason}; {counted(each.intact_behind, 'intact event')} behind it")
        what = "setting the damaged parts aside, beside the journal, and writing what is intact in them again"
        self._moved = self._do(what, lambda: self._set_aside(damaged))

    def _set_aside(self, found: Sequence[Damage]) -> None:
        for each in found:
            with contextlib.ExitStack() as held:
                held.callback(claim_this_slot(self._home.journal, each.writer, self._clock).release)
                # This one is cut, and the one before it goes on being written where nothing of this one stays.
                for number in (each.number - 1, each.number):
                    path = self._home.journal / segment_name(each.writer, number)
                    if path.exists():
                        unshare(path)
        done = quarantine(
            self._home.journal,
            evidence=self._evidence,
            clock=self._clock,
            ids=self._ids,
            device_id=device_id(self._home, self._ids),
        )
        for part in done:
            self._say(f"{part.segment}: {size_text(part.bytes)} kept as {part.kept_as}; {part.reason}")

    def _erasing(self) -> None:
        if left := self._state().unblanked:
            what = f"finishing an erasure that was cut off, of {counted(len(left), 'body', 'bodies')}"
            self._do(what, self._finish_erasure)

    def _finish_erasure(self) -> None:
        report = open_erasure(self._environ).finish()
        for line in places_lines(report):
            self._say(line)
        if report.left:
            raise StorageUnavailableError(f"the text is still in {', '.join(report.left)}")

    def _views(self) -> None:
        path = self._home.views_file(VIEWS_VERSION)
        if self._moved or not self._usable(path):
            self._do(f"making {path.name} anew from the journal", self._rebuild)

    def _usable(self, path: Path) -> bool:
        found, journal = inspect_views(path), self._state()
        if not found.there or judged_views(found, path, journal, {}).state != "ok":
            return not found.there
        if found.log_unread or journal.damage:
            return True  # as far as can be told here
        return not compare_with_journal(self._home, self._environ, seconds=None).differing

    def _rebuild(self) -> None:
        store = DurableEventStore.open(
            self._home.journal,
            clock=self._clock,
            ids=self._ids,
            device_id="",
            evidence=self._evidence,
            read_only=True,
        )
        engine = open_engine(self._home, store, self._evidence, lambda _: None, None)
        try:
            engine.rebuild()
        finally:
            engine.close()

    def _state(self) -> JournalState:
        return inspect_journal(self._home.journal, self._evidence)

    def _is_old(self, path: Path) -> bool:
        return self._clock.now_ms() - path.lstat().st_mtime_ns // 1_000_000 > DAY_MS

    def _is_free(self, path: Path) -> bool:
        """Say whether nobody writes there: a slot's own files are its holder's matter."""
        slot = _UNFINISHED.fullmatch(path.name)
        return slot is None or not is_locked(self._home.journal / f"{slot['slot']}.lock")


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() and not folder.is_symlink() else []
