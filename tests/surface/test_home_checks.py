"""What `rune doctor` says of the places of a home."""

from pathlib import Path

import pytest

from rune.config.settings import RetentionSettings
from rune.host.paths import Home, prepare
from rune.store.leases import LeaseBook
from rune.store.mending.backups import Backup, Schemas
from rune.surface import home_checks
from rune.surface.local_times import on_the_clock
from rune.surface.sizes import counted, size_text
from tests.fakes.clock import CountedClock
from tests.store.builders import CONVERSATION, TIME

NOW = CountedClock().now_ms()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    top = tmp_path / "home"
    return Home(config_dir=top, data_dir=top, state_dir=top)


def test_a_home_that_is_not_there_is_not_made(home: Home) -> None:
    for finding in (home_checks.places(home), home_checks.permissions(home), home_checks.locks(home)):
        assert finding.state == "ok"
    assert not home.data_dir.exists()


def test_open_places_come_with_the_command_that_closes_them(home: Home) -> None:
    prepare(home)
    home.data_dir.chmod(0o750)
    finding = home_checks.permissions(home)
    assert (finding.state, finding.counts) == ("warning", {"open": 1})
    assert finding.lines == (f"mode 0750: chmod 0700 {home.data_dir}",)
    assert finding.mend == "That command closes it, and so does `rune doctor --mend`."


def test_a_path_with_blanks_is_quoted_for_the_shell(tmp_path: Path) -> None:
    top = tmp_path / "my home"
    home = Home(config_dir=top, data_dir=top, state_dir=top)
    prepare(home)
    top.chmod(0o755)
    assert home_checks.permissions(home).lines == (f"mode 0755: chmod 0700 '{top}'",)


def test_held_conversations_are_told_and_stale_notes_are_no_problem(home: Home) -> None:
    prepare(home)
    book = LeaseBook(home.leases, CountedClock())
    (home.leases / f"{CONVERSATION[:-1]}2.lock").write_text("left behind")
    with book.take(CONVERSATION):
        finding = home_checks.leases(home, book, NOW)
    assert (finding.state, finding.counts) == ("ok", {"held": 1})
    assert finding.lines[0].startswith(f"{CONVERSATION}: process ")
    assert home_checks.leases(home, book, NOW).detail == "no conversation is open"


def test_more_undo_than_there_may_be_is_a_warning() -> None:
    sizes = {"undo": (2, 3_000_000), "logs": (1, 10), "traces": (0, 0)}
    assert home_checks.retention(sizes, RetentionSettings(undo_megabytes=1)).state == "warning"
    finding = home_checks.retention(sizes, RetentionSettings())
    assert (finding.state, finding.lines[0]) == ("ok", "undo: 2 files, 3.0 MB")


def test_backups_are_listed_and_what_was_cut_off_is_said() -> None:
    by = Schemas(journal=1, views=2, rune="0.2.0")
    backup = Backup(folder="/b/1", made=TIME, written_by=by, files=4, bytes=20_000)
    finding = home_checks.backups([backup], 1, NOW)
    assert finding.lines == (f"/b/1: written by 0.2.0, made {on_the_clock(TIME, NOW)}, 4 files, 20.0 kB",)
    assert finding.state == "warning"
    assert home_checks.backups([], 0, NOW).state == "ok"


def test_times_are_those_of_the_persons_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    import time

    time.tzset()
    try:
        assert on_the_clock("2026-11-30T14:00:00.000Z", NOW) == "03:00"
        assert on_the_clock("2026-11-29T14:00:00.000Z", NOW) == "2026-11-30 03:00"
        assert on_the_clock("", NOW) == ""
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (1, "1 byte"), (9_999, "9,999 bytes"), (12_345, "12.3 kB"), (5 * 10**9, "5.0 GB")],
)
def test_sizes_read_as_a_person_says_them(size: int, text: str) -> None:
    assert size_text(size) == text
    assert counted(2, "body", "bodies") == "2 bodies"
