"""State that somebody damaged: said, passed over, kept; the app opens all the same."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rune.errors import RuneError, StorageError
from rune.surface.drafts import DraftBook
from rune.surface.preferences import Preferences
from rune.surface.prompt_history import ENTRIES, PromptHistory

DEEP = b'{"version":1,"folder":"/p","prompts":{},"x":' + b"[" * 200_000


@pytest.fixture
def state(tmp_path: Path) -> Path:
    (tmp_path / "drafts").mkdir(mode=0o700)
    return tmp_path


def left(state: Path, text: str) -> None:
    """Leave a text behind as a process does that is killed."""
    file = DraftBook(state).open("/p")
    file.save({"task": text}, {})
    kept = next((state / "drafts").glob("*.json")).read_bytes()
    file.save({}, {})
    file.close()
    (state / "drafts" / "1-left.json").write_bytes(kept)


def test_a_draft_that_is_nested_without_end_is_set_aside(state: Path) -> None:
    left(state, "mine")
    (state / "drafts" / "2-deep.json").write_bytes(DEEP)
    said: list[RuneError] = []
    (found,) = DraftBook(state, report=said.append).left_behind("/p")
    assert found.prompts == {"task": "mine"}
    assert len(said) == 1
    assert (state / "drafts" / "2-deep.damaged").read_bytes() == DEEP


def a_link(path: Path) -> None:
    path.symlink_to("/etc/hostname")


@pytest.mark.parametrize("make", [os.mkfifo, a_link, Path.mkdir])
def test_what_is_no_lock_file_neither_blocks_nor_hides_the_others(state: Path, make: Callable[[Path], None]) -> None:
    left(state, "mine")
    (state / "drafts" / "3-odd.json").write_bytes((state / "drafts" / "1-left.json").read_bytes())
    make(state / "drafts" / "3-odd.lock")
    found = DraftBook(state, report=lambda _: None).left_behind("/p")
    assert [draft.prompts for draft in found][:1] == [{"task": "mine"}]
    DraftBook(state).open("/p").close()


def test_history_that_is_nested_without_end_counts_as_damaged(state: Path) -> None:
    history = PromptHistory(state)
    history.add("/p", "one")
    with (state / "prompt_history").open("ab") as file:
        file.write(DEEP + b"\n")
    remembered = history.load("/p")
    assert [entry.text for entry in remembered.entries] == ["one"]
    assert remembered.damaged == 1


def test_history_of_millions_of_odd_lines_is_read_in_a_moment(state: Path) -> None:
    (state / "prompt_history").write_bytes(b"x\n" * 1_000_000)
    assert PromptHistory(state).load("/p").damaged <= 4 * ENTRIES


def test_preferences_that_are_nested_without_end_are_as_good_as_none(state: Path) -> None:
    (state / "app.json").write_bytes(DEEP)
    said: list[RuneError] = []
    preferences = Preferences(state, report=said.append)
    assert preferences.theme == ""
    assert len(said) == 1
    with pytest.raises(StorageError):
        preferences.theme = "rune-light"
    assert (state / "app.json").read_bytes() == DEEP
