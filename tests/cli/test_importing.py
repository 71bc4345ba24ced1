"""What `rune import` says: what had to be left as it comes, and in the end what came in as what."""

import argparse
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from rune.cli.exit_codes import ExitCode
from rune.cli.importing import import_data, run_import, summary
from rune.cli.interrupts import Interrupts
from rune.cli.output import Output
from rune.cli.streams import StandardStreams
from rune.errors import StorageUnavailableError
from rune.store.imports.arrivals import Became
from rune.store.imports.report import ImportKind, ImportReport, Listener, Named
from tests.fakes.clock import CountedClock
from tests.fakes.streams import KeptStream

OPTIONS = argparse.Namespace(action="events", file="old.jsonl", json=False)


class Rehearsed:
    """An open home that tells what it is told to."""

    def __init__(
        self,
        report: ImportReport,
        *,
        steps: tuple[int, ...] = (),
        error: Exception | None = None,
        clock: CountedClock | None = None,
        seconds: float = 0.0,
    ) -> None:
        """`seconds` pass on `clock` with each step."""
        self.clock = clock or CountedClock()
        self._report = report
        self._steps = steps
        self._error = error
        self._seconds = seconds

    def troubles(self) -> list[str]:
        return ["journal: a torn tail was cut off"]

    async def take_in(self, kind: ImportKind, path: Path, listener: Listener) -> ImportReport:
        for named in self._report.left_named:
            listener.left(named)
        for seen in self._steps:
            self.clock.advance(self._seconds)
            listener.progress(seen)
        if self._error is not None:
            raise self._error
        return self._report


def run(home: Rehearsed, err: KeptStream) -> tuple[ExitCode, str]:
    out = KeptStream()

    @asynccontextmanager
    async def opened() -> AsyncGenerator[Rehearsed, None]:
        yield home

    code = run_import(opened, OPTIONS, Output(out, err), Interrupts(StandardStreams(frozenset())), home.clock)
    return code, out.text


def test_the_summary_says_what_came_in_as_what() -> None:
    new: Counter[Became] = Counter({"message": 310, "task": 12, "other": 880})
    report = ImportReport(seen=1204, left=2, conversations=1, new=new)
    assert summary("events", report) == [
        "1,204 lines: 310 messages, 12 tasks, 880 kept as event.imported, 2 left (see above)",
        "in 1 new conversation: `rune sessions list --all`",
        "`rune events --type event.imported` shows what was kept",
    ]
    assert summary("pins", ImportReport(seen=1, there=1)) == ["1 chunk: 0 new, 1 already there"]
    assert summary("operator", ImportReport()) == ["0 tasks: 0 new"]


def test_programs_get_the_same_in_numbers() -> None:
    report = ImportReport(seen=3, there=1, left=1, left_named=[Named("line 2", "no")], new=Counter({"pin": 1}))
    data = import_data("pins", report)
    assert (data["version"], data["kind"], data["new"], data["already_there"], data["left"]) == (1, "pins", 1, 1, 1)
    assert data["left_first"] == [{"where": "line 2", "reason": "no"}]


def test_what_was_left_is_named_without_letting_content_reach_the_terminal() -> None:
    report = ImportReport(seen=30, left=25, left_named=[Named("line 2", "the key '\x1b[2J\n' is there twice")])
    err = KeptStream(is_terminal=True)
    code, out = run(Rehearsed(report), err)
    assert code is ExitCode.FAILED
    assert err.text.splitlines()[1:] == [
        r"rune: old.jsonl, line 2: left: the key '\x1b[2J ' is there twice",
        "rune: and 24 more that were left",
    ]
    assert out == "30 lines: 0 new, 25 left (see above)\n"


def test_a_long_file_is_told_of_every_ten_thousand_lines() -> None:
    err = KeptStream()
    steps = (300, 9_900, 10_200, 19_900, 20_200, 25_000)
    code, _ = run(Rehearsed(ImportReport(seen=25_000), steps=steps), err)
    assert code is ExitCode.DONE
    assert err.text.splitlines()[1:] == ["rune: 10,200 lines so far ...", "rune: 20,200 lines so far ..."]


def test_a_slow_one_is_told_of_every_two_seconds() -> None:
    err = KeptStream()
    code, _ = run(Rehearsed(ImportReport(seen=900), steps=(300, 600, 900), seconds=1.2), err)
    assert code is ExitCode.DONE
    assert err.text.splitlines()[1:] == ["rune: 600 lines so far ..."]


def test_a_run_that_broke_off_says_that_the_next_goes_on() -> None:
    err = KeptStream()
    with pytest.raises(StorageUnavailableError):
        run(Rehearsed(ImportReport(), steps=(300,), error=StorageUnavailableError("the disk is full")), err)
    assert err.text.splitlines()[1:] == ["rune: 300 lines are done: the same command again goes on from there"]
