"""What was damaged and is in order again is remembered beside what failed."""

import pytest

from rune.observability.health import RECOVERIES_KEPT, Recovery, SubsystemHealthRegistry
from tests.fakes.clock import CountedClock


def test_a_recovery_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    registry = SubsystemHealthRegistry(CountedClock(), None)
    with caplog.at_level("INFO"):
        registry.record_recovery("journal", "a torn tail of 120 bytes was cut off")
    (row,) = registry.snapshot()
    assert (row.subsystem, row.failures, row.last_error) == ("journal", 0, "")
    assert row.healthy_since is not None
    assert row.recovered == (Recovery(what="a torn tail of 120 bytes was cut off", at="2026-11-30T14:00:00.000Z"),)
    assert "recovered journal: a torn tail" in caplog.text


def test_recoveries_and_failures_of_one_part_are_kept_side_by_side() -> None:
    clock = CountedClock()
    registry = SubsystemHealthRegistry(clock, None)
    registry.record_failure("views", OSError("gone"), 2)
    registry.record_recovery("views", "made anew")
    clock.advance(1)
    registry.record_failure("views", OSError("gone again"), 1)
    (row,) = registry.snapshot()
    assert (row.failures, row.tier, row.last_error, row.healthy_since) == (2, 1, "OSError: gone again", None)
    assert [fact.what for fact in row.recovered] == ["made anew"]


def test_after_a_recovery_a_failure_is_still_told() -> None:
    registry = SubsystemHealthRegistry(CountedClock(), None)
    registry.record_recovery("views", "made anew")
    assert registry.record_failure("views", OSError("gone"), 1)


def test_only_the_newest_are_kept() -> None:
    registry = SubsystemHealthRegistry(CountedClock(), None)
    for number in range(RECOVERIES_KEPT + 3):
        registry.record_recovery("turns", str(number))
    (row,) = registry.snapshot()
    assert [fact.what for fact in row.recovered] == [str(number) for number in range(3, RECOVERIES_KEPT + 3)]


def test_secrets_are_masked_in_what_was_recovered() -> None:
    registry = SubsystemHealthRegistry(CountedClock(), None, masker=lambda text: text.replace("hunter2", "***"))
    registry.record_recovery("journal", "cut off hunter2")
    assert registry.snapshot()[0].recovered[0].what == "cut off ***"
