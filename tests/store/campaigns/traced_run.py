"""A scripted run with one fault at one system call: `python -m tests.store.campaigns.traced_run FOLDER SHARE SEED`.

strace is attached to the one thread that the calls of a scene come from, so that its N-th call is the same each
time. A scene is first run without a fault, to count its calls; then once for each call and each fault (or for a
share of them). Prints figures and faults as JSON.
"""

import asyncio
import ctypes
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from rune.errors import RuneError, StorageError
from tests.store.campaigns.batches import Key, batch_of
from tests.store.campaigns.reckoning import open_home, reckoned

CALLS = (
    "write", "pwrite64", "fsync", "fdatasync", "rename", "renameat", "renameat2", "openat", "ftruncate", "unlink",
    "unlinkat", "mkdir", "mkdirat",
)  # fmt: skip
# The last two stay: every later call of that name fails too, as on a disk that is and remains full.
FAULTS = (
    ("signal=SIGKILL", ""), ("error=ENOSPC", ""), ("error=EIO", ""), ("error=EROFS", ""), ("error=EINTR", ""),
    ("error=ENOSPC", "+"), ("error=EIO", "+"),
)  # fmt: skip
_PATIENCE = 10.0
_LET_ANYONE_TRACE = (0x59616D61, ctypes.c_ulong(-1))  # PR_SET_PTRACER, PR_SET_PTRACER_ANY
_RUN = 7
_ENOUGH = 10


class CannotTraceError(Exception):
    """This machine does not let one process trace another; strace's own words."""


class EnoughError(Exception):
    """So much went wrong that more of it tells nothing new."""


class Scene(NamedTuple):
    """Something to do under strace. `prepare` makes the home; the traced part begins in the thread `traced`."""

    name: str
    prepare: Callable[[Path, int], set[Key]]
    traced: str


class Fault(NamedTuple):
    """The call number `when` of that name is not made; instead this happens. `2+`: that one and all after it."""

    what: str
    call: str
    when: str


def nothing(_home: Path, _seed: int) -> set[Key]:
    """Leave the home empty: the run makes it."""
    return set()


def some(home: Path, seed: int) -> set[Key]:
    """Write a home of several segments and close it."""
    keys = {Key(0, number) for number in range(8)}

    async def fill() -> None:
        store, _ = open_home(home, segment_bytes=2000)
        for key in sorted(keys):
            await store.append_many(batch_of(seed, key))
        await store.close()

    asyncio.run(fill())
    return keys


def torn(home: Path, seed: int) -> set[Key]:
    """Write a home whose last line is torn."""
    keys = some(home, seed)
    last = max((home / "journal").glob("w000-*.jsonl"))
    with last.open("ab") as file:
        file.write(b'{"actor_id":"owner","authoriz')
    (home / "journal" / ".w000-000009.jsonl.0123.tmp").write_bytes(b"left over")
    return keys


SCENES = (
    Scene("the first opening", nothing, "main"),
    Scene("opening", some, "main"),
    Scene("opening a torn journal", torn, "main"),
    Scene("writing", some, "journal"),
    Scene("writing the first lines", nothing, "journal"),
)


class Child:
    """The process that plays a scene. It waits for `go` where the traced part begins."""

    def __init__(self, scene: Scene, home: Path, seed: int) -> None:
        self._scene, self._home, self._seed = scene, home, seed
        self.ours, self._theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            self._play()
        self._theirs.close()
        self.ours.settimeout(_PATIENCE)
        self.thread = int(self.ours.recv(100))

    def _play(self) -> None:
        ctypes.CDLL(None).prctl(*_LET_ANYONE_TRACE, 0, 0, 0)
        try:
            asyncio.run(self._scripted())
        except BaseException as error:  # noqa: BLE001 told to the parent, which fails the campaign
            self._say(f"untyped {error!r}")
        self._say("end")
        os._exit(0)

    async def _scripted(self) -> None:
        if self._scene.traced == "main":
            self._wait_for_tracer(os.getpid())
        try:
            store, evidence = open_home(self._home, sync=os.fdatasync, segment_bytes=2500)
        except StorageError as error:
            self._say(f"refused {error!r}")
            return
        if self._scene.traced == "journal":
            (thread,) = (one for one in threading.enumerate() if one.name == "journal")
            self._wait_for_tracer(thread.native_id or 0)
        for number in range(12):
            key = Key(_RUN, number)
            try:
                await store.append_many(batch_of(self._seed, key))
                self._say(f"stored {key.run} {key.number}")
            except RuneError as error:
                self._say(f"refused {error!r}")
        try:
            evidence.put(b"kept", source="test")
        except RuneError as error:
            self._say(f"refused {error!r}")
        await store.close()

    def _wait_for_tracer(self, thread: int) -> None:
        self._theirs.send(str(thread).encode())
        self._theirs.recv(1)

    def _say(self, line: str) -> None:
        # `send`, because a fault may be at any `write`.
        self._theirs.send(f"{line}\n".encode())

    def told(self) -> list[str]:
        """Let it go on and return what it says until it ends."""
        self.ours.send(b"!")
        heard = b""
        try:
            while chunk := self.ours.recv(1 << 16):
                heard += chunk
        except TimeoutError:
            heard += b"untyped: it hangs\n"
            os.kill(self.pid, signal.SIGKILL)
        return heard.decode().splitlines()

    def end(self) -> int:
        """Make sure that it is gone; returns how it ended."""
        self.ours.close()
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            if found:
                return os.waitstatus_to_exitcode(status)
            os.sched_yield()
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        return -999


