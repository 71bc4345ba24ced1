"""Holding a home's views against its journal: what `rune doctor` looks at, and what `--mend` goes by."""

from collections.abc import Callable, Mapping
from typing import Final

from rune.bootstrap.core import VIEWS_VERSION, open_engine
from rune.errors import StorageError
from rune.host.clock import SystemClock
from rune.host.ids import UlidSource
from rune.host.paths import Home, places_elsewhere
from rune.store.durable_store import DurableEventStore
from rune.store.evidence_store import EvidenceStore
from rune.store.mending.views_comparison import Comparison, TooLongError, compare_views
from rune.store.views_copy import ViewsCopy

# A look at everything must end: so long takes a journal of some hundred thousand events.
LOOKED_FOR_SECONDS: Final = 30.0


def compare_with_journal(
    home: Home,
    environ: Mapping[str, str],
    *,
    seconds: float | None = LOOKED_FOR_SECONDS,
    told: Callable[[int], None] = lambda _: None,
) -> Comparison:
    """Make the views of a home anew in a place for temporary files, and compare them with those that it has.

    Takes at most `seconds` (None: as long as it takes); `told` gets the number of events so far, and what it raises
    ends the look. Nothing in the home is changed. Blocks.
    """
    clock = SystemClock()
    evidence = EvidenceStore(home.evidence, clock)
    end = None if seconds is None else clock.monotonic() + seconds

    def go_on(events: int) -> None:
        if end is not None and clock.monotonic() > end:
            raise TooLongError
        told(events)

    path = home.views_file(VIEWS_VERSION)
    elsewhere = ViewsCopy(path, places_elsewhere(environ))
    try:
        store = DurableEventStore.open(
            home.journal, clock=clock, ids=UlidSource(clock), device_id="", evidence=evidence, read_only=True
        )
        return compare_views(
            path,
            store,
            lambda journal: open_engine(home, journal, evidence, lambda _: None, None),
            elsewhere.make_empty(),
            go_on,
        )
    except StorageError as error:
        return Comparison(not_compared=error.message)
    finally:
        elsewhere.remove()
