"""What reading the journal again costs, all of it verified, against bare msgspec decode + sha256 of each line.

All times are processor time: a replay waits for nothing but the disk.

Bars: at most 2.5 times the floor; memory does not grow with the journal. With --million the memory is that of
1,000,000 events (minutes, 1 GB of disk), otherwise that of 100,000.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

import msgspec
from _journal import a_home, store_of, usual_messages
from _measure import Bar, best_ratio, figures, fingerprint, paired, report, wants_json

from rune.host.paths import resolve_home
from rune.records.envelope import EventEnvelope
from rune.store.event_store import Offset

EVENTS = 100_000
MILLION = 1_000_000
BEHIND = 1_000
FIRST = 10_000
TIMES_FLOOR = 2.5
QUIET_MS = 300
CHECKPOINT_MS = 10
GROWTH_MB = 4.0

DECODE = msgspec.json.Decoder(EventEnvelope).decode


def _bare(folder: Path) -> float:
    began = time.process_time()
    for path in sorted(folder.glob("*.jsonl")):
        with path.open("rb") as file:
            next(file)
            for whole in file:
                line = whole[:-1]
                DECODE(line)
                hashlib.sha256(line).hexdigest()
    return (time.process_time() - began) * 1000


def _replay(root: Path, count: int) -> float:
    store = store_of(resolve_home({"RUNE_HOME": str(root)}))
    began = time.process_time()
    seen = sum(1 for _ in store.replay())
    took = (time.process_time() - began) * 1000
    if seen != count:
        raise RuntimeError(f"{seen} of {count} events were read")
    return took


def _from_checkpoint(root: Path, place: Offset) -> float:
    store = store_of(resolve_home({"RUNE_HOME": str(root)}))
    began = time.process_time()
    seen = sum(1 for _ in store.read({place.writer: place}))
    took = (time.process_time() - began) * 1000
    if seen != BEHIND:
        raise RuntimeError(f"{seen} of {BEHIND} events were read")
    return took


def _place(root: Path, seq: int) -> Offset:
    store = store_of(resolve_home({"RUNE_HOME": str(root)}))
    return next(offset for offset, _ in store.replay() if offset.seq == seq)


def _resident() -> float:
    """Return the memory of this process that is in use, in MB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _growth(root: Path) -> float:
    """Return by how many MB this process grows between the first events of a replay and its end."""
    first, most = 0.0, 0.0
    for number, _ in enumerate(store_of(resolve_home({"RUNE_HOME": str(root)})).replay()):
        if number == FIRST:
            first = _resident()
        elif number % FIRST == 0:
            most = max(most, _resident())
    return max(0.0, most - first)


def _growth_apart(root: Path) -> float:
    """Return the same of a process of its own, in which nothing else has been."""
    done = subprocess.run([sys.executable, __file__, "--grow", str(root)], check=True, capture_output=True)
    return float(json.loads(done.stdout))


def main() -> int:
    """Measure, print, and return the exit code."""
    if sys.argv[1:2] == ["--grow"]:
        sys.stdout.write(json.dumps(_growth(Path(sys.argv[2]))))
        return 0
    asked = "--million" in sys.argv
    with contextlib.suppress(ValueError):
        sys.argv.remove("--million")
    as_json = wants_json(__doc__ or "")
    with tempfile.TemporaryDirectory(prefix="rune-bench-") as folder:
        root = Path(folder) / "home"
        home = asyncio.run(a_home(root, islice(usual_messages(), EVENTS)))
        batches = paired(lambda: _bare(home.journal), lambda: _replay(root, EVENTS), runs=2)
        place = _place(root, EVENTS - BEHIND)
        behind = [_from_checkpoint(root, place) for _ in range(20)]
        large, count = root, EVENTS
        if asked:
            large, count = Path(folder) / "large", MILLION
            asyncio.run(a_home(large, islice(usual_messages(), MILLION)))
        growth = [_growth_apart(large) for _ in range(2)]
    rows = [
        figures(f"decode + sha256, {EVENTS:,}", "ms", [low for batch in batches for low, _ in batch]),
        figures(f"replay, {EVENTS:,}", "ms", [seen for batch in batches for _, seen in batch]),
        figures(f"from a checkpoint, {BEHIND:,} behind it", "ms", behind),
        figures(f"growth over {count:,}", "MB", growth),
    ]
    ratio = best_ratio(batches)
    bars = [
        Bar(what="replay, times the floor", limit=TIMES_FLOOR, seen=ratio, holds=ratio <= TIMES_FLOOR),
        Bar(what=f"growth over {count:,}, MB", limit=GROWTH_MB, seen=max(growth), holds=max(growth) <= GROWTH_MB),
        Bar(what=f"replay of {EVENTS:,}, ms", limit=QUIET_MS, seen=rows[1].p50, holds=None),
        Bar(
            what="from a checkpoint, ms",
            limit=CHECKPOINT_MS,
            seen=rows[2].p50,
            holds=None if rows[2].p50 > CHECKPOINT_MS else True,
        ),
    ]
    return report("replay", rows, bars, facts=fingerprint(["msgspec"]), as_json=as_json)


if __name__ == "__main__":
    sys.exit(main())
