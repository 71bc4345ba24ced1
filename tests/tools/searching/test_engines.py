"""ripgrep and Python find the same lines in generated folders, and neither looks where it must not."""

import asyncio
import shutil
from pathlib import Path

import pytest

from rune.tools.globs import globs
from rune.tools.searching.by_python import find, search_by_python
from rune.tools.searching.ripgrep import find_ripgrep, search_by_ripgrep
from rune.tools.searching.search import Match, Outcome, Search
from rune.tools.workplace import Workplace
from tests.tools.executors.places import workplace
from tests.tools.searching.trees import make_tree, some_glob
from tests.tools.workspace import SECRET

needs_ripgrep = pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed")

_PATTERNS = (
    "needle",
    "^needle",
    "needle$",
    "n.edle",
    r"\bneedle\b",
    "(needle|b)",
    "e{2}",
    r"\s+needle\d?",
    "NEEDLE",
    "^$",
    "é",
)
_SHORT, _LONG = 40, 3_000


async def by_both(place: Workplace, search: Search) -> tuple[Outcome, list[Match]]:
    """Look with ripgrep, and with Python in this process."""
    program = find_ripgrep(place.environment)
    assert program is not None
    with place.files.held(str(search.start)) as (folder, _):
        by_ripgrep = await search_by_ripgrep(
            program,
            search,
            folder=folder,
            places=place.places,
            environment=place.environment,
            stop=asyncio.Event(),
        )
    return by_ripgrep, sorted(find(search, place.places))


def generated(base: Path, seed: int) -> tuple[Workplace, Search]:
    """Make a folder, and what is to be looked for in it."""
    base.mkdir()
    place = workplace(base)
    make_tree(place.folder, seed)
    if seed % 3 == 0:
        (place.folder / ".git").mkdir(exist_ok=True)
    below = [path for path in sorted(place.folder.rglob("*")) if path.is_dir() and not path.is_symlink()]
    folders = [place.folder, *(path for path in below if place.places.ruling("read", path).verdict == "allow")]
    start = folders[seed // 2 % len(folders)] if seed % 2 else place.folder
    glob = some_glob(seed)
    return place, Search(
        pattern=_PATTERNS[seed % len(_PATTERNS)],
        start=start,
        glob=globs(glob, start=start) if glob else None,
        ignore_case=seed % 4 == 0,
    )


async def compare(base: Path, seed: int) -> None:
    """Look for something in a generated folder in both ways."""
    place, search = generated(base, seed)
    found, by_python = await by_both(place, search)
    assert found.matches == by_python, (seed, search)
    assert found.complete
    for match in by_python:
        assert place.places.ruling("read", search.start.joinpath(*match.parts)).verdict == "allow"
        assert SECRET not in match.line
    place.files.close()


@needs_ripgrep
@pytest.mark.anyio
async def test_both_find_the_same_lines(tmp_path: Path) -> None:
    for seed in range(_SHORT):
        await compare(tmp_path / str(seed), seed)


@needs_ripgrep
@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.timeout(1800)
async def test_both_find_the_same_lines_in_many_folders(tmp_path: Path) -> None:
    for seed in range(_SHORT, _LONG):
        await compare(tmp_path / str(seed), seed)
        shutil.rmtree(tmp_path / str(seed))


@pytest.mark.anyio
async def test_python_in_a_process_of_its_own_finds_the_same(tmp_path: Path) -> None:
    place, search = generated(tmp_path / "tree", 8)
    with place.files.held(str(search.start)) as (folder, _):
        found = await search_by_python(
            search, folder=folder, places=place.places, environment=place.environment, stop=asyncio.Event()
        )
    assert found.matches == sorted(find(search, place.places))
    assert found.matches
    assert found.complete
