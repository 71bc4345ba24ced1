"""What test_importer.py runs in a process of its own, to be killed in the middle of an import."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from rune.store.imports.event_lines import events_in
from rune.store.imports.importer import Importer
from tests.store.imports.older import Heard, an_import_home, mask


class Killer(Heard):
    """Kills its own process after two batches."""

    def progress(self, seen: int) -> None:
        super().progress(seen)
        if len(self.batches) == 2:
            os.kill(os.getpid(), signal.SIGKILL)


async def main(home: Path, journal: Path) -> None:
    """Import, and do not come to the end."""
    async with an_import_home(home) as opened:
        importer = Importer(
            ledger=opened.spine.ledger, engine=opened.spine.engine, evidence=opened.evidence, leases=opened.leases
        )
        await importer.take_in(events_in(journal, mask), "test", Killer())


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
