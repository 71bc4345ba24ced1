"""Looking for a line in 50,000 files: grep_files, against what ripgrep itself takes for them.

Bar: at most 1.3 times ripgrep's own time: that of one that is started here, looks for the same in the same files and
gives the same lines, which are read and thrown away.
"""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from _measure import Bar, Figures, best_ratio, figures, fingerprint, paired, report, wants_json

from rune.host.environment import command_environment
from rune.text.masking import Masker
from rune.tools.executor import Watch
from rune.tools.executors.grep_files import GrepFiles
from rune.tools.files import WorkspaceFiles
from rune.tools.places import Places
from rune.tools.undo import UndoStore
from rune.tools.workplace import Workplace

FILES = 50_000
IN_A_FOLDER = 50
RUNS = 3
TIMES_RIPGREP = 1.3
PATTERNS = {"one line": r"def needle_\d+", "nowhere": "zzqxnowhere", "500 lines": "item 7 of file [0-9]*00 "}


def make_files(folder: Path, count: int) -> None:
    """Write so many files of 40 lines, in folders of 50."""
    for number in range(count):
        parent = folder / f"part{number // 2_500:02}" / f"folder{number // IN_A_FOLDER:04}"
        if number % IN_A_FOLDER == 0:
            parent.mkdir(parents=True)
        lines = [f"item {line} of file {number} is written here\n" for line in range(40)]
        if number == count // 2:
            lines.append("def needle_7(haystack):\n")
        (parent / f"file{number:05}.py").write_text("".join(lines), encoding="utf-8")


def workplace(base: Path) -> Workplace:
    """Return a workplace on `base`/work."""
    folder = (base / "work").resolve()
    places = Places(reading=(), writing=(folder,), own=(base / "home",))

    async def keep(_: bytes, __: str) -> str:
        raise NotImplementedError

    async def fetch(_: str) -> bytes:
        raise NotImplementedError

    return Workplace(
        conversation_id="cnv_01kb9y3c7m0000000000000001",
        folder=folder,
        places=places,
        files=WorkspaceFiles(folder, places),
        environment=command_environment(os.environ, writable=[folder]),
        masker=Masker(),
        undo=UndoStore(base / "undo"),
        keep=keep,
        fetch=fetch,
    )


def by_ripgrep(program: str, folder: Path, pattern: str) -> Callable[[], float]:
    """Return a search by ripgrep alone, which says how many milliseconds it took."""
    command = [program, "--no-config", "--line-number", "--no-heading", "--color=never", "--", pattern, "."]

    def search() -> float:
        began = time.perf_counter()
        subprocess.run(command, cwd=folder, check=False, stdout=subprocess.PIPE)
        return (time.perf_counter() - began) * 1000

    return search


def by_tool(place: Workplace, pattern: str) -> Callable[[], float]:
    """Return a search by grep_files, which says how many milliseconds it took. The loop is there before, as in Rune."""
    tool = GrepFiles()
    loop = asyncio.new_event_loop()

    async def search() -> float:
        began = time.perf_counter()
        plan = await tool.prepare({"pattern": pattern}, place)
        await tool.execute(plan, place, Watch(stop=asyncio.Event(), show=lambda _: None))
        return (time.perf_counter() - began) * 1000

    return lambda: loop.run_until_complete(search())


def main() -> int:
    """Measure, print, and return the exit code."""
    as_json = wants_json(__doc__ or "")
    program = shutil.which("rg")
    if program is None:
        sys.stderr.write("grep: ripgrep is not installed, there is nothing to compare with\n")
        return 0
    rows: list[Figures] = []
    ratios: list[float] = []
    with tempfile.TemporaryDirectory(prefix="rune-bench-") as base:
        place = workplace_of(Path(base))
        for what, pattern in PATTERNS.items():
            floor, measured = by_ripgrep(program, place.folder, pattern), by_tool(place, pattern)
            floor()
            measured()
            batches = paired(floor, measured, runs=RUNS)
            rows.append(figures(f"ripgrep: {what}", "ms", [low for batch in batches for low, _ in batch]))
            rows.append(figures(f"grep_files: {what}", "ms", [seen for batch in batches for _, seen in batch]))
            ratios.append(best_ratio(batches))
        place.files.close()
    worst = max(ratios)
    bars = [Bar(what="grep_files, times ripgrep", limit=TIMES_RIPGREP, seen=worst, holds=worst <= TIMES_RIPGREP)]
    facts = fingerprint() | {"files": f"{FILES:,}"}
    return report("grep", rows, bars, facts=facts, as_json=as_json)


def workplace_of(base: Path) -> Workplace:
    """Return a workplace with all the files."""
    (base / "work").mkdir()
    make_files(base / "work", FILES)
    return workplace(base)


if __name__ == "__main__":
    sys.exit(main())
