"""Kill a writing process, again and again: `python -m tests.store.campaigns.kill_loop FOLDER KILLS SEED`.

Prints figures and faults as JSON. This process forks and has no thread of its own while it does.
"""

import asyncio
import json
import os
import random
import select
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from rune.store.codec import content_of
from rune.store.event_store import Offset
from rune.store.identity import StoredIdentity
from tests.store.campaigns.batches import Key, batch_of, keys_from
from tests.store.campaigns.reckoning import REPAIR, Reckoning, open_home, reckoned

_KILLS_A_HOME = 20
_PRODUCERS = 3
_PATIENCE = 20.0


async def write(home: Path, seed: int, first: Iterable[Key], rest: Iterator[Key], out: int) -> None:
    """Append `first`, which a killed process may have written, then `rest`, some at a time; tell what is stored."""
    known: dict[str, StoredIdentity] = {}
    store, _ = open_home(home, sync=os.fdatasync, lookup=known.get)
    for offset, envelope in store.read({}):
        if envelope.event_type != REPAIR:
            known[envelope.event_id] = StoredIdentity(offset=offset, content=content_of(envelope))

    async def produce(keys: Iterator[Key]) -> None:
        for key in keys:
            await store.append_many(batch_of(seed, key))
            os.write(out, f"{key.run} {key.number}\n".encode())

    await produce(iter(first))
    await asyncio.gather(*(produce(rest) for _ in range(_PRODUCERS)))


class KillLoop:
    """Homes in which one process after the other is killed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._seed = seed
        self._chance = random.Random(seed)  # noqa: S311 a repeatable choice of moments
        self.figures = {"kills": 0, "batches acknowledged": 0, "batches found": 0, "killed while opening": 0}
        self.faults: list[str] = []

    def run(self, kills: int) -> None:
        """Kill that often."""
        for start in range(0, kills, _KILLS_A_HOME):
            home = self._folder / f"home-{start}"
            self._home(home, range(start, min(start + _KILLS_A_HOME, kills)))
            if self.faults:
                break  # the home stays for whoever looks at it
            shutil.rmtree(home)

    def _home(self, home: Path, runs: range) -> None:
        acknowledged: set[Key] = set()
        again: list[Key] = []
        reckoning = Reckoning(self._seed)
        cursor: dict[str, Offset] = {}
        for run in runs:
            told = self._kill_one(home, run, again)
            self.figures["kills"] += 1
            self.figures["killed while opening"] += not told
            acknowledged |= told
            done = {key.number for key in told if key.run == run}
            # What was under way when it died: the next process writes it again, under the same ids.
            last = max(done, default=-1) + _PRODUCERS
            again = [key for key in islice(keys_from(run), last + 1) if key.number not in done]
            if (home / "journal").is_dir():
                store, evidence = open_home(home, read_only=True)
                found = list(store.read(cursor))
                cursor.update({offset.writer: offset for offset, _ in found})
                reckoning.take(found, evidence)
            if reckoning.faults or self.faults:
                break
        last_look = reckoned(home, self._seed, acknowledged)
        self.figures["batches acknowledged"] += len(acknowledged)
        self.figures["batches found"] += len(last_look.whole) - 1
        faults = [*reckoning.close(acknowledged), *last_look.faults]
        self.faults += [f"{home.name}: {fault}" for fault in faults]

    def _kill_one(self, home: Path, run: int, again: list[Key]) -> set[Key]:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                asyncio.run(write(home, self._seed, again, keys_from(run), writing))
            except BaseException as error:  # noqa: BLE001 told to the parent, which fails the campaign
                os.write(writing, f"failed: {error!r}\n".encode())
            os._exit(1)
        os.close(writing)
        told = self._watch(reading)
        os.kill(child, signal.SIGKILL)
        while chunk := os.read(reading, 1 << 16):
            told += chunk
        os.close(reading)
        os.waitpid(child, 0)
        lines = told.decode().splitlines()
        self.faults += [f"run {run} {line}" for line in lines if line.startswith("failed")]
        return {Key(*map(int, line.split())) for line in lines if not line.startswith("failed")}

    def _watch(self, reading: int) -> bytes:
        """Read acknowledgements until the moment has come: some are killed before they could give one."""
        told = b""
        if self._chance.random() < 0.75:
            wanted = self._chance.randint(1, 16)
            deadline = time.monotonic() + _PATIENCE
            while told.count(b"\n") < wanted and b"failed" not in told:
                if not select.select([reading], [], [], deadline - time.monotonic())[0]:
                    self.faults.append("nothing was acknowledged any more")
                    return told
                told += os.read(reading, 1 << 16)
            until = time.monotonic() + self._chance.uniform(0, 0.002)
        else:
            until = time.monotonic() + self._chance.uniform(0, 0.008)
        while (left := until - time.monotonic()) > 0 and select.select([reading], [], [], left)[0]:
            chunk = os.read(reading, 1 << 16)
            if not chunk:
                break
            told += chunk
        return told


def main(folder: Path, kills: int, seed: int) -> None:
    loop = KillLoop(folder, seed)
    started = time.monotonic()
    loop.run(kills)
    seconds = round(time.monotonic() - started, 1)
    print(json.dumps({**loop.figures, "seconds": seconds, "faults": loop.faults[:20]}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
