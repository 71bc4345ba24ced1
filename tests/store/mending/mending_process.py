"""A process that mends and is killed on the way: `python -m tests.store.mending.mending_process HOME`.

For each n from 1 on it copies the damaged HOME, forks a child that kills itself when the n-th step is done, and mends
what that one left. Prints for each a line of JSON: the step, and what the home holds afterwards. Ends with the n for
which the child came to its end. With `hold` behind HOME it only holds a slot of it, until its input ends.
"""

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from rune.store.codec import decode_body
from rune.store.evidence_store import EvidenceStore
from rune.store.mending.quarantine import quarantine
from tests.fakes.clock import CountedClock
from tests.store.journals import no_sync, open_now
from tests.store.samples import DEVICE


class OwnIds:
    """Ids that no other process gives."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._count = 0

    def new_id(self, kind: str) -> str:
        self._count += 1
        return f"{kind}_{self._name}{self._count:0>{26 - len(self._name)}}"


def mend(home: Path, name: str, step: Callable[[str], None] = lambda _: None) -> None:
    """Mend a home as `rune doctor --mend` does."""
    clock = CountedClock()
    quarantine(
        home / "journal",
        evidence=EvidenceStore(home / "evidence", clock),
        clock=clock,
        ids=OwnIds(name),
        device_id=DEVICE,
        sync=no_sync,
        step=step,
    )


def mend_and_die(home: Path, count: int, said: int) -> None:
    """Mend until that many steps are done, say which was the last, and die of it."""
    done = 0

    def step(name: str) -> None:
        nonlocal done
        done += 1
        if done == count:
            os.write(said, name.encode())
            os.kill(os.getpid(), signal.SIGKILL)

    mend(home, "first", step)


def forked(work: Callable[[int], None]) -> tuple[int, str]:
    """Do it in a child; returns the signal that ended it (0: none) and what it wrote."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work(writing)
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        said = file.read().decode()
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise SystemExit("a child failed")
    return (os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0), said


def look(home: Path, said: int) -> None:
    """Tell what a home holds."""
    evidence = EvidenceStore(home / "evidence", CountedClock())
    events = [envelope for _, envelope in open_now(home, read_only=True).replay()]
    told = {
        "events": [event.event_id for event in events if event.event_type != "journal.repaired"],
        "repaired": [
            vars_of(decode_body(event, evidence)) for event in events if event.event_type == "journal.repaired"
        ],
        "files": {path.name: path.stat().st_size for path in (home / "journal").iterdir() if path.suffix != ".lock"},
    }
    os.write(said, json.dumps(told).encode())


def vars_of(body: object) -> list[object]:
    """Return the parts of a `journal.repaired` body."""
    return [getattr(body, name) for name in ("segment", "kept_as", "bytes", "reason")]


def main(home: Path) -> None:
    """Kill after each step in turn."""
    count, ended_by = 0, int(signal.SIGKILL)
    while ended_by:
        count += 1
        copy = home.with_name(f"{home.name}-{count}")
        shutil.copytree(home, copy)
        at_step = count
        ended_by, last = forked(lambda said, copy=copy, at_step=at_step: mend_and_die(copy, at_step, said))
        forked(lambda _, copy=copy: mend(copy, "second"))
        _, told = forked(lambda said, copy=copy: look(copy, said))
        print(json.dumps({"killed": last, **json.loads(told)}), flush=True)


def hold(home: Path) -> None:
    """Have the journal open for writing."""
    store = open_now(home)
    print("holding", flush=True)
    sys.stdin.read()
    asyncio.run(store.close())


if __name__ == "__main__":
    (hold if len(sys.argv) > 2 else main)(Path(sys.argv[1]))
