"""What every measurement shares: paired batches, robust figures, the machine's fingerprint, one form of report."""

import argparse
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import rune

ROOT = Path(__file__).resolve().parent.parent
BATCHES = 5


@dataclass(frozen=True, kw_only=True)
class Figures:
    """One measured quantity over all batches, in `unit`. `mad` is the median distance from the median."""

    what: str
    unit: str
    p50: float
    p95: float
    max: float
    mad: float


@dataclass(frozen=True, kw_only=True)
class Bar:
    """What a figure must not exceed. `holds` is None where the machine decides (absolute times on shared machines)."""

    what: str
    limit: float
    seen: float
    holds: bool | None


def figures(what: str, unit: str, values: Sequence[float]) -> Figures:
    """Return the figures of at least two values."""
    middle = statistics.median(values)
    return Figures(
        what=what,
        unit=unit,
        p50=middle,
        p95=statistics.quantiles(values, n=20, method="inclusive")[-1],
        max=max(values),
        mad=statistics.median(abs(value - middle) for value in values),
    )


def paired(floor: Callable[[], float], measured: Callable[[], float], *, runs: int) -> list[list[tuple[float, float]]]:
    """Take floor and measured value by turns, so that both meet the same noise: BATCHES batches of `runs` pairs."""
    return [[(floor(), measured()) for _ in range(runs)] for _ in range(BATCHES)]


def best_ratio(batches: Sequence[Sequence[tuple[float, float]]]) -> float:
    """Return measured to floor in the batch where it was least: what is left above it is the machine's noise."""
    return min(
        statistics.median(pair[1] for pair in batch) / statistics.median(pair[0] for pair in batch) for batch in batches
    )


def fingerprint(libraries: Sequence[str] = ()) -> dict[str, str]:
    """Say on what was measured: commit, processor, system, Python, Rune and the libraries that are named."""
    versions = {name: importlib.metadata.version(name) for name in libraries}
    return {
        "commit": _commit(),
        "cpu": f"{_processor()}, {os.cpu_count()} cores",
        "system": platform.platform(),
        "python": platform.python_version(),
        "rune": rune.__version__,
        **versions,
    }


def report(
    name: str, rows: Sequence[Figures], bars: Sequence[Bar], *, facts: Mapping[str, str], as_json: bool = False
) -> int:
    """Print figures and bars; returns the exit code: 1 when a bar that counts does not hold."""
    if as_json:
        shown = {
            "name": name,
            "machine": facts,
            "figures": [vars(row) for row in rows],
            "bars": [vars(bar) for bar in bars],
        }
        sys.stdout.write(json.dumps(shown) + "\n")
    else:
        sys.stdout.write(_table(name, rows, bars, facts))
    return 1 if any(bar.holds is False for bar in bars) else 0


def wants_json(description: str) -> bool:
    """Read the command line that all measurements have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    return bool(parser.parse_args().json)


def _table(name: str, rows: Sequence[Figures], bars: Sequence[Bar], facts: Mapping[str, str]) -> str:
    lines = [name, *(f"  {key:<10}{value}" for key, value in facts.items())]
    width = max(len(row.what) for row in rows)
    lines.append(f"  {'':<{width}}  {'p50':>9} {'p95':>9} {'max':>9} {'MAD':>9}")
    for row in rows:
        numbers = " ".join(f"{value:9.2f}" for value in (row.p50, row.p95, row.max, row.mad))
        lines.append(f"  {row.what:<{width}}  {numbers} {row.unit}")
    words = {True: "holds", False: "FAILS", None: "for a quiet machine"}
    lines.extend(f"  {bar.what}: {bar.seen:.2f}, at most {bar.limit:g}: {words[bar.holds]}" for bar in bars)
    return "\n".join(lines) + "\n"


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def _processor() -> str:
    """Return the processor's name: Linux keeps it in a file, other systems tell Python."""
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        for line in listing.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
