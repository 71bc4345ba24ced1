"""Opens a home as far as it goes: for writing, and where that is not possible for reading (spine.md, Opening)."""

import logging

from rune.errors import PartUnreadableError, StorageError, StorageUnavailableError
from rune.host.clock import Clock
from rune.host.ids import IdSource
from rune.host.paths import Home, device_id, why_unwritable
from rune.observability.health import SubsystemHealthRegistry
from rune.store.durable_store import DurableEventStore
from rune.store.erasures import ErasureIndex
from rune.store.evidence_store import Evidence
from rune.store.identity import Lookup
from rune.store.slot_reader import check_ends


def open_store(
    home: Home,
    *,
    clock: Clock,
    ids: IdSource,
    evidence: Evidence,
    lookup: Lookup,
    read_only: bool,
    refusal: StorageUnavailableError | None,
) -> DurableEventStore:
    """Open the journal of a home. `refusal` says why the home cannot be written, None when it may be tried.

    Its `refusal` then says why nothing can be written, where that was wanted or is known beforehand. Raises
    StorageError for a journal that cannot even be read.
    """
    why: PartUnreadableError | StorageUnavailableError | None = refusal
    if why is None and not read_only:
        try:
            return DurableEventStore.open(
                home.journal,
                clock=clock,
                ids=ids,
                device_id=device_id(home, ids),
                evidence=evidence,
                lookup=lookup,
            )
        except PartUnreadableError as error:
            why = error
        except StorageUnavailableError as error:
            # In the words of what is wrong with the place, rather than of what failed there first.
            why = why_unwritable(home.data_dir) or error
    store = DurableEventStore.open(
        home.journal, clock=clock, ids=ids, device_id="", evidence=evidence, read_only=True, refusal=why
    )
    if why is None:
        _look_for_damage(store, home, evidence)
    return store


def refuse_damaged(store: DurableEventStore, health: SubsystemHealthRegistry, why: StorageError) -> None:
    """Write nothing any more once it turns out, in the middle of a session, that the journal cannot be read on."""
    if store.refusal is None and store.writer is not None:
        store.refuse(why)
        health.record_failure("journal", why, 1, "reading it")


def _look_for_damage(store: DurableEventStore, home: Home, evidence: Evidence) -> None:
    """Let whoever only reads know what a writer would be told."""
    try:
        check_ends(home.journal, ErasureIndex(home.journal, evidence).names)
    except PartUnreadableError as error:
        store.refuse(error)
    except StorageError as error:
        # A segment that was just rewritten, or cannot be read: whoever comes to it says so.
        logging.getLogger(__name__).info("the journal's end was not looked at: %s", error.message)