class Campaign:
    """All scenes with all faults."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder, self._seed = folder, seed
        self.figures: Counter[str] = Counter()
        self.faults: list[str] = []

    def run(self, share: float) -> None:
        """Play every scene; of its faults a share, at least one of each call and kind."""
        chance = random.Random(self._seed)  # noqa: S311 a repeatable choice
        for scene in SCENES:
            counts = self._count(scene)
            for call, count in sorted(counts.items()):
                for what, lasting in FAULTS:
                    for when in sorted(chance.sample(range(1, count + 1), max(1, round(count * share)))):
                        self._play(scene, Fault(what, call, f"{when}{lasting}"))

    def _count(self, scene: Scene) -> Counter[str]:
        log = self._folder / "log"
        self._play(scene, None, log)
        counts = Counter(re.findall(r"^(\w+)\(", log.read_text(errors="replace"), re.MULTILINE))
        self.figures["calls"] += counts.total()
        return counts

    def _play(self, scene: Scene, fault: Fault | None, log: Path = Path(os.devnull)) -> None:
        home = self._folder / "home"
        acknowledged = scene.prepare(home, self._seed)
        child = Child(scene, home, self._seed)
        with _attached(child.thread, fault, log):
            lines = child.told()
            code = child.end()
        acknowledged |= {Key(*map(int, line.split()[1:])) for line in lines if line.startswith("stored")}
        refused = sum(line.startswith("refused") for line in lines)
        self.figures["runs"] += 1
        self.figures["refused"] += refused
        wrong = [line for line in lines if line.startswith("untyped")]
        if fault is None and refused:
            wrong.append(f"refused without a fault: {lines}")
        if fault and fault.what == "signal=SIGKILL":
            self.figures["to be killed"] += 1
            self.figures["killed"] += code == -signal.SIGKILL
        elif code != 0:
            wrong.append(f"it ended with {code}")
        wrong += reckoned(home, self._seed, acknowledged).faults
        self.faults += [f"{scene.name}, {fault}: {one}" for one in wrong]
        if len(self.faults) > _ENOUGH:
            raise EnoughError
        shutil.rmtree(home)


class _attached:  # noqa: N801 reads as a sentence where it is used
    """strace on one thread, from before its first call until it ends."""

    def __init__(self, thread: int, fault: Fault | None, log: Path) -> None:
        command = ["strace", "-p", str(thread), "-o", str(log), "-e", f"trace={','.join('?' + call for call in CALLS)}"]
        if fault is not None:
            command += ["-e", f"inject={fault.call}:{fault.what}:when={fault.when}"]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    def __enter__(self) -> None:
        assert self._process.stderr is not None
        line = self._process.stderr.readline()
        if "attached" not in line:
            raise CannotTraceError(line.strip())

    def __exit__(self, *_: object) -> None:
        assert self._process.stderr is not None
        self._process.wait(_PATIENCE)
        self._process.stderr.close()


def main(folder: Path, share: float, seed: int) -> None:
    # What is imported or read at first use is so before anything is counted.
    shutil.rmtree(folder / "home", ignore_errors=True)
    reckoned(folder / "warm", seed, torn(folder / "warm", seed))
    campaign = Campaign(folder, seed)
    started = time.monotonic()
    try:
        campaign.run(share)
    except EnoughError:
        pass
    except CannotTraceError as error:
        print(json.dumps({"cannot trace": str(error)}))
        return
    seconds = round(time.monotonic() - started, 1)
    print(json.dumps({**campaign.figures, "seconds": seconds, "faults": campaign.faults[:40]}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
