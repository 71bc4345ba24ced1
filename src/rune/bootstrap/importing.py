"""What `rune import` needs: the home open for writing, journal, views, evidence and leases; no model."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from rune.bootstrap.core import Core, open_core
from rune.errors import UsageError
from rune.observability.logs import setup_logging
from rune.observability.retention import MEGABYTE
from rune.store.alone import alone
from rune.store.failures import refused
from rune.store.imports.arrivals import Arrival, LeftOut
from rune.store.imports.event_lines import events_in
from rune.store.imports.foreign_json import Mask
from rune.store.imports.importer import Importer
from rune.store.imports.operator_tasks import tasks_in
from rune.store.imports.pins import pins_in
from rune.store.imports.report import ImportKind, ImportReport, Listener
from rune.store.view_pass import Progress

_READERS: Final[Mapping[ImportKind, Callable[[Path, Mask], Iterator[Arrival | LeftOut]]]] = {
    "events": events_in,
    "operator": tasks_in,
    "pins": pins_in,
}


class Import:
    """An open home into which a file can be brought."""

    def __init__(self, core: Core) -> None:
        self._home = core.home
        self._health = core.health
        self._mask = core.masker.mask
        self._importer = Importer(ledger=core.ledger, engine=core.engine, evidence=core.evidence, leases=core.leases)

    def troubles(self) -> list[str]:
        """Return what a person should know of this home: what was recovered when it was opened, and what failed."""
        rows = self._health.snapshot()
        recovered = [f"{row.subsystem}: {recovery.what}" for row in rows for recovery in row.recovered]
        return recovered + [f"{row.subsystem}: {row.last_error}" for row in rows if row.failures]

    async def take_in(self, kind: ImportKind, path: Path, listener: Listener) -> ImportReport:
        """Bring a file in. Raises UsageError for one that cannot be read, or is not of that form, LeaseHeldError and
        StorageError; what was stored before that stays, and another run goes on from there.
        """
        if kind == "events":
            self._refuse_own(path)
        return await self._importer.take_in(_READERS[kind](path, self._mask), f"import:{kind}", listener)

    def _refuse_own(self, path: Path) -> None:
        if self._home.journal.resolve() in path.resolve().parents:
            raise UsageError(
                f"{str(path)!r} is part of this home's own journal",
                hint="It is in use already: `rune events` shows it.",
            )


@asynccontextmanager
async def open_import(
    environ: Mapping[str, str], *, on_rebuild: Progress | None = None
) -> AsyncGenerator[Import, None]:
    """Open the home that `environ` names for one import, and let it go in the end.

    No session is noted: a run that finds all of it there already writes nothing. Raises ConfigError and
    StorageError, also when another import runs there, or when nothing can be written.
    """
    core = open_core(environ, read_only=False, on_rebuild=on_rebuild)
    async with AsyncExitStack() as stack:
        stack.callback(core.trace_file.close)
        stack.callback(_log(core))
        stack.push_async_callback(asyncio.to_thread, core.engine.close)
        stack.push_async_callback(core.store.close)
        stack.push_async_callback(core.ledger.close)
        if core.store.refusal is not None:
            raise refused(core.store.refusal)
        # What several write of one file would be stored twice.
        stack.enter_context(alone(core.home.state / "import.lock", "an import"))
        await core.ledger.start()
        try:
            await core.engine.caught_up()
        except asyncio.CancelledError:
            core.engine.stop()  # a long rebuild goes on at the next start
            raise
        yield Import(core)


def _log(core: Core) -> Callable[[], None]:
    retention = core.settings.retention
    return setup_logging(
        core.home.logs,
        core.store.writer or "reader",
        core.masker.mask,
        health=core.health,
        limit=retention.log_megabytes * MEGABYTE,
        pieces=retention.log_pieces,
    )
