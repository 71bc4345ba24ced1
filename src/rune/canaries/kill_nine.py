"""A process that stores events is killed again and again."""

import asyncio
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

from rune.canaries.claim import alone, expect
from rune.errors import StorageError
from rune.host.clock import SystemClock
from rune.host.ids import UlidSource
from rune.records.events import Event, SessionEnded
from rune.records.times import rfc3339
from rune.store.durable_store import DurableEventStore
from rune.store.evidence_store import EvidenceStore

CLAIM = "what was acknowledged survives kill -9"

_KILLS = 50
_MOST_ACKNOWLEDGED = 12
_SEGMENT_BYTES = 4096
_DEAD = b"dead\n"


async def check(folder: Path) -> None:
    """Let processes append and kill each at a random moment; then look for all that they said was stored."""
    said = await asyncio.to_thread(_kill_many, folder)
    store = _opened(folder)
    try:
        stored = [envelope.event_id for _, envelope in store.replay()]
    except StorageError as error:
        expect(condition=False, seen=f"the journal cannot be read: {error.message}")
        return
    finally:
        await store.close()
    lost = said - set(stored)
    expect(not lost, f"{len(lost)} of {len(said)} acknowledged events are lost")
    expect(len(stored) == len(set(stored)), "an event is there twice")
    expect(len(said) >= _KILLS, f"only {len(said)} events were acknowledged at all")


def _kill_many(folder: Path) -> set[str]:
    """Return the ids that were acknowledged. A process that holds no thread forks those that are killed."""
    chance = random.SystemRandom()
    command = [sys.executable, "-P", "-m", "rune.canaries.kill_nine", str(folder)]
    said: set[str] = set()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as parent:  # noqa: S603 this Python, this module
        if parent.stdin is None or parent.stdout is None:
            raise RuntimeError("no pipes to the process")
        for _ in range(_KILLS):
            parent.stdin.write(b"\n")
            child = int(parent.stdout.readline())
            heard = [parent.stdout.readline() for _ in range(chance.randrange(_MOST_ACKNOWLEDGED))]
            expect(not {_DEAD, b""} & set(heard), "a process could not store anything: it ended by itself")
            os.kill(child, signal.SIGKILL)
            while (line := parent.stdout.readline()) not in {_DEAD, b""}:
                heard.append(line)
            said.update(line.decode().strip() for line in heard)
        parent.stdin.close()
    return said


def _breed(folder: Path) -> None:
    """For each line read, fork a child that appends until it is killed; write its pid, each id, then `dead`."""
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                _tell(str(os.getpid()))
                asyncio.run(_append(folder))
            finally:
                os._exit(1)
        os.waitpid(child, 0)
        os.write(1, _DEAD)


async def _append(folder: Path) -> None:
    clock = SystemClock()
    ids = UlidSource(clock)
    store = _opened(folder)

    async def one(events: list[Event]) -> None:
        await store.append_many(events)
        _tell(*(event.event_id for event in events))

    while True:
        await asyncio.gather(*(one([_event(ids, clock) for _ in range(size)]) for size in (1, 3)))


def _opened(folder: Path) -> DurableEventStore:
    clock = SystemClock()
    ids = UlidSource(clock)
    return DurableEventStore.open(
        folder / "journal",
        clock=clock,
        ids=ids,
        device_id=ids.new_id("dev"),
        evidence=EvidenceStore(folder / "evidence", clock),
        segment_bytes=_SEGMENT_BYTES,
    )


def _event(ids: UlidSource, clock: SystemClock) -> Event:
    return Event(
        event_id=ids.new_id("evt"),
        event_type="session.ended",
        partition_key="system",
        actor_id="rune",
        timestamp=rfc3339(clock.now_ms()),
        body=SessionEnded(id=ids.new_id("ses")),
    )


def _tell(*lines: str) -> None:
    # One write: a kill leaves all of it or nothing.
    os.write(1, "".join(f"{line}\n" for line in lines).encode())


if __name__ == "__main__":
    if sys.argv[1:]:
        _breed(Path(sys.argv[1]))
    else:
        alone(CLAIM, check)
