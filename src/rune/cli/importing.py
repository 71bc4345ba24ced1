"""`rune import`: brings a file in, tells what had to be left, and what came in as what."""

import argparse
import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

from rune.cli.exit_codes import ExitCode
from rune.cli.interrupts import Interrupts
from rune.cli.output import Output
from rune.host.clock import Clock
from rune.store.imports.arrivals import Became
from rune.store.imports.report import ImportKind, ImportReport, Listener, Named

NOTED_EVERY = 10_000
NOTED_AFTER_SECONDS = 2.0

_UNITS: dict[ImportKind, tuple[str, str]] = {
    "events": ("line", "lines"),
    "operator": ("task", "tasks"),
    "pins": ("chunk", "chunks"),
}
_NEW: dict[Became, tuple[str, str]] = {
    "message": ("message", "messages"),
    "task": ("task", "tasks"),
    "conversation": ("beginning of a conversation", "beginnings of conversations"),
    "pin": ("pin", "pins"),
    "other": ("kept as event.imported", "kept as event.imported"),
}


class Importing(Protocol):
    """What brings a file into an open home (bootstrap.importing.Import)."""

    def troubles(self) -> list[str]:
        """Return what was recovered in this home, and what failed."""
        ...

    async def take_in(self, kind: ImportKind, path: Path, listener: Listener) -> ImportReport:
        """Bring a file in."""
        ...


def run_import(
    open_home: Callable[[], AbstractAsyncContextManager[Importing]],
    options: argparse.Namespace,
    output: Output,
    interrupts: Interrupts,
    clock: Clock,
) -> ExitCode:
    """Bring `options.file` in; exit code 1 when any of it was left. `clock` says when to tell again how far it is.

    Raises what opening the home and Import.take_in raise.
    """
    telling = _Telling(output, unit=_UNITS[options.action][1], path=options.file, clock=clock)

    async def main() -> ImportReport:
        with interrupts.work():
            async with open_home() as home:
                for trouble in home.troubles():
                    output.note(f"rune: {trouble}")
                try:
                    return await home.take_in(options.action, Path(options.file), telling)
                except BaseException:
                    telling.broke_off()
                    raise

    report = asyncio.run(main())
    telling.end(report)
    if options.json:
        output.line(json.dumps(import_data(options.action, report)))
    else:
        for line in summary(options.action, report):
            output.line(line)
    return ExitCode.FAILED if report.left else ExitCode.DONE


class _Telling:
    """Says on stderr what had to be left, and how far it is (Listener)."""

    def __init__(self, output: Output, *, unit: str, path: str, clock: Clock) -> None:
        self._output = output
        self._unit = unit
        self._path = path
        self._clock = clock
        self._done = 0
        self._told_at = clock.monotonic()

    def left(self, named: Named) -> None:
        """Name one that was left."""
        self._output.note(f"rune: {self._path}, {named.where}: left: {named.text}")

    def noted(self, named: Named) -> None:
        """Give a note."""
        self._output.note(f"rune: {self._path}, {named.where}: {named.text}")

    def progress(self, seen: int) -> None:
        """Say how far it is, every 10,000 and every two seconds."""
        now = self._clock.monotonic()
        if seen // NOTED_EVERY > self._done // NOTED_EVERY or now - self._told_at >= NOTED_AFTER_SECONDS:
            self._told_at = now
            self._output.note(f"rune: {seen:,} {self._unit} so far ...")
        self._done = seen

    def broke_off(self) -> None:
        """Say that what was done so far stays."""
        if self._done:
            self._output.note(f"rune: {self._done:,} {self._unit} are done: the same command again goes on from there")

    def end(self, report: ImportReport) -> None:
        """Say how many more there were than were named."""
        if more := report.left - len(report.left_named):
            self._output.note(f"rune: and {more:,} more that were left")
        if more := report.noted - len(report.noted_named):
            self._output.note(f"rune: and {more:,} more notes")


def summary(kind: ImportKind, report: ImportReport) -> list[str]:
    """Return what came of it, in one line, and in a second one how to look at it."""
    parts = [counted(report.new[became], *words) for became, words in _NEW.items() if report.new[became]]
    if not parts:
        parts = ["0 new"]
    if report.there:
        parts.append(f"{report.there:,} already there")
    if report.left:
        parts.append(f"{report.left:,} left (see above)")
    lines = [f"{counted(report.seen, *_UNITS[kind])}: {', '.join(parts)}"]
    if report.conversations:
        lines.append(
            f"in {counted(report.conversations, 'new conversation', 'new conversations')}: `rune sessions list --all`"
        )
    if report.new["pin"] or report.new["other"]:
        lines.append(f"`rune events --type {'pin' if report.new['pin'] else 'event'}.imported` shows what was kept")
    return lines


def import_data(kind: ImportKind, report: ImportReport) -> dict[str, object]:
    """Return the same for programs."""
    return {
        "version": 1,
        "kind": kind,
        "seen": report.seen,
        "new": report.arrived,
        "new_as": {became: report.new[became] for became in _NEW},
        "new_conversations": report.conversations,
        "already_there": report.there,
        "left": report.left,
        "left_first": [{"where": each.where, "reason": each.text} for each in report.left_named],
        "notes": report.noted,
        "notes_first": [{"where": each.where, "note": each.text} for each in report.noted_named],
    }


def counted(count: int, one: str, many: str) -> str:
    """Return `1 line` or `1,204 lines`."""
    return f"{count:,} {one if count == 1 else many}"
