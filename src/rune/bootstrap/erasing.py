"""What `rune erase` needs: the home, journal, evidence and views; no settings, no model, no log."""

from collections.abc import Callable, Mapping
from functools import partial

from rune.bootstrap.core import open_engine
from rune.host.clock import SystemClock
from rune.host.ids import UlidSource
from rune.host.paths import device_id, prepare, resolve_home, why_unwritable
from rune.store.durable_store import DurableEventStore
from rune.store.erasing.eraser import Eraser, discard_views
from rune.store.evidence_store import EvidenceStore
from rune.store.leases import LeaseBook
from rune.store.view_pass import Progress
from rune.surface.erasure import Erasure
from rune.turn.recorder import title_of


def open_erasure(
    environ: Mapping[str, str],
    *,
    on_rebuild: Progress | None = None,
    step: Callable[[str], None] = lambda _: None,
) -> Erasure:
    """Connect what erases in the home that `environ` names; nothing is touched yet but missing folders.

    `on_rebuild` is told how far the rebuild of the views has come, `step` each stage before it
    begins. Raises StorageError.
    """
    home = resolve_home(environ)
    prepare(home)
    clock = SystemClock()
    ids = UlidSource(clock)
    evidence = EvidenceStore(home.evidence, clock)
    eraser = Eraser(
        journal=home.journal,
        evidence=home.evidence,
        leases=LeaseBook(home.leases, clock),
        clock=clock,
        ids=ids,
        device_id=device_id(home, ids),
        title_of=title_of,
        step=step,
    )

    def views() -> None:
        discard_views(home.data_dir)
        store = DurableEventStore.open(
            home.journal, clock=clock, ids=ids, device_id="", evidence=evidence, read_only=True
        )
        engine = open_engine(home, store, evidence, lambda _: None, on_rebuild)
        try:
            engine.catch_up()
        finally:
            engine.close()

    return Erasure(home, eraser, views, partial(why_unwritable, home.data_dir))
