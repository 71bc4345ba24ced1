"""Cut the power of a disk while something is written to it: `unshare --mount python -m ... FOLDER WHAT CUTS SEED`.

The disk is an ext4 image on a loop device. A cut is a copy of the image while the writer stands still: what only
the kernel's memory held is not in it. Mounting the copy replays its journal, as the next start of the machine does.
WHAT is `append`, `rotate`, `evidence`, `replace`, or `nosync`: appending with a sync that does nothing, which
must lose data. All mounts live in this process's own namespace and end with it, and with them the loop devices.
"""

import asyncio
import gc
import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

from rune.errors import StorageError
from rune.host.clock import SystemClock
from rune.host.files import private_folder, replace_file
from rune.store.codec import digest
from rune.store.evidence_store import EvidenceStore
from tests.store.campaigns.batches import Key, batch_of
from tests.store.campaigns.reckoning import open_home, reckoned
from tests.store.journals import no_sync

_SIZE = 64 << 20
_PATIENCE = 20.0
# So many acknowledgements, then another home: the first lines of a new one must survive as well.
_A_HOME = {"append": 120, "rotate": 120, "evidence": 60, "replace": 60, "nosync": 1 << 30}

Tell = Callable[[int, int], None]


async def append(home: Path, run: int, seed: int, what: str, tell: Tell) -> None:
    """Append batches and tell of each that is acknowledged."""
    sync = no_sync if what == "nosync" else os.fdatasync
    # The header of a segment is synced by another way, and takes all before it along: there is one only.
    store, _ = open_home(home, sync=sync, segment_bytes=4096 if what == "rotate" else 1 << 30)
    for number in range(_A_HOME[what]):
        key = Key(run, number)
        batch = batch_of(seed, key)
        if what == "nosync" and any(len(str(event.body)) > 8000 for event in batch):
            continue  # evidence would be synced, and the journal with it
        await store.append_many(batch)
        tell(*key)
    await store.close()


def blob(run: int, number: int) -> bytes:
    """Return what a campaign keeps as evidence."""
    return f"{run} {number} ".encode() * (1 + number * 37 % 3000)


def keep(home: Path, run: int, what: str, tell: Tell) -> None:
    """Keep blobs, or replace one file over and over."""
    private_folder(home)
    evidence = EvidenceStore(home / "evidence", SystemClock())
    for number in range(_A_HOME[what]):
        if what == "evidence":
            evidence.put(blob(run, number), source="test")
        else:
            replace_file(home / "state", blob(run, number))
        tell(run, number)


def found(home: Path, run: int, what: str, told: set[Key], seed: int) -> list[str]:
    """Return what is wrong with a home after a cut."""
    if what in {"append", "rotate", "nosync"}:
        return reckoned(home, seed, told).faults
    last = max((key.number for key in told), default=-1)
    if what == "replace":
        state = (home / "state").read_bytes() if (home / "state").exists() else b""
        # The one that was told last, or the one that was on its way.
        good = [blob(run, number) for number in (last, last + 1) if number >= 0] + ([b""] if last < 0 else [])
        return [] if state in good else [f"its state is {state[:30]!r} ({len(state)} bytes) after {last}"]
    evidence = EvidenceStore(home / "evidence", SystemClock())
    faults: list[str] = []
    for key in told:
        try:
            evidence.verify(digest(blob(*key)))
        except StorageError as error:
            faults.append(repr(error))
    return faults


