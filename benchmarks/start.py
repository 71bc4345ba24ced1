"""How long `rune --version` takes above a bare Python, and what it imports.

Bars: at most four times `python -c pass`, nothing heavy imported; 30 ms on a quiet machine.
"""

import re
import subprocess
import sys
import time

from _measure import Bar, best_ratio, figures, fingerprint, paired, report, wants_json

RUNS = 10
TIMES_BARE_PYTHON = 4.0
QUIET_MS = 30.0
HEAVY = {"textual", "rich", "httpx", "apsw", "numpy", "pydantic"}


def _milliseconds(*arguments: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-P", *arguments], check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - began) * 1000


def _imported(*arguments: str) -> set[str]:
    """Return the names of all modules that a process imports."""
    command = [sys.executable, "-P", "-X", "importtime", *arguments]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    return set(re.findall(r"^import time:.*\|\s*([\w.]+)$", told, flags=re.MULTILINE))


def main() -> int:
    """Measure, print, and return the exit code."""
    as_json = wants_json(__doc__ or "")
    _milliseconds("-m", "rune", "--version")  # bytecode is written once, not measured
    batches = paired(lambda: _milliseconds("-c", "pass"), lambda: _milliseconds("-m", "rune", "--version"), runs=RUNS)
    floor = figures("python -c pass", "ms", [pair[0] for batch in batches for pair in batch])
    version = figures("rune --version", "ms", [pair[1] for batch in batches for pair in batch])
    modules = _imported("-m", "rune", "--version")
    heavy = {name for name in modules if name.partition(".")[0] in HEAVY}
    ratio = best_ratio(batches)
    bars = [
        Bar(what="times a bare Python", limit=TIMES_BARE_PYTHON, seen=ratio, holds=ratio <= TIMES_BARE_PYTHON),
        Bar(what="heavy modules imported", limit=0, seen=len(heavy), holds=not heavy),
        Bar(what="milliseconds, p50", limit=QUIET_MS, seen=version.p50, holds=None),
    ]
    facts = {
        **fingerprint(),
        "modules": f"{len(modules)} imported, {len(_imported('-c', 'pass'))} of them by Python itself",
    }
    return report("start", [floor, version], bars, facts=facts, as_json=as_json)


if __name__ == "__main__":
    sys.exit(main())
