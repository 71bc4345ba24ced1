"""`.gitignore` as git reads it: git itself says what is left out."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from rune.tools.files import WorkspaceFiles
from rune.tools.ignoring import ignoring_above
from rune.tools.places import Places
from rune.tools.walking import LeftOut, walk
from tests.tools.searching.trees import make_tree

_SHORT, _LONG = 12, 1_000


def seen(folder: Path) -> set[str]:
    """Return the files that a walk gives, hidden folders included."""
    places = Places(reading=(), writing=(folder,), own=())
    with WorkspaceFiles(folder, places) as files:
        return {
            each.place for each in walk(files, places, folder, LeftOut(), hidden=True) if each.kind in {"file", "link"}
        }


def by_git(folder: Path) -> set[str]:
    """Return the files that git would add."""
    command = ["git", "-c", "core.excludesFile=/dev/null", "ls-files", "-z", "--others", "--exclude-standard"]
    said = subprocess.run(command, cwd=folder, check=True, capture_output=True).stdout
    return {name.decode("utf-8", "surrogateescape") for name in said.split(b"\0") if name}


def compare(base: Path, seed: int) -> None:
    """Walk through a generated repository, and ask git about it."""
    folder = base / "work"
    folder.mkdir(parents=True)
    make_tree(folder, seed)
    for inner in folder.rglob(".git"):
        shutil.rmtree(inner)
    shutil.rmtree(folder / ".aws", ignore_errors=True)  # what may not be read is not walked
    subprocess.run(["git", "init", "-q", "."], cwd=folder, check=True)
    walked = seen(folder)
    closed = {each for each in by_git(folder) if "/.aws/" in f"/{each}"}
    assert walked == by_git(folder) - closed, seed


def test_git_says_the_same(tmp_path: Path) -> None:
    for seed in range(_SHORT):
        compare(tmp_path / str(seed), seed)


@pytest.mark.slow
def test_git_says_the_same_of_many_folders(tmp_path: Path) -> None:
    for seed in range(_SHORT, _LONG):
        compare(tmp_path / str(seed), seed)
        shutil.rmtree(tmp_path / str(seed))


@pytest.mark.parametrize("repository", [True, False])
def test_files_above_count_up_to_the_repository(tmp_path: Path, repository: bool) -> None:
    folder = tmp_path / "repo" / "deep"
    folder.mkdir(parents=True)
    (tmp_path / ".gitignore").write_text("*.a\n")
    (tmp_path / "repo" / ".gitignore").write_text("*.b\n")
    if repository:
        (tmp_path / "repo" / ".git").mkdir()
    ignoring = ignoring_above(folder)
    assert ignoring.leaves_out(f"{folder}/x.b", folder=False)
    assert ignoring.leaves_out(f"{folder}/x.a", folder=False) is not repository


def test_all_that_is_in_a_folder_is_not_the_folder(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / ".gitignore").write_text("lib/**\n")
    (tmp_path / "lib" / ".gitignore").write_text("!*.py\n")
    for name in ("a.py", "a.js"):
        (tmp_path / "lib" / name).touch()
    assert seen(tmp_path) == {".gitignore", "lib/a.py"}


def test_what_is_said_above_a_repository_does_not_count_in_it(tmp_path: Path) -> None:
    (tmp_path / "inner" / ".git").mkdir(parents=True)
    (tmp_path / ".gitignore").write_text("*.log\n")
    for name in ("a.log", "inner/b.log"):
        (tmp_path / name).touch()
    assert seen(tmp_path) == {".gitignore", "inner/b.log"}


def test_lines_that_are_no_patterns_leave_nothing_out(tmp_path: Path) -> None:
    lines = ["!", "\\", "[z-a]", "a[b", "//", "", " ", "#", "\0", "\ufeff", "x" * 10_000]
    random.Random(1).shuffle(lines)  # noqa: S311 - the same every time
    (tmp_path / ".gitignore").write_text("\n".join(lines))
    (tmp_path / "a.py").touch()
    assert seen(tmp_path) == {".gitignore", "a.py"}


def test_a_gitignore_that_is_no_file_leaves_nothing_out(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").mkdir()
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / ".gitignore").symlink_to("/dev/zero")
    (tmp_path / "below" / "a.py").touch()
    assert seen(tmp_path) == {"below/a.py", "below/.gitignore"}
