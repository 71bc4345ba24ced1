"""Files as an earlier version left them, and an importer over real files."""

import json
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from rune.store.evidence_store import EvidenceStore
from rune.store.imports.arrivals import Arrival, LeftOut
from rune.store.imports.importer import Importer
from rune.store.imports.report import ImportReport, Named
from rune.store.leases import LeaseBook
from rune.text.masking import Masker
from tests.fakes.clock import CountedClock
from tests.fakes.ids import CountedIds
from tests.store.spine import Spine, a_durable_store, a_spine

# Made up, to see that it is masked; put together, so that no search for secrets stops here.
SECRET = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"
mask = Masker().mask

Reader = Callable[[Path, Callable[[str], str]], Iterator[Arrival | LeftOut]]


class Heard:
    """A Listener that keeps what it is told."""

    def __init__(self) -> None:
        self.lefts: list[str] = []
        self.notes: list[str] = []
        self.batches: list[int] = []

    def left(self, named: Named) -> None:
        self.lefts.append(f"{named.where}: {named.text}")

    def noted(self, named: Named) -> None:
        self.notes.append(f"{named.where}: {named.text}")

    def progress(self, seen: int) -> None:
        self.batches.append(seen)


class ImportHome:
    """A home on disk with an importer."""

    def __init__(self, spine: Spine, evidence: EvidenceStore, leases: LeaseBook) -> None:
        self.spine = spine
        self.evidence = evidence
        self.leases = leases
        self.heard = Heard()

    async def take_in(self, read: Reader, path: Path) -> ImportReport:
        importer = Importer(
            ledger=self.spine.ledger, engine=self.spine.engine, evidence=self.evidence, leases=self.leases
        )
        return await importer.take_in(read(path, mask), "test", self.heard)

    def stored(self, *types: str) -> list[Any]:
        """Return the bodies in the journal, of these types, as they were written."""
        found = [envelope for _, envelope in self.spine.store.replay()]
        return [json.loads(bytes(each.body)) for each in found if not types or each.event_type in types]


@asynccontextmanager
async def an_import_home(home: Path) -> AsyncGenerator[ImportHome, None]:
    ids = CountedIds()
    store, evidence = a_durable_store(home, ids)
    try:
        async with a_spine(home / "views-1.db", store, evidence=evidence, ids=ids) as spine:
            yield ImportHome(spine, evidence, LeaseBook(home / "leases", CountedClock()))
    finally:
        await store.close()


def a_line(number: int | str, kind: str, payload: object = None, **fields: Any) -> dict[str, Any]:
    """Return an event of an older journal."""
    whole: dict[str, Any] = {"id": f"e{number}", "type": kind, "timestamp": 1_700_000_000, "payload": payload or {}}
    return whole | fields


def written(path: Path, *lines: object) -> Path:
    """Write JSON lines; bytes as they are."""
    path.write_bytes(
        b"".join((each if isinstance(each, bytes) else json.dumps(each).encode()) + b"\n" for each in lines)
    )
    return path


def a_long_journal(path: Path, lines: int) -> Path:
    """Write questions and answers in turn, forty to a conversation."""
    speakers = ("user.message", "assistant.message")
    said = [a_line(n, speakers[n % 2], {"session_id": f"s{n // 40}", "content": f"number {n}"}) for n in range(lines)]
    return written(path, *said)
