"""What a home needs around its use: a backup before another schema writes, and a word on what was recovered."""

from collections.abc import Sequence

from rune.errors import DamagedViewsError, JournalMovedError, StorageUnavailableError
from rune.observability.health import SubsystemHealthRegistry
from rune.store.codec import FORMAT_VERSION
from rune.store.journal import Repair
from rune.store.mending.backups import BackupBook, Schemas
from rune.turn.recovery import Recovered
from rune.version import __version__

# Homes from before schemas were noted hold this one.
_FIRST_FORMAT = 1


def keep_before_change(
    book: BackupBook, views_version: int, health: SubsystemHealthRegistry
) -> StorageUnavailableError | None:
    """Keep a backup where this Rune writes another schema than the one before it.

    Returns why nothing may be written: no backup could be kept, and what is written next cannot be taken back. Where
    it can (a view is made anew, the journal keeps its format), the failure is recorded for the person (T1) instead.
    """
    now = Schemas(journal=FORMAT_VERSION, views=views_version, rune=__version__)
    before = book.written_by()
    try:
        if before is not None and before.journal > FORMAT_VERSION and book.journal_is_newer():
            return None  # opening it says that a newer Rune wrote it; nothing is written here
        book.open_for_writing(now)
    except StorageUnavailableError as error:
        if (before.journal if before is not None else _FIRST_FORMAT) != now.journal:
            return error
        health.record_failure("backup", error, 1, "before a change of schema")
    return None


def report_repair(health: SubsystemHealthRegistry, repair: Repair | None) -> None:
    """Record that opening the journal cut off a torn tail."""
    if repair is not None:
        what = f"a torn tail of {repair.bytes:,} bytes was cut off {repair.segment} and kept as {repair.kept_as}"
        health.record_recovery("journal", f"{what}: {repair.reason}")


def report_views(health: SubsystemHealthRegistry, error: Exception) -> None:
    """Record what the views report: a file that was replaced is a recovery, everything else a failure (T2)."""
    if isinstance(error, DamagedViewsError | JournalMovedError):
        health.record_recovery("views", f"they did not fit and were made anew from the journal: {error}")
    else:
        health.record_failure("views", error, 2)


def report_turns(health: SubsystemHealthRegistry, recovered: Sequence[Recovered]) -> None:
    """Record which turns a kill had left open, and that calls of theirs had begun to act: nobody knows if they did."""
    if not recovered:
        return
    count = len(recovered)
    turns, them = ("1 turn was", "it") if count == 1 else (f"{count:,} turns were", "them")
    what = f"{turns} cut off when Rune was killed, and ended as interrupted; every message and every answer that was "
    what += "whole is kept, what was still being written of an answer is lost"
    if calls := sum(len(each.may_have_run) for each in recovered):
        named = "1 tool call" if calls == 1 else f"{calls:,} tool calls"
        what += f"; {named} in {them} may have run: look before you have it done again"
    health.record_recovery("turns", what)
