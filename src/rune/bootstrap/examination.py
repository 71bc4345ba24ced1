"""What `rune doctor` checks, set up so that it works when nothing else does, and changes nothing."""

import asyncio
import functools
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from rune.bootstrap.comparison import compare_with_journal
from rune.bootstrap.core import VIEWS_VERSION, read_settings
from rune.bootstrap.servers import reachable_transports
from rune.config.trust import TrustBook
from rune.errors import RuneError
from rune.host.clock import Clock, SystemClock
from rune.host.machine import available_memory
from rune.host.paths import Home, resolve_home
from rune.models.embedded.model_file import embedded_model_path
from rune.models.embedded.transport import embedded_installed
from rune.models.router import Router
from rune.observability.retention import Retention
from rune.records.ids import is_id
from rune.records.session import LeaseHolder
from rune.store.evidence_store import EvidenceStore
from rune.store.leases import LeaseBook
from rune.store.mending.backups import BackupBook
from rune.store.mending.evidence_inspection import inspect_evidence
from rune.store.mending.journal_inspection import JournalState, inspect_journal
from rune.store.mending.views_comparison import Comparison
from rune.store.mending.views_inspection import inspect_views
from rune.surface import checks, home_checks, journal_checks
from rune.surface.doctor import Check, Finding

DAY_MS: Final = 24 * 60 * 60 * 1000
_TOLD_AFTER_SECONDS: Final = 1.0


def examine(environ: Mapping[str, str], *, told: Callable[[str], None] = lambda _: None) -> list[Check]:
    """Return the checks of `rune doctor`: each opens only what it looks at, so that they work when `build` does not.

    `told` is called, on a thread and at most once a second, with how far a long one is. One that is cancelled ends
    soon on its thread too.
    """
    home, clock = resolve_home(environ), SystemClock()
    settings, _ = read_settings(home, lenient=True)  # the check `config` says what is wrong with it
    stored = _Stored(home, environ, clock, told)
    retention = Retention(home, settings.retention, clock, lambda _subsystem, _error: None)
    book = BackupBook(home, clock)

    def stand_in() -> Finding:
        named = embedded_model_path(home.models, environ, settings.model.embedded_model)
        return checks.stand_in(named, installed=embedded_installed())

    try:
        transports = reachable_transports(home, settings, environ)
        router = Router(transports, local_only=settings.model.local_only, memory=available_memory())
        models = [checks.answers(router, settings.model.name), *checks.models(transports)]
    except RuneError as error:
        models = [checks.failing("models", error)]
    return [
        checks.blocking("environment", checks.environment),
        checks.blocking("config", lambda: checks.config(home.config_file)),
        checks.blocking("home", lambda: home_checks.places(home)),
        checks.blocking("permissions", lambda: home_checks.permissions(home)),
        checks.blocking("locks", lambda: home_checks.locks(home)),
        *stored.checks(),
        checks.blocking("retention", lambda: home_checks.retention(retention.sizes(), settings.retention)),
        checks.blocking("backups", lambda: home_checks.backups(book.kept(), len(book.unfinished()), clock.now_ms())),
        checks.blocking("trust", lambda: checks.trust(TrustBook(home.trust_file), Path.cwd())),
        *models,
        checks.blocking("stand-in", stand_in),
    ]


class _Stored:
    """The checks of what is stored: one pass over the journal feeds all of them."""

    def __init__(self, home: Home, environ: Mapping[str, str], clock: Clock, told: Callable[[str], None]) -> None:
        self._home = home
        self._environ = environ
        self._clock = clock
        self._told = told
        self._last_told = clock.monotonic()
        self._stopped = threading.Event()
        self._evidence = EvidenceStore(home.evidence, clock)
        self._leases = LeaseBook(home.leases, clock)

    def checks(self) -> list[Check]:
        """Return them in the order in which they are run."""
        return [
            self._check("journal", lambda: journal_checks.journal(self._state, self._clock.now_ms())),
            self._check("evidence", self._look_at_evidence),
            self._check("erasing", lambda: journal_checks.erasing(self._state)),
            self._check("views", self._look_at_views),
            checks.blocking("leases", lambda: home_checks.leases(self._home, self._leases, self._clock.now_ms())),
            self._check("turns", lambda: journal_checks.turns(self._state, self._holder)),
            self._check("clock", lambda: journal_checks.clock(self._state, self._clock.now_ms())),
        ]

    def _check(self, name: str, look: Callable[[], Finding]) -> Check:
        return checks.blocking(name, look, self._stopped.set)

    @functools.cached_property
    def _state(self) -> JournalState:
        return self._inspected()

    def _inspected(self) -> JournalState:
        return inspect_journal(
            self._home.journal, self._evidence, lambda events: self._tell(f"reading the journal, {events:,} events")
        )

    def _look_at_evidence(self) -> Finding:
        named = self._state.named
        found = inspect_evidence(
            self._home.evidence,
            self._evidence,
            named,
            gone=self._state.gone,
            before_ms=self._clock.now_ms() - DAY_MS,
            told=lambda done, whole: self._tell(f"verifying evidence, {done:,} of {whole:,} blobs"),
        )
        return journal_checks.evidence(found, named)

    def _look_at_views(self) -> Finding:
        path = self._home.views_file(VIEWS_VERSION)
        others = self._home.data_dir.glob("views-*.db") if self._home.data_dir.is_dir() else ()
        older = {other.name: other.lstat().st_size for other in others if other != path}
        state, journal = inspect_views(path), self._state
        if journal_checks.hold_more(state, journal):
            journal = self._inspected()  # somebody wrote since the journal was looked at, and the views took it in
        finding = journal_checks.views(state, path, journal, older)
        if finding.state != "ok" or not state.there or state.log_unread:
            return finding
        if journal.damage or journal.newer or journal.foreign:
            return journal_checks.compared_views(finding, Comparison(not_compared="it cannot be read whole"), path)
        found = compare_with_journal(
            self._home,
            self._environ,
            told=lambda events: self._tell(f"comparing the views with the journal, {events:,} events"),
        )
        return journal_checks.compared_views(finding, found, path)

    def _holder(self, conversation_id: str) -> LeaseHolder | None:
        return self._leases.holder(conversation_id) if is_id(conversation_id, "cnv") else None

    def _tell(self, text: str) -> None:
        if self._stopped.is_set():
            raise asyncio.CancelledError  # on the thread of the check, which nobody waits for any more
        now = self._clock.monotonic()
        if now - self._last_told >= _TOLD_AFTER_SECONDS:
            self._last_told = now
            self._told(text)
