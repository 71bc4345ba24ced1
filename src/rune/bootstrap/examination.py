"""What `rune doctor` checks, set up so that it works when nothing else does."""

from collections.abc import Mapping
from pathlib import Path

from rune.bootstrap.core import open_engine, reachable_transports, read_settings
from rune.config.trust import TrustBook
from rune.errors import RuneError
from rune.host.clock import SystemClock
from rune.host.ids import UlidSource
from rune.host.machine import available_memory
from rune.host.paths import resolve_home
from rune.models.embedded import embedded_installed
from rune.models.model_file import embedded_model_path
from rune.models.router import Router
from rune.store.codec import verify_body
from rune.store.durable_store import DurableEventStore
from rune.store.evidence_store import EvidenceStore
from rune.surface import checks
from rune.surface.doctor import Check, Finding


def examine(environ: Mapping[str, str]) -> list[Check]:
    """Return the checks of `rune doctor`: each opens only what it looks at, so that they work when `build` does not."""
    home = resolve_home(environ)
    clock = SystemClock()
    evidence = EvidenceStore(home.evidence, clock)

    def store() -> DurableEventStore:
        return DurableEventStore.open(
            home.journal, clock=clock, ids=UlidSource(clock), device_id="", evidence=evidence, read_only=True
        )

    def caught_up() -> int:
        engine = open_engine(home, store(), evidence, lambda _: None, None)
        try:
            return engine.catch_up().applied
        finally:
            engine.close()

    def journal() -> Finding:
        return checks.journal((event for _, event in store().read({})), lambda event: verify_body(event, evidence))

    settings, _ = read_settings(home, lenient=True)  # the check `config` says what is wrong with it

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
        checks.blocking("home", lambda: checks.places(home)),
        checks.blocking("journal", journal),
        checks.blocking("views", lambda: checks.views(caught_up)),
        checks.blocking("trust", lambda: checks.trust(TrustBook(home.trust_file), Path.cwd())),
        *models,
        checks.blocking("stand-in", stand_in),
    ]
