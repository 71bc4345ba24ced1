"""Repositories as people have them: the tools work there."""

import asyncio
import shutil
import time
from pathlib import Path

import msgspec
import pytest

from rune.errors import AccessDeniedError, FileUnavailableError
from rune.tools.executor import Done
from rune.tools.files import WorkspaceFiles
from rune.tools.places import Places
from rune.tools.workplace import Workplace
from tests.tools.git.repositories import COMMIT, DIFF, LOG, SHOW, STATUS, call, git, repository, use_all, workplace


def all_work(base: Path, path: str = "a.txt") -> list[str]:
    found = asyncio.run(use_all(workplace(base), path, looks=2))
    assert all(isinstance(each, Done) for each in found), found
    return [each.text for each in found if isinstance(each, Done)]


def test_a_worktree_whose_repository_lies_outside(tmp_path: Path) -> None:
    main = repository(tmp_path, name="main")
    git(main, "worktree", "add", "-q", "../work", "-b", "side")
    (tmp_path / "work" / "a.txt").write_text("changed\n")
    texts = all_work(tmp_path)
    assert texts[0].startswith("On side.")
    assert git(main, "log", "-1", "--format=%an", "side").strip() == "Anna Example"
    assert git(tmp_path / "work", "status", "--porcelain") == ""
    # Its other side no longer names it: then it could be anybody's.
    (main / ".git" / "worktrees" / "work" / "gitdir").write_text("/somewhere/.git\n")
    with pytest.raises(AccessDeniedError, match="outside the folders that may be read"):
        call(STATUS, workplace(tmp_path))


def test_a_submodule_and_what_it_is_in(tmp_path: Path) -> None:
    library = repository(tmp_path, name="library")
    work = repository(tmp_path)
    git(work, "submodule", "add", "-q", str(library), "sub")
    git(work, "commit", "-qm", "sub")
    (work / "sub" / "new.txt").write_text("n\n")
    git(work / "sub", "add", "new.txt")
    git(work / "sub", "commit", "-qm", "in the submodule")
    texts = all_work(tmp_path)
    assert "  M sub\n" in f"{texts[0]}\n"
    assert "+Subproject commit" in texts[1]
    call(COMMIT, workplace(tmp_path), message="Raise sub", paths=["sub"])
    assert git(work, "status", "--porcelain") == ""
    # Now the submodule alone is opened; its repository is outside, and names it.
    inner = workplace_at(work / "sub", tmp_path)
    assert call(LOG, inner).text.splitlines()[0].endswith("in the submodule (HEAD -> main)")


def workplace_at(folder: Path, base: Path, *, reading: tuple[Path, ...] = ()) -> Workplace:
    """Return a workplace on a folder, which may be written; `reading` may be read."""
    other = workplace(base)
    places = Places(reading=reading, writing=(folder,), own=other.places.own)
    return msgspec.structs.replace(other, folder=folder, places=places, files=WorkspaceFiles(folder, places))


def test_a_folder_below_the_top_that_may_be_read(tmp_path: Path) -> None:
    work = repository(tmp_path)
    (work / "src" / "b.txt").write_text("c\n")
    place = workplace_at(work / "src", tmp_path, reading=(work,))
    assert "  M b.txt" in call(STATUS, place).text
    assert f"  M {work / 'a.txt'}" in call(STATUS, place).text
    assert call(DIFF, place, path="b.txt").text.endswith("-b\n+c")
    assert "Committed" in call(COMMIT, place, message="c", paths=["b.txt"]).text
    assert git(work, "status", "--porcelain") == " M a.txt\n"


def test_no_commits_yet(tmp_path: Path) -> None:
    place = workplace(tmp_path)
    git(place.folder, "init", "-q")
    (place.folder / "a.txt").write_text("a\n")
    git(place.folder, "add", "a.txt")
    assert call(STATUS, place).text.startswith("On main, no commits yet.\nStaged (1):\n  A a.txt")
    assert call(LOG, place).text == "The repository has no commits yet."
    assert "+a" in call(DIFF, place, staged=True).text
    assert "Staged: 1. Use staged=true" in call(DIFF, place).text
    with pytest.raises(FileUnavailableError, match="no commits yet"):
        call(SHOW, place, commit="HEAD")


def test_no_branch_a_merge_a_conflict(tmp_path: Path) -> None:
    work = repository(tmp_path)
    git(work, "commit", "-qam", "main")
    git(work, "checkout", "-q", "-b", "side", "HEAD~1")
    (work / "a.txt").write_text("side\n")
    git(work, "commit", "-qam", "side")
    git(work, "merge", "-q", "main", code=1)
    place = workplace(tmp_path)
    status = call(STATUS, place).text
    assert "On side. A merge is not finished.\nConflicts (1):\n  UU a.txt" in status
    assert "++<<<<<<< HEAD" in call(DIFF, place).text
    git(work, "commit", "-qam", "merged")
    shown = call(SHOW, place, commit="HEAD").text
    assert "A merge; shown is what it brought into its first parent." in shown
    assert "+>>>>>>> main" in shown
    git(work, "checkout", "-q", "--detach")
    assert call(STATUS, place).text.startswith("On no branch (detached at ")
    (work / "a.txt").write_text("x\n")
    assert "on no branch (HEAD is detached)" in call(COMMIT, place, message="m", paths=["a.txt"]).text


