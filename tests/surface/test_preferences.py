"""What a person chose in the app is kept, whatever else stands in the file."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rune.errors import RuneError, StorageError
from rune.surface.preferences import Preferences


def test_a_theme_is_kept_for_the_next_start(tmp_path: Path) -> None:
    assert Preferences(tmp_path).theme == ""
    Preferences(tmp_path).theme = "rune-dark"
    assert Preferences(tmp_path).theme == "rune-dark"
    assert (tmp_path / "app.json").stat().st_mode & 0o777 == 0o600


def test_what_other_versions_keep_stays(tmp_path: Path) -> None:
    (tmp_path / "app.json").write_text('{"panel": {"open": true}, "theme": "old"}')
    Preferences(tmp_path).theme = "new"
    assert json.loads((tmp_path / "app.json").read_text()) == {"panel": {"open": True}, "theme": "new"}


@pytest.mark.parametrize("text", ["[1]", "{", "\xff"])
def test_a_damaged_file_is_reported_and_never_written_over(text: str, tmp_path: Path) -> None:
    (tmp_path / "app.json").write_bytes(text.encode("latin-1"))
    told: list[RuneError] = []
    preferences = Preferences(tmp_path, report=told.append)
    assert preferences.theme == ""
    assert "app.json" in told[0].message
    with pytest.raises(StorageError) as refused:
        preferences.theme = "new"
    assert refused.value.hint
    assert (tmp_path / "app.json").read_bytes() == text.encode("latin-1")


def test_a_theme_that_is_no_text_counts_as_none(tmp_path: Path) -> None:
    (tmp_path / "app.json").write_text('{"theme": 3}')
    assert Preferences(tmp_path).theme == ""


def test_a_place_that_cannot_be_written_is_said_clearly(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file stands here")
    with pytest.raises(StorageError, match="theme cannot be kept"):
        Preferences(tmp_path / "state").theme = "new"


def test_several_who_choose_at_once_leave_a_whole_file(tmp_path: Path) -> None:
    def choose(number: int) -> None:
        Preferences(tmp_path).theme = f"theme {number}"

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(choose, range(40)))
    assert Preferences(tmp_path).theme.startswith("theme ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["app.json", "app.lock"]


def test_a_no_is_kept_by_folder_and_for_just_these_files(tmp_path: Path) -> None:
    assert Preferences(tmp_path).declined("/projects/shop") == ""
    Preferences(tmp_path).decline("/projects/shop", "sha256:aa")
    Preferences(tmp_path).decline("/projects/bank", "sha256:bb")
    Preferences(tmp_path).decline("/projects/shop", "sha256:cc")
    Preferences(tmp_path).theme = "rune-light"
    assert Preferences(tmp_path).declined("/projects/shop") == "sha256:cc"
    assert Preferences(tmp_path).declined("/projects/bank") == "sha256:bb"
    assert Preferences(tmp_path).declined("/projects") == ""


def test_of_very_many_folders_the_newest_are_kept(tmp_path: Path) -> None:
    many = {f"/projects/{number}": "sha256:aa" for number in range(1000)}
    (tmp_path / "app.json").write_text(json.dumps({"declined": many}))
    preferences = Preferences(tmp_path)
    preferences.decline("/projects/0", "sha256:bb")
    preferences.decline("/projects/new", "sha256:cc")
    assert [preferences.declined(f"/projects/{name}") for name in ("0", "1", "2", "new")] == [
        "sha256:bb",
        "",
        "sha256:aa",
        "sha256:cc",
    ]


@pytest.mark.parametrize("declined", ["[1]", "3", '{"/projects/shop": 3}'])
def test_what_is_no_digest_counts_as_none(declined: str, tmp_path: Path) -> None:
    (tmp_path / "app.json").write_text(f'{{"declined": {declined}}}')
    assert Preferences(tmp_path).declined("/projects/shop") == ""
    Preferences(tmp_path).decline("/projects/shop", "sha256:aa")
    assert Preferences(tmp_path).declined("/projects/shop") == "sha256:aa"


def test_a_folder_that_is_no_text_can_be_declined_too(tmp_path: Path) -> None:
    Preferences(tmp_path).decline("/projects/\udcff", "sha256:aa")
    assert Preferences(tmp_path).declined("/projects/\udcff") == "sha256:aa"


def test_a_no_that_cannot_be_kept_is_said_and_a_damaged_file_counts_as_none(tmp_path: Path) -> None:
    (tmp_path / "app.json").write_text("{")
    told: list[RuneError] = []
    preferences = Preferences(tmp_path, report=told.append)
    assert preferences.declined("/projects/shop") == ""
    assert told
    with pytest.raises(StorageError):
        preferences.decline("/projects/shop", "sha256:aa")
