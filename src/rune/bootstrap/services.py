"""Everything that runs in one process, and its life."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from rune.bootstrap.upkeep import report_turns
from rune.errors import PartUnreadableError, StorageError, StorageUnavailableError, ViewsStoppedError
from rune.models.side_call import SideCalls
from rune.models.transport import ChatTransport
from rune.observability.health import SubsystemHealthRegistry
from rune.observability.retention import Retention
from rune.records.events import SessionEnded, SessionStarted
from rune.store.durable_store import DurableEventStore
from rune.store.evidence_store import EvidenceStore
from rune.store.ledger import Ledger
from rune.store.projections import ProjectionEngine
from rune.store.views_copy import ViewsCopy
from rune.surface.surface import Surface
from rune.turn.recovery import TurnRecovery
from rune.version import __version__

SurfaceKind = Literal["app", "headless", "command"]


class Services:
    """Everything that runs in one process. `start` before use, `close` in the end, whatever happened."""

    def __init__(
        self,
        *,
        surface: Surface,
        surface_kind: SurfaceKind,
        store: DurableEventStore,
        evidence: EvidenceStore,
        engine: ProjectionEngine,
        views_copy: ViewsCopy,
        why_unwritable: Callable[[], StorageError | None],
        ledger: Ledger,
        recovery: TurnRecovery,
        expire: Callable[[], Awaitable[object]],
        transports: Sequence[ChatTransport],
        side_calls: SideCalls,
        health: SubsystemHealthRegistry,
        retention: Retention,
        session_id: str,
        close_files: Sequence[Callable[[], None]],
    ) -> None:
        self.surface = surface
        self.health = health
        self.side_calls = side_calls
        self._kind: SurfaceKind = surface_kind
        self._store = store
        self._evidence = evidence
        self._engine = engine
        self._views_copy = views_copy
        self._why_unwritable = why_unwritable
        self._ledger = ledger
        self._recovery = recovery
        self._expire = expire
        self._transports = transports
        self._session_id = session_id
        self._close_files = close_files
        self._announced = False
        self._retention = retention
        self._sweeping: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Bring the views up to date and end what a killed process left open.

        A command that only reads writes nothing about itself, and neither does who finds that nothing can be
        written: `surface.refusal` says why then. Raises StorageError where not even reading is possible.
        """
        if self._store.refusal is None:
            await self._ledger.start()
        await self._follow()
        kind, why = self._kind, self._store.refusal
        if why is not None and not self.health.is_failing("journal"):
            self.health.record_failure("journal", why, 1, "opening it")
        if why is not None or kind == "command":
            return
        await self._tidy_up()
        started = SessionStarted(id=self._session_id, version=__version__, surface=kind, pid=os.getpid())
        self._ledger.offer("session.started", started, partition="system")
        self._announced = True
        self._sweeping = asyncio.create_task(asyncio.to_thread(self._retention.sweep), name="retention")

    async def _follow(self) -> None:
        """Bring the views up to date: in the home, or in a copy of them where that cannot be written."""
        try:
            await self._caught_up()
        except ViewsStoppedError:
            raise
        except StorageUnavailableError as error:
            self._store.refuse(await asyncio.to_thread(self._why_unwritable) or error)
            self._engine.move_to(await asyncio.to_thread(self._views_copy.make))
            await self._caught_up()

    async def _caught_up(self) -> None:
        """Let the views follow the journal as far as it can be read. Raises StorageUnavailableError."""
        try:
            await self._engine.caught_up()
        except asyncio.CancelledError:
            self._engine.stop()  # a long rebuild goes on at the next start
            raise
        except PartUnreadableError as error:
            self._store.refuse(error)

    async def _tidy_up(self) -> None:
        """End and remove what a killed process left; what cannot be done now is done at the next start."""
        try:
            await asyncio.to_thread(self._evidence.sweep)
            report_turns(self.health, await self._recovery.recover())
            await self._expire()
        except (OSError, StorageError) as error:
            self.health.record_failure("recovery", error, 2)

    async def close(self) -> None:
        """Stop turns, finish writes, end children, let go of the slot; may be called twice."""
        self._retention.stop()
        if self._sweeping is not None:
            await self._sweeping
        await self.surface.operator.close()
        if self._announced:
            self._announced = False
            self._ledger.offer("session.ended", SessionEnded(id=self._session_id), partition="system")
        await self._ledger.close()
        for transport in self._transports:
            await transport.close()
        await self._store.close()
        await asyncio.to_thread(self._engine.close)
        await asyncio.to_thread(self._views_copy.remove)
        for close_file in self._close_files:
            close_file()
