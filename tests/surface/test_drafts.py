"""What is typed and not sent survives its process, and nobody takes what belongs to a living one."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rune.errors import RuneError, StorageUnavailableError
from rune.surface.drafts import DraftBook, LeftDraft

FOLDER = "/home/ada/poems"

# Keeps a text, says so, and waits to be killed.
TYPES = """
import sys
from pathlib import Path
from rune.surface.drafts import DraftBook
file = DraftBook(Path(sys.argv[1])).open(sys.argv[2])
file.save({"task": sys.argv[3]}, {"chat": ["and this"]})
print("kept", flush=True)
sys.stdin.read()
"""
# Takes what was left, says how many, and ends without discarding it.
TAKES = """
import sys
from pathlib import Path
from rune.surface.drafts import DraftBook
left = DraftBook(Path(sys.argv[1])).left_behind(sys.argv[2])
print(sum(draft.take() for draft in left), flush=True)
sys.stdin.read()
"""


def start(script: str, state: Path, *more: str) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(state), FOLDER, *more], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    return process


def first_line(process: "subprocess.Popen[bytes]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().decode().strip()


def kill(process: "subprocess.Popen[bytes]") -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()


def leave(state: Path, text: str = "half a sentence") -> None:
    """Leave a text as a killed process does: its lock is free, its file is there."""
    process = start(TYPES, state, text)
    assert first_line(process) == "kept"
    kill(process)


def left(state: Path, folder: str = FOLDER) -> tuple[LeftDraft, ...]:
    return DraftBook(state).left_behind(folder)


def names(state: Path) -> list[str]:
    return sorted(path.name for path in (state / "drafts").iterdir())


def test_what_a_killed_process_had_typed_is_found_and_what_a_living_one_has_is_not(tmp_path: Path) -> None:
    process = start(TYPES, tmp_path, "half a sentence")
    try:
        assert first_line(process) == "kept"
        assert left(tmp_path) == ()
    finally:
        kill(process)
    (draft,) = left(tmp_path)
    assert draft.prompts == {"task": "half a sentence"}
    assert draft.waiting == {"chat": ["and this"]}
    assert draft.saved_at.endswith("Z")
    assert left(tmp_path, "/elsewhere") == ()


def test_what_is_taken_is_nobody_else_s_and_is_not_lost_with_its_taker(tmp_path: Path) -> None:
    leave(tmp_path)
    process = start(TAKES, tmp_path)
    try:
        (draft,) = left(tmp_path) or (None,)
        assert first_line(process) == "1"
        assert left(tmp_path) == ()
        assert draft is None or not draft.take()
    finally:
        kill(process)
    (again,) = left(tmp_path)
    assert again.take()
    assert again.take()
    assert again.discard()
    assert left(tmp_path) == ()
    assert names(tmp_path) == ["lock"]


def test_of_two_who_saw_the_same_text_the_first_taker_has_it(tmp_path: Path) -> None:
    leave(tmp_path)
    (one,), (two,) = left(tmp_path), left(tmp_path)
    assert one.take()
    assert not two.take()
    assert not two.discard()
    assert one.discard()
    assert not two.take()


def test_an_ordinary_end_leaves_what_is_unsent_and_nothing_else(tmp_path: Path) -> None:
    book = DraftBook(tmp_path)
    empty, full = book.open(FOLDER), book.open(FOLDER)
    full.save({"task": "more to say", "chat": "  "}, {"task": []})
    empty.save({"task": " \n"}, {})
    assert full.unsent
    assert not empty.unsent
    empty.close()
    full.close()
    full.close()
    (draft,) = left(tmp_path)
    assert draft.prompts == {"task": "more to say"}
    assert draft.waiting == {}
    assert draft.discard()
    assert names(tmp_path) == ["lock"]


def test_what_was_sent_is_removed(tmp_path: Path) -> None:
    file = DraftBook(tmp_path).open(FOLDER)
    file.save({"task": "more to say"}, {"task": ["waiting"]})
    file.save({}, {"task": []})
    file.close()
    assert left(tmp_path) == ()
    assert names(tmp_path) == ["lock"]


def test_the_files_are_private(tmp_path: Path) -> None:
    file = DraftBook(tmp_path).open(FOLDER)
    file.save({"task": "x"}, {})
    assert (tmp_path / "drafts").stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "drafts").iterdir()} == {0o600}
    file.close()


def test_any_text_can_be_kept(tmp_path: Path) -> None:
    file = DraftBook(tmp_path).open(FOLDER)
    file.save({"task": "a\udcff\x00\u2028\U0001f30a"}, {"chat": ["\ud800"]})
    file.close()
    (draft,) = left(tmp_path)
    assert draft.prompts == {"task": "a\ufffd\x00\u2028\U0001f30a"}
    assert draft.waiting == {"chat": ["\ufffd"]}


def test_the_oldest_comes_first(tmp_path: Path) -> None:
    for number, text in enumerate(["first", "second", "third"]):
        leave(tmp_path, text)
        for path in (tmp_path / "drafts").glob("*.json"):
            if text.encode() in path.read_bytes():
                os.utime(path, (number, number))
    assert [draft.prompts["task"] for draft in left(tmp_path)] == ["first", "second", "third"]


@pytest.mark.parametrize("damage", [b"{", b"", b'{"version": 1, "folder": 3}', b'{"version": 1, "prompts": {"x": ""}}'])
def test_a_damaged_file_is_reported_once_and_kept(damage: bytes, tmp_path: Path) -> None:
    leave(tmp_path)
    (path,) = (tmp_path / "drafts").glob("*.json")
    path.write_bytes(damage)
    told: list[RuneError] = []
    book = DraftBook(tmp_path, report=told.append)
    assert book.left_behind(FOLDER) == ()
    assert book.left_behind(FOLDER) == ()
    aside = path.with_suffix(".damaged")
    assert [str(aside) in error.message for error in told] == [True]
    assert aside.read_bytes() == damage


def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    leave(tmp_path)
    (path,) = (tmp_path / "drafts").glob("*.json")
    path.write_bytes(b'{"version": 2, "prompts": "otherwise"}')
    told: list[RuneError] = []
    assert DraftBook(tmp_path, report=told.append).left_behind(FOLDER) == ()
    assert "newer" in told[0].message
    assert path.exists()


def test_what_killed_processes_left_beside_their_texts_is_tidied_up(tmp_path: Path) -> None:
    leave(tmp_path)
    drafts = tmp_path / "drafts"
    (drafts / "12-ab.lock").touch()
    (drafts / ".12-ab.json.cd.tmp").touch()
    kept = sorted(path.name for path in drafts.iterdir() if "12-ab" not in path.name)
    DraftBook(tmp_path).open(FOLDER).close()
    assert names(tmp_path) == kept
    assert len(left(tmp_path)) == 1


def test_a_place_that_cannot_be_written_is_said_clearly(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file stands here")
    book = DraftBook(tmp_path / "state")
    with pytest.raises(StorageUnavailableError, match="cannot keep what is typed"):
        book.open(FOLDER)
    with pytest.raises(StorageUnavailableError, match="what was typed before"):
        book.left_behind(FOLDER)


def test_a_text_that_cannot_be_kept_leaves_the_one_before(tmp_path: Path) -> None:
    file = DraftBook(tmp_path).open(FOLDER)
    file.save({"task": "before"}, {})
    (drafts,) = tmp_path.glob("drafts")
    moved = drafts.rename(tmp_path / "away")
    with pytest.raises(StorageUnavailableError, match="what is typed cannot be kept") as refused:
        file.save({"task": "after"}, {})
    assert refused.value.hint
    moved.rename(drafts)
    file.close()
    (draft,) = left(tmp_path)
    assert draft.prompts == {"task": "before"}


def test_closed_drafts_take_nothing_any_more(tmp_path: Path) -> None:
    file = DraftBook(tmp_path).open(FOLDER)
    file.close()
    with pytest.raises(ValueError, match="closed"):
        file.save({"task": "x"}, {})
