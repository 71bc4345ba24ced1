"""`retention:` in config.yaml."""

from pathlib import Path

import pytest

from rune.config.load import load_settings
from rune.config.settings import RetentionSettings
from rune.errors import ConfigError


def test_all_of_it_can_be_set(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        "retention: {undo_days: 1, undo_megabytes: 1000000, log_megabytes: 1000, log_pieces: 20, log_days: 3650}"
    )
    assert load_settings(file).retention == RetentionSettings(
        undo_days=1, undo_megabytes=1_000_000, log_megabytes=1000, log_pieces=20, log_days=3650
    )


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("undo_days", 0, "1 to 3650"),
        ("undo_days", 3651, "1 to 3650"),
        ("undo_megabytes", 0, "1 to 1000000"),
        ("log_megabytes", 1001, "1 to 1000"),
        ("log_pieces", 1, "2 to 20"),
        ("log_days", -1, "1 to 3650"),
    ],
)
def test_what_is_out_of_range_is_refused_with_what_is_allowed(
    tmp_path: Path, key: str, value: int, allowed: str
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(f"model: {{}}\nretention:\n  {key}: {value}\n")
    with pytest.raises(ConfigError) as refused:
        load_settings(file)
    assert (refused.value.line, refused.value.key) == (3, f"retention.{key}")
    assert f"allowed: {allowed}" in refused.value.message


def test_the_journal_has_no_age_at_which_it_goes(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("retention:\n  journal_days: 30\n")
    with pytest.raises(ConfigError, match=r"unknown key retention\.journal_days"):
        load_settings(file)
