"""What the tools that only look say about ordinary repositories, and what they take for a name."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rune.errors import AccessDeniedError, FileUnavailableError, InvalidArgumentsError
from rune.tools.workplace import Workplace
from tests.tools.executors import places
from tests.tools.git.repositories import DIFF, LOG, SHOW, STATUS, call, git, kept, repository, workplace


@pytest.fixture(scope="module")
def at_work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workplace]:
    """Make a repository with a change of every kind; nothing here changes it."""
    base = tmp_path_factory.mktemp("looking")
    folder = repository(base)
    (folder / "gone.txt").write_text("g\n")
    (folder / "old.txt").write_text("one line\nanother\nand a third\n")
    (folder / "crlf.txt").write_bytes(b"x\r\ny\r\n")
    (folder / "mixed.txt").write_bytes(b"x\ny\n")
    (folder / "pic.bin").write_bytes(bytes(range(256)))
    (folder / ".env").write_text("TOKEN=canary-7f3a\n")
    (folder / "latin.txt").write_bytes(b"caf\xe9\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "third \x1b[31m red")
    git(folder, "mv", "old.txt", "new.txt")
    git(folder, "mv", ".env", "plain.txt")
    (folder / "gone.txt").unlink()
    (folder / "crlf.txt").write_bytes(b"x\r\nz\r\n")
    (folder / "mixed.txt").write_bytes(b"x\r\ny\n")
    (folder / "pic.bin").write_bytes(bytes(range(255)))
    (folder / ".env").write_text("TOKEN=canary-8888\n")
    (folder / "latin.txt").write_bytes(b"caf\xe8\n")
    (folder / 'quo"te\nline.txt').write_text("q\n")
    (folder / os.fsdecode(b"r\xe9sum\xe9.txt")).write_text("r\n")
    (folder / "touched").mkdir()
    yield workplace(base)


def test_the_status_names_each_change_by_its_kind(at_work: Workplace) -> None:
    done = call(STATUS, at_work)
    assert done.text.startswith("On main.")
    for line in (
        "Staged (2):",
        "  R new.txt (was old.txt)",
        "Changed, not staged (5):",
        "  D gone.txt",
        "Untracked (3):",
        "  ? r%E9sum%E9.txt",
        '  ? quo"te\\nline.txt',
    ):
        assert line in done.text.splitlines()


def test_a_difference_shows_line_ends_where_they_change_and_only_there(at_work: Workplace) -> None:
    text = call(DIFF, at_work).text
    assert "\n-y\n+z" in text.partition("crlf.txt")[2]
    assert "\n-x\n+x\\r\n" in text.partition("mixed.txt")[2]
    assert "Binary files a/pic.bin and b/pic.bin differ" in text
    assert "-caf\ufffd" in text


def test_what_may_hold_secrets_is_named_and_never_shown_not_even_under_another_name(at_work: Workplace) -> None:
    staged = call(DIFF, at_work, staged=True).text
    assert "not shown because they may hold secrets: plain.txt, .env" in staged
    assert "similarity index 100%" in staged
    seen = [staged, call(SHOW, at_work, commit="HEAD").text, call(DIFF, at_work, commit="HEAD").text]
    assert not any("canary" in text for text in seen)
    with pytest.raises(AccessDeniedError, match="may hold secrets"):
        call(DIFF, at_work, path=".env")
    with pytest.raises(AccessDeniedError, match="may hold secrets"):
        call(LOG, at_work, path=".env")


def test_one_path_of_a_difference(at_work: Workplace) -> None:
    text = call(DIFF, at_work, path="./crlf.txt/").text
    assert text.count("diff --git") == 1
    assert call(DIFF, at_work, path=str(at_work.folder / "gone.txt")).text.endswith("-g")
    assert call(DIFF, at_work, path="*").text.startswith("No difference")  # a name, no pattern


def test_a_path_that_leads_out_is_refused(at_work: Workplace) -> None:
    with pytest.raises(InvalidArgumentsError, match="is not in the repository"):
        call(DIFF, at_work, path="../home")


def test_the_last_commits(at_work: Workplace) -> None:
    done = call(LOG, at_work)
    first, *_, last = done.text.splitlines()
    assert "2026-01-02 Bert: third" in first
    assert "(HEAD -> main)" in first
    assert "\x1b" not in done.text
    assert last.endswith("Bert: first")
    assert done.summary == "3 commits"
    assert call(LOG, at_work, limit=1).summary == "1 commit"
    assert call(LOG, at_work, path="src").text.endswith("second: b")
    assert "No commit changed this path" in call(LOG, at_work, path="never").text


def test_one_commit(at_work: Workplace) -> None:
    text = call(SHOW, at_work, commit="HEAD~1").text
    assert "author Bert\n" in text
    assert "\nsecond: b\n" in text
    assert "+b" in text
    assert "+one" in call(SHOW, at_work, commit="HEAD~2").text  # the first of all
    assert call(SHOW, at_work, commit="HEAD~1", path="a.txt").text.endswith("It changes nothing here.")


def test_two_commits_are_compared(at_work: Workplace) -> None:
    assert "+b" in call(DIFF, at_work, commit="HEAD~2..HEAD~1").text
    assert call(DIFF, at_work, commit="HEAD..HEAD").text == "No difference."


@pytest.mark.parametrize(
    "name", ["--output=x.txt", "-p", "", "nowhere", "HEAD:a.txt", "HEAD..main", "a\nb", "main --all", "x" * 300]
)
def test_what_names_no_commit_is_told_so(at_work: Workplace, name: str) -> None:
    with pytest.raises(InvalidArgumentsError):
        call(SHOW, at_work, commit=name)


def test_a_look_writes_nothing(at_work: Workplace) -> None:
    folder = at_work.folder
    os.utime(folder / "a.txt", (1, 1))
    os.utime(folder / "src" / "b.txt", (1, 1))
    before = {path: path.stat().st_mtime_ns for path in (folder / ".git").rglob("*")}
    assert "b.txt" not in call(DIFF, at_work).text
    call(STATUS, at_work)
    assert {path: path.stat().st_mtime_ns for path in (folder / ".git").rglob("*")} == before


def test_a_folder_below_the_top_sees_the_whole_where_that_may_be_read(tmp_path: Path) -> None:
    repository(tmp_path, name="top")
    (tmp_path / "top" / "work").mkdir()
    place = workplace(tmp_path / "top")
    with pytest.raises(FileUnavailableError, match="not in a git repository that may be read"):
        call(STATUS, place)


def test_no_repository_and_no_git_are_told(tmp_path: Path) -> None:
    place = workplace(tmp_path)
    with pytest.raises(FileUnavailableError, match="is not in a git repository"):
        call(STATUS, place)
    git(place.folder, "init", "-q")
    place.environment = {**place.environment, "PATH": str(tmp_path)}
    with pytest.raises(Exception, match="git is not installed"):
        call(STATUS, place)


def test_a_git_that_is_too_old_is_told(tmp_path: Path) -> None:
    repository(tmp_path)
    place = workplace(tmp_path)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_text("#!/bin/sh\necho git version 2.30.2\n")
    (tmp_path / "bin" / "git").chmod(0o755)
    place.environment = {**place.environment, "PATH": f"{tmp_path / 'bin'}"}
    with pytest.raises(Exception, match=r"need git 2\.32 or later, and here is: git version 2\.30\.2"):
        call(STATUS, place)


def test_a_person_can_stop_it(tmp_path: Path) -> None:
    repository(tmp_path)
    place = workplace(tmp_path)

    async def stopped() -> str:
        stop = asyncio.Event()
        stop.set()
        return (await LOG.execute(await places.plan(LOG, place), place, places.watch(stop=stop))).outcome

    assert asyncio.run(stopped()) == "cancelled"


def test_a_long_difference_is_given_in_part_and_kept_whole(tmp_path: Path) -> None:
    folder = repository(tmp_path)
    (folder / "a.txt").write_text("".join(f"line {number}\n" for number in range(5_000)))
    place = workplace(tmp_path, secrets={"TOKEN": "line 4321"})
    done = call(DIFF, place)
    assert "more lines ...]" in done.text
    assert len(done.text) < 25_000
    whole = kept(place, done.output)
    assert "+line 4999" in whole
    assert "[secret:TOKEN]" in whole
