"""git_commit: the named files and nothing else, exactly as approved, by the person."""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from rune.errors import AccessDeniedError, DigestMismatchError, FileUnavailableError, InvalidArgumentsError
from rune.tools.policy import judge
from rune.tools.workplace import Workplace
from tests.tools.git.repositories import COMMIT, at_home, call, carried_out, git, prepared, repository, workplace


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a repository with a staged change, one that is not, and an untracked file."""
    base = tmp_path_factory.mktemp("template")
    folder = repository(base)
    (folder / "src" / "b.txt").write_text("staged\n")
    git(folder, "add", "src/b.txt")
    (folder / "new.txt").write_text("new\n")
    (folder / ".gitignore").write_text("*.log\n")
    (folder / "x.log").write_text("log\n")
    return folder


@pytest.fixture
def at_work(tmp_path: Path, template: Path) -> Iterator[Workplace]:
    shutil.copytree(template, tmp_path / "work", symlinks=True)
    git(tmp_path / "work", "update-index", "-q", "--refresh")
    yield workplace(tmp_path)


def test_only_the_named_files_are_committed_and_what_was_staged_stays_staged(at_work: Workplace) -> None:
    folder = at_work.folder
    plan = prepared(COMMIT, at_work, message="Third\n\nBecause.", paths=["a.txt", "new.txt"])
    assert plan.effect == "commit Third (2 files, +2 -1)"
    for line in (
        "branch: main",
        "author: Anna Example <anna@example.com> (from your own configuration)",
        "staged, and stays so uncommitted: src/b.txt",
        "Because.",
        "M a.txt +1 -1",
        "A new.txt +1 -0",
    ):
        assert line in plan.detail.splitlines()
    done = carried_out(COMMIT, plan, at_work)
    assert done.summary == f"{git(folder, 'rev-parse', '--short=8', 'HEAD').strip()} Third"
    assert git(folder, "show", "--format=%an <%ae>|%cn|%B", "--name-only", "HEAD").split("\n") == [
        *("Anna Example <anna@example.com>|Anna Example|Third", "", "Because.", ""),
        *("", "a.txt", "new.txt", ""),
    ]
    assert git(folder, "status", "--porcelain") == "M  src/b.txt\n?? .gitignore\n"
    assert git(folder, "log", "-g", "-1", "--format=%gs").strip() == "commit: Third"
    git(folder, "fsck", "--strict")
    with pytest.raises(DigestMismatchError):  # it is committed once
        carried_out(COMMIT, plan, at_work)


def test_preparing_writes_nothing_and_comes_out_the_same_each_time(at_work: Workplace) -> None:
    def state() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in at_work.folder.rglob("*")}

    before = state()
    plans = [prepared(COMMIT, at_work, message="m", paths=["a.txt"]) for _ in range(2)]
    assert plans[0].preconditions == plans[1].preconditions
    assert state() == before
    assert judge(COMMIT.kind, plans[0], mode="edits", rules=(), folder=at_work.folder).decision == "ask"


def test_what_changed_since_it_was_approved_is_not_committed(at_work: Workplace) -> None:
    folder, file = at_work.folder, at_work.folder / "a.txt"
    plan = prepared(COMMIT, at_work, message="m", paths=["a.txt"])

    def refused(why: str) -> None:
        before = git(folder, "rev-parse", "HEAD"), git(folder, "status", "--porcelain")
        with pytest.raises(DigestMismatchError, match=f"{why}.*Nothing was committed"):
            carried_out(COMMIT, plan, at_work)
        assert (git(folder, "rev-parse", "HEAD"), git(folder, "status", "--porcelain")) == before

    file.write_text("evil\n")
    refused("a file changed")
    file.write_text("two\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    refused("a file changed")
    file.unlink()
    refused("a file changed")
    file.symlink_to("/etc/passwd")
    refused("a file changed")
    assert prepared(COMMIT, at_work, message="m", paths=["a.txt"]).preconditions != plan.preconditions
    file.unlink()
    file.write_text("two\n")
    git(folder, "checkout", "-q", "-b", "other")
    refused("another commit or branch")
    git(folder, "checkout", "-q", "main")
    git(folder, "commit", "-qm", "other", "--", "src/b.txt")
    refused("another commit or branch")


def test_what_cannot_be_committed_is_told_before_anybody_is_asked(at_work: Workplace) -> None:
    (at_work.folder / ".env").write_text("TOKEN=x\n")
    (at_work.folder / "big.bin").write_text("b\n")
    (at_work.folder / ".git" / "info").mkdir(exist_ok=True)
    (at_work.folder / ".git" / "info" / "attributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
    for paths, error, words in (
        ([".gitignore", "src"], InvalidArgumentsError, "src is a folder: name each file. Changed in it: src/b.txt"),
        (["."], InvalidArgumentsError, "Changed in it: a.txt, src/b.txt, .gitignore"),
        (["x.log"], InvalidArgumentsError, "git ignores x.log"),
        ([".env"], AccessDeniedError, "may hold secrets"),
        (["../victim"], InvalidArgumentsError, "not in the repository"),
        (["big.bin"], FileUnavailableError, "filter"),
        (
            ["a.txt", "never.txt", "*.txt", "--all", ".git/config"],
            InvalidArgumentsError,
            r"nothing to commit in never.txt, \*.txt, --all, .git/config:",
        ),
        ([], InvalidArgumentsError, "git_commit"),
    ):
        with pytest.raises(error, match=words):
            prepared(COMMIT, at_work, message="m", paths=paths)
    git(at_work.folder, "checkout", "-q", "a.txt")
    with pytest.raises(InvalidArgumentsError, match=r"nothing to commit in a.txt"):
        prepared(COMMIT, at_work, message="m", paths=["a.txt", "new.txt"])
    with pytest.raises(InvalidArgumentsError, match="message is empty"):
        prepared(COMMIT, at_work, message=" \n", paths=["new.txt"])


def test_the_first_commit_of_all(tmp_path: Path) -> None:
    place = workplace(tmp_path)
    git(place.folder, "init", "-q")
    (place.folder / "a.txt").write_text("a\n")
    (place.folder / "b.txt").write_text("b\n")
    git(place.folder, "add", "b.txt")
    assert "on main" in call(COMMIT, place, message="first", paths=["a.txt"]).text
    assert git(place.folder, "status", "--porcelain") == "A  b.txt\n"
    assert git(place.folder, "ls-tree", "--name-only", "HEAD") == "a.txt\n"


def test_files_that_are_gone_and_links_are_committed(at_work: Workplace) -> None:
    (at_work.folder / "a.txt").unlink()
    (at_work.folder / "link").symlink_to("src/b.txt")
    (at_work.folder / "tool").write_text("#!/bin/sh\n")
    (at_work.folder / "tool").chmod(0o755)
    call(COMMIT, at_work, message="m", paths=["a.txt", "link", "tool"])
    raw = git(at_work.folder, "diff-tree", "-r", "--no-commit-id", "HEAD").splitlines()
    assert [(line.split()[1], line.split()[4], line.split("\t")[1]) for line in raw] == [
        ("000000", "D", "a.txt"),
        ("120000", "A", "link"),
        ("100755", "A", "tool"),
    ]


def test_odd_names_as_the_status_writes_them_and_odd_messages_are_kept_as_they_are(at_work: Workplace) -> None:
    odd = (os.fsdecode(b'r\xe9sum\xe9 "x".txt'), "per%E9cent.txt", "-dash.txt", ":(glob)*.txt")
    for name in odd:
        (at_work.folder / name).write_text("x\n")
    message = "-m #1 'quoted' \"x\"\n\n# no comment\n--amend"
    call(COMMIT, at_work, message=message, paths=['r%E9sum%E9 "x".txt', *odd[1:]])
    assert git(at_work.folder, "log", "-1", "--format=%B").rstrip("\n") == message
    assert (
        git(at_work.folder, "ls-tree", "-z", "--name-only", "HEAD").split("\0")[:4]
        == sorted([*odd, "a.txt"], key=os.fsencode)[:4]
    )
    assert git(at_work.folder, "status", "--porcelain", "--", "*sum*") == ""


def test_without_a_name_a_person_is_told_how_to_give_one(tmp_path: Path) -> None:
    folder = repository(tmp_path)
    person = tmp_path / "nobody"
    person.mkdir()
    place = at_home(workplace(tmp_path), person)
    with pytest.raises(FileUnavailableError) as unknown:
        prepared(COMMIT, place, message="m", paths=["a.txt"])
    assert "git config --global user.name" in unknown.value.hint
    git(folder, "config", "user.name", "Work")
    git(folder, "config", "user.email", "work@example.com")
    assert (
        "author: Work <work@example.com> (from .git/config)"
        in prepared(COMMIT, place, message="m", paths=["a.txt"]).detail
    )
    (person / ".gitconfig").write_text(f'[includeIf "gitdir:{folder}/"]\n\tpath = more\n')
    (person / "more").write_text("[user]\n\tname = Anna\n\temail = a@example.com\n")
    git(folder, "config", "--unset", "user.email")
    assert "author: Work <a@example.com>" in prepared(COMMIT, place, message="m", paths=["a.txt"]).detail


def test_hooks_that_are_not_run_are_named(at_work: Workplace) -> None:
    hooks = at_work.folder / ".husky"
    hooks.mkdir()
    for name in ("pre-commit", "commit-msg"):
        (hooks / name).write_text("#!/bin/sh\nexit 1\n")
        (hooks / name).chmod(0o755)
    git(at_work.folder, "config", "core.hooksPath", ".husky")
    plan = prepared(COMMIT, at_work, message="m", paths=["a.txt"])
    assert "not run: the repository's hooks pre-commit, commit-msg" in plan.detail
    hooks.rename(Path(at_work.environment["HOME"], "hooks"))
    git(at_work.folder, "config", "core.hooksPath", "~/hooks")
    assert "hooks pre-commit, commit-msg" in prepared(COMMIT, at_work, message="m", paths=["a.txt"]).detail
    config = at_work.folder / ".git" / "config"
    config.write_text(config.read_text().replace("~/hooks", "~nobody-of-that-name/hooks"))
    with pytest.raises(FileUnavailableError, match="failed to expand user dir"):
        prepared(COMMIT, at_work, message="m", paths=["a.txt"])


def test_an_unfinished_merge_and_a_held_index_are_told(at_work: Workplace) -> None:
    folder = at_work.folder
    plan = prepared(COMMIT, at_work, message="m", paths=["a.txt"])
    (folder / ".git" / "index.lock").touch()
    before = git(folder, "rev-parse", "HEAD")
    with pytest.raises(FileUnavailableError, match=r"index\.lock"):
        carried_out(COMMIT, plan, at_work)
    assert git(folder, "rev-parse", "HEAD") == before
    (folder / ".git" / "index.lock").unlink()
    git(folder, "stash", "-q")
    git(folder, "checkout", "-q", "-b", "side", "HEAD~1")
    (folder / "a.txt").write_text("side\n")
    git(folder, "commit", "-qam", "side")
    git(folder, "checkout", "-q", "main")
    (folder / "a.txt").write_text("main\n")
    git(folder, "commit", "-qam", "main")
    git(folder, "merge", "-q", "side", code=1)
    with pytest.raises(FileUnavailableError, match="a merge is not finished"):
        prepared(COMMIT, at_work, message="m", paths=["a.txt"])
    (folder / ".git" / "MERGE_HEAD").unlink()
    with pytest.raises(FileUnavailableError, match="conflicts"):
        prepared(COMMIT, at_work, message="m", paths=["a.txt"])
