"""Looking with ripgrep costs hardly more than ripgrep itself (benchmarks/grep.py)."""

import asyncio
import resource
import shutil
import subprocess
from pathlib import Path

import pytest

from rune.tools.executors.grep_files import GrepFiles
from rune.tools.workplace import Workplace
from tests.tools.executors.places import done, workplace

FILES = 1_000
# The bar of benchmarks/grep.py is 1.3, over more files; a busy machine is given as much again.
TIMES_RIPGREP = 2 * 1.3


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    place = workplace(tmp_path)
    text = "".join(f"item {line} is written here\n" for line in range(40))
    for number in range(FILES):
        folder = place.folder / f"folder{number // 50}"
        folder.mkdir(exist_ok=True)
        (folder / f"file{number}.py").write_text(text)
    return place


def processor_seconds() -> float:
    """Return the time that this process and those that it saw end have taken of a processor."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


@pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed")
def test_looking_with_ripgrep_costs_a_small_multiple_of_ripgrep(place: Workplace) -> None:
    def alone() -> float:
        began = processor_seconds()
        subprocess.run(["rg", "--no-config", "nowhere", "."], cwd=place.folder, check=False, stdout=subprocess.PIPE)
        return processor_seconds() - began

    def by_tool() -> float:
        began = processor_seconds()
        asyncio.run(done(GrepFiles(), place, pattern="nowhere"))
        return processor_seconds() - began

    pairs = [(alone(), by_tool()) for _ in range(5)]
    assert min(seen for _, seen in pairs) <= TIMES_RIPGREP * min(low for low, _ in pairs)
