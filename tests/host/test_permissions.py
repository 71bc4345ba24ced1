"""What others may look into is found and closed; what a person put there is left alone."""

from pathlib import Path

import pytest

from rune.host.paths import Home, prepare
from rune.host.permissions import open_places, tighten


@pytest.fixture
def home(tmp_path: Path) -> Home:
    top = tmp_path / "home"
    made = Home(config_dir=top, data_dir=top, state_dir=top)
    prepare(made)
    return made


def test_a_home_that_rune_made_is_closed(home: Home) -> None:
    (home.journal / "w000-000001.jsonl").touch(0o600)
    assert open_places(home) == ()


def test_open_files_and_folders_are_found_with_what_they_should_have(home: Home) -> None:
    home.data_dir.chmod(0o755)
    segment = home.journal / "w000-000001.jsonl"
    segment.touch(0o640)
    blob = home.evidence / "ab" / "cd"
    blob.parent.mkdir(mode=0o700)
    blob.touch(0o604)
    found = {place.path: (place.mode, place.wanted) for place in open_places(home)}
    assert found == {home.data_dir: (0o755, 0o700), segment: (0o640, 0o600), blob: (0o604, 0o600)}
    for place in open_places(home):
        tighten(place)
    assert open_places(home) == ()
    assert segment.stat().st_mode & 0o777 == 0o600


def test_what_a_person_put_there_and_what_links_lead_to_is_left_alone(home: Home, tmp_path: Path) -> None:
    home.config_file.touch(0o644)
    (home.models / "small.gguf").touch(0o644)
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o755)
    (outside / "file").touch(0o644)
    (home.state / "link").symlink_to(outside)
    assert open_places(home) == ()


def test_a_link_that_took_the_place_meanwhile_is_not_followed(home: Home, tmp_path: Path) -> None:
    segment = home.journal / "w000-000001.jsonl"
    segment.touch(0o644)
    (place,) = open_places(home)
    outside = tmp_path / "outside"
    outside.touch(0o644)
    segment.unlink()
    segment.symlink_to(outside)
    with pytest.raises(OSError, match="symbolic link"):
        tighten(place)
    assert outside.stat().st_mode & 0o777 == 0o644
