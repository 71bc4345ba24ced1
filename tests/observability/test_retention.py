"""Logs of slots that nobody writes go by age; those of a running one, and everything else, stay."""

import os
from pathlib import Path

import pytest

from rune.config.settings import RetentionSettings
from rune.errors import StorageUnavailableError
from rune.host.files import lock_file
from rune.host.paths import Home, prepare
from rune.observability.retention import MEGABYTE, Retention
from tests.fakes.clock import CountedClock

DAY = 24 * 60 * 60


class Kept:
    """A home, its retention, and what that reported."""

    def __init__(self, top: Path) -> None:
        self.home = Home(config_dir=top, data_dir=top, state_dir=top)
        prepare(self.home)
        self.clock = CountedClock()
        self.reports: list[tuple[str, StorageUnavailableError]] = []

    def retention(self, **settings: int) -> Retention:
        return Retention(
            self.home, RetentionSettings(**settings), self.clock, lambda name, error: self.reports.append((name, error))
        )

    def put(self, path: Path, days_old: float, size: int = 1) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
        seconds = self.clock.now_ms() / 1000 - days_old * DAY
        os.utime(path, (seconds, seconds))
        return path


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path / "home")


def test_old_logs_and_traces_of_slots_that_do_not_run_go(kept: Kept) -> None:
    logs, state = kept.home.logs, kept.home.state
    old = [
        kept.put(logs / "w001.log", 91),
        kept.put(logs / "w001.log.2", 91),
        kept.put(logs / "reader.log", 91),
        kept.put(state / "inference_traces-w001.jsonl.1", 91),
    ]
    stay = [
        kept.put(logs / "w002.log", 89),
        kept.put(state / "device.json", 999),
        kept.put(state / "prompt_history", 999),
        kept.put(logs / "notes.txt", 999),
        kept.put(kept.home.journal / "w001-000001.jsonl", 999),
    ]
    kept.retention().sweep()
    assert [path.exists() for path in old] == [False] * 4
    assert [path.exists() for path in stay] == [True] * 5
    assert kept.reports == []


def test_logs_of_a_slot_that_runs_stay_however_old(kept: Kept) -> None:
    log = kept.put(kept.home.logs / "w000.log", 400)
    lock = lock_file(kept.home.journal / "w000.lock")
    assert lock is not None
    with lock:
        kept.retention().sweep()
        assert log.exists()
    kept.retention().sweep()
    assert not log.exists()


def test_pieces_beyond_those_that_are_kept_go_at_once(kept: Kept) -> None:
    second, third = kept.put(kept.home.logs / "w000.log.1", 0), kept.put(kept.home.logs / "w000.log.2", 0)
    kept.retention(log_pieces=2).sweep()
    assert (second.exists(), third.exists()) == (True, False)


def test_undo_goes_by_age_and_by_size(kept: Kept) -> None:
    undo = kept.home.undo
    kept.put(undo / "project" / "1-old", 31)
    kept.put(undo / "project" / "2-first", 2, size=MEGABYTE)
    kept.put(undo / "project" / "3-second", 1, size=MEGABYTE)
    kept.retention(undo_megabytes=1).sweep()
    assert [path.name for path in undo.rglob("?-*")] == ["3-second"]
    assert kept.retention().sizes()["undo"] == (1, MEGABYTE)


def test_a_log_that_cannot_be_removed_is_reported_once_and_the_others_go(kept: Kept) -> None:
    (kept.home.logs / "w001.log").mkdir()
    seconds = kept.clock.now_ms() / 1000 - 100 * DAY
    os.utime(kept.home.logs / "w001.log", (seconds, seconds))
    other = kept.put(kept.home.logs / "w002.log", 91)
    kept.retention().sweep()
    assert not other.exists()
    ((subsystem, error),) = kept.reports
    assert subsystem == "log"
    assert "w001.log" in error.message
    assert error.hint


def test_nothing_goes_once_it_was_stopped(kept: Kept) -> None:
    log, undo = kept.put(kept.home.logs / "w001.log", 91), kept.put(kept.home.undo / "a", 91)
    retention = kept.retention()
    retention.stop()
    retention.sweep()
    assert log.exists()
    assert undo.exists()
