"""Everything that runs in one process, and its life."""

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import Literal

from rune.models.transport import ChatTransport
from rune.observability.health import SubsystemHealthRegistry
from rune.records.events import SessionEnded, SessionStarted
from rune.store.durable_store import DurableEventStore
from rune.store.evidence_store import EvidenceStore
from rune.store.ledger import Ledger
from rune.store.projections import ProjectionEngine
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
        ledger: Ledger,
        recovery: TurnRecovery,
        transports: Sequence[ChatTransport],
        health: SubsystemHealthRegistry,
        session_id: str,
        close_files: Sequence[Callable[[], None]],
    ) -> None:
        self.surface = surface
        self.health = health
        self._kind: SurfaceKind = surface_kind
        self._store = store
        self._evidence = evidence
        self._engine = engine
        self._ledger = ledger
        self._recovery = recovery
        self._transports = transports
        self._session_id = session_id
        self._close_files = close_files
        self._announced = False

    async def start(self) -> None:
        """Bring the views up to date and end what a killed process left open.

        A command that only reads writes nothing about itself. Raises StorageError.
        """
        await self._ledger.start()
        try:
            await self._engine.caught_up()
        except asyncio.CancelledError:
            self._engine.stop()  # a long rebuild goes on at the next start
            raise
        kind = self._kind
        if kind == "command":
            return
        await asyncio.to_thread(self._evidence.sweep)
        await self._recovery.recover()
        started = SessionStarted(id=self._session_id, version=__version__, surface=kind, pid=os.getpid())
        self._ledger.offer("session.started", started, partition="system")
        self._announced = True

    async def close(self) -> None:
        """Stop turns, finish writes, end children, let go of the slot; may be called twice."""
        await self.surface.operator.close()
        if self._announced:
            self._announced = False
            self._ledger.offer("session.ended", SessionEnded(id=self._session_id), partition="system")
        await self._ledger.close()
        for transport in self._transports:
            await transport.close()
        await self._store.close()
        await asyncio.to_thread(self._engine.close)
        for close_file in self._close_files:
            close_file()