class PowerCuts:
    """One disk, one writer, many cuts."""

    def __init__(self, folder: Path, what: str, seed: int) -> None:
        self._image, self._copy = folder / "disk.img", folder / "copy.img"
        self._disk, self._after = folder / "disk", folder / "after"
        self._what, self._seed = what, seed
        self._chance = random.Random(f"{seed}-{what}")  # noqa: S311 a repeatable choice of moments
        self.figures = {"cuts": 0, "cuts that lost": 0, "acknowledged": 0, "copies made again": 0}
        self.faults: list[str] = []
        for mount in (self._disk, self._after):
            mount.mkdir()
        with self._image.open("wb") as file:
            file.truncate(_SIZE)
        _command("mkfs.ext4", "-q", str(self._image))
        _command("mount", "-o", "loop,commit=60", str(self._image), str(self._disk))

    def run(self, cuts: int) -> None:
        """Let a process write, and cut its power that often."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            self._write(writing)
        os.close(writing)
        told: dict[int, set[Key]] = {}
        heard = b""
        try:
            for _ in range(cuts):
                heard = self._hear(reading, heard, told, self._chance.randint(1, 40))
                os.kill(child, signal.SIGSTOP)
                os.waitpid(child, os.WUNTRACED)
                heard = self._hear(reading, heard, told, 0)
                self._copy_image()
                os.kill(child, signal.SIGCONT)
                self._examine(told)
                # Homes that were whole after a cut are not looked at again.
                for run in sorted(told)[:-2]:
                    del told[run]
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(reading)
            _command("umount", str(self._disk))

    def _write(self, writing: int) -> None:
        def tell(run: int, number: int) -> None:
            os.write(writing, f"{run} {number}\n".encode())

        try:
            for run in count():
                home = self._disk / f"home-{run}"
                if self._what in {"evidence", "replace"}:
                    keep(home, run, self._what, tell)
                else:
                    asyncio.run(append(home, run, self._seed, self._what, tell))
                if run >= 2:
                    # Old homes make room; that they go is not what is measured.
                    shutil.rmtree(self._disk / f"home-{run - 2}")
        except BaseException as error:  # noqa: BLE001 told to the parent, which fails the campaign
            os.write(writing, f"failed {error!r}\n".encode())
        os._exit(1)

    def _hear(self, reading: int, heard: bytes, told: dict[int, set[Key]], least: int) -> bytes:
        """Take in acknowledgements: at least so many, or, for 0, those that are there. Returns half a line."""
        lines: list[bytes] = []
        deadline = time.monotonic() + _PATIENCE
        while not least or len(lines) < least:
            wait = max(0.0, deadline - time.monotonic()) if least else 0
            if not select.select([reading], [], [], wait)[0]:
                break
            *more, heard = (heard + os.read(reading, 1 << 16)).split(b"\n")
            lines += more
            if not more:
                break
        for line in lines:
            if line.startswith(b"failed"):
                raise SystemExit(line.decode())
            key = Key(*map(int, line.split()))
            told.setdefault(key.run, set()).add(key)
            self.figures["acknowledged"] += 1
        return heard

    def _copy_image(self) -> None:
        """Copy the image until nothing changed meanwhile: the kernel's own threads do not stand still."""
        while True:
            copied = _extents(self._image)
            if copied == _extents(self._image):
                break
            self.figures["copies made again"] += 1
        with self._copy.open("wb") as file:
            file.truncate(_SIZE)
            for at, data in copied:
                os.pwrite(file.fileno(), data, at)

    def _examine(self, told: dict[int, set[Key]]) -> None:
        _command("mount", "-o", "loop", str(self._copy), str(self._after))
        try:
            wrong: list[str] = []
            for run in sorted(told)[-2:]:
                home = self._after / f"home-{run}"
                wrong += [f"cut {self.figures['cuts']}, {home.name}: {one}" for one in self._found(home, run, told)]
        finally:
            # A reading that ended with an error may hold a file open until its traceback is collected.
            gc.collect()
            _command("umount", str(self._after))
        self.figures["cuts"] += 1
        self.figures["cuts that lost"] += bool(wrong)
        self.faults += wrong

    def _found(self, home: Path, run: int, told: dict[int, set[Key]]) -> list[str]:
        if not home.exists():
            return [f"the home is gone, with {len(told[run])} acknowledged"]
        return found(home, run, self._what, told[run], self._seed)


def _extents(path: Path) -> list[tuple[int, bytes]]:
    """Return the parts of a file that are not holes."""
    parts: list[tuple[int, bytes]] = []
    with path.open("rb", buffering=0) as file:
        at = 0
        while True:
            try:
                start = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:
                return parts  # nothing but a hole up to the end
            at = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            parts.append((start, os.pread(file.fileno(), at - start, start)))


def _command(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def main(folder: Path, what: str, cuts: int, seed: int) -> None:
    started = time.monotonic()
    try:
        campaign = PowerCuts(folder, what, seed)
    except (subprocess.CalledProcessError, FileNotFoundError) as error:
        print(json.dumps({"cannot mount": str(error)}))
        return
    campaign.run(cuts)
    seconds = round(time.monotonic() - started, 1)
    print(json.dumps({**campaign.figures, "seconds": seconds, "faults": campaign.faults[:20]}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
