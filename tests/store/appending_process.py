"""A process that appends: `python -m tests.store.appending_process HOME COUNT SIZE`.

Prints `ready`, then one line for each acknowledged event, at once: its id. With `wait` behind it reads a line before
the first. With `children` it does so in a child for each line that it reads, so that many can be killed without
starting Python as often; it then prints `pid N` before and `dead` after each.
"""

import asyncio
import os
import sys
from pathlib import Path

from rune.host.clock import SystemClock
from rune.host.ids import UlidSource
from rune.store.durable_store import DurableEventStore
from rune.store.evidence_store import EvidenceStore
from tests.store.samples import DEVICE, said


def tell(*lines: str) -> None:
    """Print lines with one write: a kill leaves all of them or none."""
    os.write(1, "".join(f"{line}\n" for line in lines).encode())


async def main(home: Path, count: int, size: int, *, wait: bool = False) -> None:
    """Append `count` messages of `size` characters, four at a time, some of them in batches of three."""
    clock = SystemClock()
    ids = UlidSource(clock)
    store = await asyncio.to_thread(
        DurableEventStore.open,
        home / "journal",
        clock=clock,
        ids=ids,
        device_id=DEVICE,
        evidence=EvidenceStore(home / "evidence", clock),
        segment_bytes=64 << 10,
    )
    tell("ready")
    if wait:
        await asyncio.to_thread(sys.stdin.readline)

    async def produce(number: int) -> None:
        for round_ in range(count // 4):
            events = [said(ids, "r" * size) for _ in range(3 if (number + round_) % 3 == 0 else 1)]
            await store.append_many(events)
            tell(*(event.event_id for event in events))

    async with asyncio.TaskGroup() as group:
        for number in range(4):
            group.create_task(produce(number))
    await store.close()


def breed(home: Path, count: int, size: int) -> None:
    """Fork a child that appends for each line read. This process has no other thread."""
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            tell(f"pid {os.getpid()}")
            asyncio.run(main(home, count, size))
            os._exit(0)
        os.waitpid(child, 0)
        tell("dead")


if __name__ == "__main__":
    given = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    if "children" in sys.argv:
        breed(*given)
    else:
        asyncio.run(main(*given, wait="wait" in sys.argv))