def test_ahead_and_behind(tmp_path: Path) -> None:
    origin = repository(tmp_path, name="origin")
    git(origin, "checkout", "-q", "-f", ".")
    git(tmp_path, "clone", "-q", "origin", "work")
    work = tmp_path / "work"
    git(work, "commit", "-q", "--allow-empty", "-m", "mine")
    git(work, "branch", "-q", "other", "HEAD~2")
    git(work, "branch", "-q", "--set-upstream-to=other")
    git(work, "config", "status.aheadBehind", "false")
    assert call(STATUS, workplace(tmp_path)).text.startswith("On main, 2 ahead of other.\nNothing is changed.")


@pytest.mark.parametrize("setting", ["true", pytest.param("false", marks=pytest.mark.slow)])
def test_line_ends_as_git_is_told_to_keep_them(tmp_path: Path, setting: str) -> None:
    work = repository(tmp_path)
    git(work, "config", "core.autocrlf", setting)
    (work / "a.txt").write_bytes(b"one\r\nmore\r\n")
    call(COMMIT, workplace(tmp_path), message="m", paths=["a.txt"])
    kept = git(work, "cat-file", "blob", "HEAD:a.txt")
    assert kept == ("one\r\nmore\r\n" if setting == "false" else "one\nmore\n")
    assert git(work, "status", "--porcelain") == ""


def test_attributes_of_git_lfs_without_its_program(tmp_path: Path) -> None:
    work = repository(tmp_path)
    (work / ".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
    (work / "big.bin").write_text("version https://git-lfs.github.com/spec/v1\n")
    git(work, "add", ".")
    git(work, "commit", "-qm", "lfs")
    (work / "big.bin").write_bytes(bytes(1000))
    (work / "a.txt").write_text("three\n")
    place = workplace(tmp_path)
    assert "  M big.bin" in call(STATUS, place).text
    assert "Binary files a/big.bin and b/big.bin differ" in call(DIFF, place, path="big.bin").text


@pytest.mark.slow
def test_objects_of_a_folder_that_may_be_read_are_used(tmp_path: Path) -> None:
    work = repository(tmp_path)
    git(work, "clone", "-q", "--shared", ".", "copy")
    (work / "copy" / "a.txt").write_text("changed\n")
    assert "On main." in call(STATUS, workplace_at(work / "copy", tmp_path, reading=(work,))).text
    with pytest.raises(AccessDeniedError, match="borrows objects"):
        call(STATUS, workplace_at(work / "copy", tmp_path))


def test_a_folder_with_an_odd_name(tmp_path: Path) -> None:
    base = tmp_path / 'a q"u:o\\te ünï'
    base.mkdir()
    repository(base)
    place = workplace(base)
    assert "  M a.txt" in call(STATUS, place).text
    assert "Committed" in call(COMMIT, place, message="m", paths=["a.txt"]).text


def test_a_broken_git_file_is_told(tmp_path: Path) -> None:
    work = repository(tmp_path)
    shutil.rmtree(work / ".git")
    for text in ("gitdir: ../gone/.git\n", "nonsense\n"):
        (work / ".git").write_text(text)
        with pytest.raises(FileUnavailableError, match=r"`\.git` here is"):
            call(STATUS, workplace(tmp_path))
    (work / ".git").write_text("gitdir: a\0b\n")
    with pytest.raises(AccessDeniedError, match="zero byte"):
        call(STATUS, workplace(tmp_path))


@pytest.mark.slow
def test_ten_thousand_changed_files(tmp_path: Path) -> None:
    work = repository(tmp_path)
    for number in range(10_000):
        (work / "src" / f"a file with a rather long name {number:05}.txt").write_text(f"{number}\n")
    git(work, "add", "src")
    git(work, "commit", "-qm", "many")
    for number in range(10_000):
        (work / "src" / f"a file with a rather long name {number:05}.txt").write_text(f"{number} more\n")
    place = workplace(tmp_path)
    began = time.monotonic()
    texts = [
        call(tool, place, **arguments).text
        for tool, arguments in ((STATUS, {}), (DIFF, {}), (SHOW, {"commit": "HEAD"}))
    ]
    assert time.monotonic() - began < 30
    assert "Changed, not staged (10,001):" in texts[0]
    assert all(len(text) < 30_000 for text in texts)
    assert "10,001 changed: " in texts[1]
    some = [f"src/a file with a rather long name {number:05}.txt" for number in range(500)]
    assert "500 files" in call(COMMIT, place, message="m", paths=some).text


@pytest.mark.slow
def test_many_files_that_may_hold_secrets(tmp_path: Path) -> None:
    work = repository(tmp_path)
    for number in range(400):
        (work / f".env.{number}").write_text("canary\n")
    git(work, "add", ".")
    done = call(DIFF, workplace(tmp_path), staged=True)
    assert "canary" not in done.text
    assert "and 370 more" in done.text
