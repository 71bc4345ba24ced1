"""Failures are counted, logged and offered once each, whatever is broken underneath."""

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from rune.observability.health import SubsystemHealth, SubsystemHealthRegistry, Tier
from rune.records.events import BackgroundFailed, CapabilityFailed, Event, check_event
from rune.records.record import Record
from tests.fakes.clock import CountedClock


class KeepingSink:
    """An EventSink that keeps what it is offered."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, Record, str]] = []

    def offer(self, event_type: str, body: Record, *, partition: str) -> None:
        self.notes.append((event_type, body, partition))


class BrokenSink:
    """An EventSink whose queue is broken."""

    def offer(self, event_type: str, body: Record, *, partition: str) -> None:
        raise RuntimeError("the queue is gone")


class BrokenClock:
    """A clock that fails."""

    def now_ms(self) -> int:
        raise OSError("no clock")

    def monotonic(self) -> float:
        raise OSError("no clock")


class UnshowableError(Exception):
    """An error whose text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class KeepingHandler(logging.Handler):
    """A log handler that keeps records, and fails when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []
        self.broken = False

    def emit(self, record: logging.LogRecord) -> None:
        if self.broken:
            raise OSError("the log is gone")
        self.records.append(record)


@pytest.fixture
def log() -> Iterator[KeepingHandler]:
    handler = KeepingHandler()
    logger = logging.getLogger("rune")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(before)


def test_nothing_failed_yet() -> None:
    assert SubsystemHealthRegistry(CountedClock(), None).snapshot() == ()


def test_a_failure_is_counted_with_what_where_and_when() -> None:
    clock = CountedClock()
    registry = SubsystemHealthRegistry(clock, None)
    registry.record_failure("memory", ValueError("first"), 2)
    clock.advance(1.5)
    registry.record_failure("memory", OSError(28, "No space left"), 1, "recall")
    assert registry.snapshot() == (
        SubsystemHealth(
            subsystem="memory",
            failures=2,
            tier=1,
            last_error="OSError: [Errno 28] No space left",
            context="recall",
            last_seen="2026-11-30T14:00:01.500Z",
            healthy_since=None,
        ),
    )


def test_subsystems_are_listed_by_name() -> None:
    registry = SubsystemHealthRegistry(CountedClock(), None)
    for name in ("views", "graph", "memory"):
        registry.record_failure(name, ValueError(), 2)
    assert [row.subsystem for row in registry.snapshot()] == ["graph", "memory", "views"]


@pytest.mark.parametrize("tier", [0, 1])
def test_the_person_is_told_of_the_first_failure_of_a_subsystem_only(tier: Tier) -> None:
    registry = SubsystemHealthRegistry(CountedClock(), None)
    answers = [registry.record_failure(name, ValueError(), tier) for name in ("memory", "memory", "graph")]
    assert answers == [True, False, True]


def test_the_person_is_told_once_also_when_it_was_healthy_in_between() -> None:
    registry = SubsystemHealthRegistry(CountedClock(), None)
    assert registry.record_failure("memory", ValueError(), 1)
    registry.record_success("memory")
    assert not registry.record_failure("memory", ValueError(), 0)


def test_background_failures_tell_nobody_and_do_not_use_up_the_first_word() -> None:
    registry = SubsystemHealthRegistry(CountedClock(), None)
    assert not registry.record_failure("memory", ValueError(), 2)
    assert registry.record_failure("memory", ValueError(), 1)


def test_a_success_after_a_failure_says_since_when_and_the_next_failure_ends_it() -> None:
    clock = CountedClock()
    registry = SubsystemHealthRegistry(clock, None)
    registry.record_failure("memory", ValueError(), 1)
    clock.advance(60)
    registry.record_success("memory")
    clock.advance(60)
    registry.record_success("memory")
    assert [row.healthy_since for row in registry.snapshot()] == ["2026-11-30T14:01:00.000Z"]
    registry.record_failure("memory", ValueError(), 1)
    assert [(row.failures, row.healthy_since) for row in registry.snapshot()] == [(2, None)]


def test_a_success_without_a_failure_leaves_no_trace() -> None:
    registry = SubsystemHealthRegistry(CountedClock(), None)
    registry.record_success("memory")
    assert registry.snapshot() == ()


def test_each_tier_offers_its_own_event_and_tier_0_none() -> None:
    sink = KeepingSink()
    registry = SubsystemHealthRegistry(CountedClock(), sink)
    registry.record_failure("operator", ValueError("a"), 0)
    registry.record_failure("memory", ValueError("b"), 1, "recall")
    registry.record_failure("trace_file", OSError("c"), 2)
    assert sink.notes == [
        (
            "capability.failed",
            CapabilityFailed(subsystem="memory", error="ValueError", message="b", context="recall"),
            "system",
        ),
        (
            "background.failed",
            BackgroundFailed(subsystem="trace_file", error="OSError", message="c", context=""),
            "system",
        ),
    ]
    for event_type, body, partition in sink.notes:
        check_event(
            Event(
                event_id="evt_1",
                event_type=event_type,
                partition_key=partition,
                actor_id="rune",
                timestamp="",
                body=body,
            )
        )


def test_texts_are_short_and_storable() -> None:
    sink = KeepingSink()
    registry = SubsystemHealthRegistry(CountedClock(), sink)
    registry.record_failure("files", ValueError("caf\udce9" + "x" * 1000), 1, "y" * 1000)
    body = sink.notes[0][1]
    assert isinstance(body, CapabilityFailed)
    assert (len(body.message), len(body.context)) == (300, 300)
    assert body.message.startswith("caf\N{REPLACEMENT CHARACTER}x")


def test_secrets_are_masked_before_a_text_goes_anywhere() -> None:
    sink = KeepingSink()
    registry = SubsystemHealthRegistry(CountedClock(), sink, masker=lambda text: text.replace("hunter2", "***"))
    registry.record_failure("models", ValueError("no entry for hunter2"), 1, "with hunter2")
    assert "hunter2" not in repr((sink.notes, registry.snapshot()))


def test_a_secret_that_the_cut_would_halve_is_masked_whole() -> None:
    registry = SubsystemHealthRegistry(CountedClock(), None, masker=lambda text: text.replace("hunter2", "***"))
    registry.record_failure("models", ValueError("x" * 296 + "hunter2"), 1)
    assert "hunt" not in registry.snapshot()[0].last_error


def test_a_broken_masker_hides_the_text_and_keeps_the_failure() -> None:
    def broken(text: str) -> str:
        raise RuntimeError("no masker")

    registry = SubsystemHealthRegistry(CountedClock(), None, masker=broken)
    assert registry.record_failure("models", ValueError("hunter2"), 1)
    assert "hunter2" not in repr(registry.snapshot())
    assert [row.subsystem for row in registry.snapshot()] == ["masking", "models"]


def test_a_failure_is_logged_with_its_traceback(log: KeepingHandler) -> None:
    registry = SubsystemHealthRegistry(CountedClock(), None)
    error = ValueError("x")
    registry.record_failure("memory", error, 1, "recall")
    assert [record.getMessage() for record in log.records] == ["T1 memory (recall)"]
    assert log.records[0].exc_info is not None
    assert log.records[0].exc_info[1] is error


def test_a_broken_sink_costs_the_event_and_nothing_else(log: KeepingHandler) -> None:
    registry = SubsystemHealthRegistry(CountedClock(), BrokenSink())
    assert registry.record_failure("memory", ValueError("x"), 1)
    assert [(row.subsystem, row.failures) for row in registry.snapshot()] == [("event_sink", 1), ("memory", 1)]
    assert len(log.records) == 1


def test_a_broken_log_costs_the_line_and_nothing_else(log: KeepingHandler) -> None:
    log.broken = True
    sink = KeepingSink()
    registry = SubsystemHealthRegistry(CountedClock(), sink)
    assert registry.record_failure("memory", ValueError("x"), 1)
    assert [(row.subsystem, row.failures) for row in registry.snapshot()] == [("log", 1), ("memory", 1)]
    assert len(sink.notes) == 1


def test_a_broken_clock_costs_the_time_and_nothing_else() -> None:
    registry = SubsystemHealthRegistry(BrokenClock(), None)
    assert registry.record_failure("memory", ValueError("x"), 1)
    assert registry.snapshot()[0].last_seen == ""


def test_an_error_whose_text_cannot_be_had_is_still_recorded() -> None:
    registry = SubsystemHealthRegistry(CountedClock(), None)
    assert registry.record_failure("memory", UnshowableError(), 1)
    assert registry.snapshot()[0].last_error == "UnshowableError: (its text cannot be had: RuntimeError)"


def test_a_sink_that_reports_its_own_failure_does_not_go_round_in_circles() -> None:
    class Reporting:
        def offer(self, event_type: str, body: Record, *, partition: str) -> None:
            registry.record_failure("journal", OSError("full"), 2)

    registry = SubsystemHealthRegistry(CountedClock(), Reporting())
    registry.record_failure("memory", ValueError("x"), 1)
    assert [(row.subsystem, row.failures) for row in registry.snapshot()] == [("journal", 1), ("memory", 1)]


def test_a_failure_before_logging_is_set_up_does_not_reach_the_terminal() -> None:
    code = (
        "from rune.host.clock import SystemClock\nfrom rune.observability.health import SubsystemHealthRegistry\n"
        "SubsystemHealthRegistry(SystemClock(), None).record_failure('views', ValueError('x'), 0)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert (result.stdout, result.stderr) == ("", "")


def test_failures_from_many_threads_are_all_counted_and_told_once() -> None:
    sink = KeepingSink()
    registry = SubsystemHealthRegistry(CountedClock(), sink)
    start, told = threading.Barrier(8), list[bool]()

    def fail() -> None:
        start.wait(10)
        told.extend(registry.record_failure("memory", ValueError(), 1) for _ in range(200))

    threads = [threading.Thread(target=fail) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert registry.snapshot()[0].failures == len(sink.notes) == 1600
    assert told.count(True) == 1
