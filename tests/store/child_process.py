"""What tests/store/test_two_processes.py runs in processes of its own: `python -m tests.store.child_process`."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from rune.host.clock import SystemClock
from rune.host.ids import UlidSource
from rune.records.events import SessionEnded
from rune.store.ledger import Draft, Ledger
from tests.fakes.clock import CountedClock
from tests.fakes.ids import CountedIds
from tests.store.builders import CONVERSATION, a_message, an_id
from tests.store.spine import Reports, a_durable_store, hashes, open_views


def catch_up(home: Path) -> None:
    """Say when ready, wait for the word, catch up, tell what was done."""
    store, evidence = a_durable_store(home, CountedIds(), read_only=True)
    engine = open_views(home / "views-1.db", store, evidence)
    print("ready", flush=True)
    sys.stdin.readline()
    done = engine.catch_up()
    print(json.dumps({"applied": done.applied, "hashes": hashes(engine)}), flush=True)
    engine.close()


async def die_before_projecting(home: Path) -> None:
    """Store facts, project the first of them, be killed before the second is."""
    ids = CountedIds()
    store, evidence = a_durable_store(home, ids)
    engine = open_views(home / "views-1.db", store, evidence)
    ledger = Ledger(store, engine, CountedClock(), ids, report=Reports().of_ledger)
    await ledger.adopt(CONVERSATION)
    await ledger.emit(Draft(event_type="user.message", body=a_message(1), partition=CONVERSATION))
    # The engine is closed: what follows reaches the disk and nothing else.
    engine.close()
    await ledger.emit(Draft(event_type="user.message", body=a_message(2), partition=CONVERSATION))
    print("durable", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


async def emit(home: Path, name: str) -> None:
    """Open the home and write to the shared partitions, beside others that do the same at the same moment."""
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    ids = UlidSource(SystemClock())
    store, evidence = a_durable_store(home, ids)
    reports = Reports()
    engine = open_views(home / "views-1.db", store, evidence, reports)
    ledger = Ledger(store, engine, CountedClock(), ids, report=reports.of_ledger)

    async def say(voice: int) -> None:
        for number in range(10):
            body = SessionEnded(id=an_id("ses", f"{name}{voice}{number}"))
            await ledger.emit(Draft(event_type="session.ended", body=body, partition="system"))

    # Several at once: while one is projected, the line of the next waits for its sync.
    await asyncio.gather(*(say(voice) for voice in range(4)))
    await ledger.close()
    await store.close()
    engine.close()
    failures = [*reports.ledger, *(("views", error) for error in reports.views)]
    print(json.dumps([f"{subsystem}: {error!r}" for subsystem, error in failures]), flush=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["catch-up", folder]:
            catch_up(Path(folder))
        case ["die", folder]:
            asyncio.run(die_before_projecting(Path(folder)))
        case ["emit", folder, letter]:
            asyncio.run(emit(Path(folder), letter))
        case other:
            raise SystemExit(f"what is {other}?")
