"""`rune models`: what can be asked, and everything a person does with it beside asking. See docs/models.md."""

import argparse
import asyncio
import json
import os
from contextlib import aclosing
from typing import Any, Final, Literal

import msgspec

from rune.cli.exit_codes import ExitCode, of_error
from rune.cli.output import Output
from rune.cli.rebuild_progress import is_plain
from rune.errors import RuneError
from rune.records.models import ActionProtocol
from rune.surface.model_list import bytes_text
from rune.surface.model_text import (
    NO_MODEL,
    details_text,
    model_table,
    probe_line,
    probe_table,
    pull_line,
    removed_text,
)
from rune.surface.model_values import ModelDetails, ProbeRow, PullRow
from rune.surface.results import WIDTH, ModelWork
from rune.surface.stream_json import VERSION, error_line
from rune.surface.surface import Surface
from rune.text.fitting import foreign

# What writes to the journal needs a place in it; the rest only reads.
WRITING: Final = frozenset({"probe"})

WorkFormat = Literal["text", "json", "stream-json"]
"""`json` says only how it ended, in one object; `stream-json` also how far it is."""

_TENTH: Final = 10
_PULLED_ON: Final = "What has come is kept: the next pull of it goes on where it was."
_PROTOCOLS: Final[dict[str, ActionProtocol | None]] = {"native": "native", "constrained": "constrained", "auto": None}


async def run_models(surface: Surface, options: argparse.Namespace, output: Output, now_ms: int) -> ExitCode:
    """Do what `rune models` was asked for; `now_ms` is now, in wall milliseconds.

    Raises UsageError, ModelError, StorageError; what streams JSON says them there and returns their code.
    """
    form: WorkFormat = "stream-json" if options.json else "text"
    match options.action:
        case "show":
            _show(await surface.models.show(options.name), output, now_ms, as_json=options.json)
        case "pull":
            return await run_work(surface, ModelWork(kind="pull", model=options.name), output, form)
        case "rm":
            removed = await surface.models.remove(options.name)
            output.line(_json(msgspec.to_builtins(removed)) if options.json else removed_text(removed))
        case "probe" if options.protocol is not None:
            details = await surface.models.fix_protocol(options.name, _PROTOCOLS[options.protocol])
            _show(details, output, now_ms, as_json=options.json)
        case "probe":
            return await run_work(surface, ModelWork(kind="probe", model=options.name), output, form)
        case _:
            await _list(surface, output, as_json=options.json)
    return ExitCode.DONE


async def run_work(surface: Surface, work: ModelWork, output: Output, form: WorkFormat) -> ExitCode:
    """Fetch or measure a model, and show how far it is; Ctrl-C stops it, with exit code 130.

    Raises UsageError, ModelError, StorageError, unless they are said as JSON; StdoutLostError.
    """
    run = _pull if work.kind == "pull" else _probe
    try:
        await run(surface, work.model, output, form)
    except asyncio.CancelledError:
        said = _PULLED_ON if work.kind == "pull" else "Nothing of the probe was kept."
        if form != "text":
            output.line(_event("interrupted", model=work.model))
        output.problem("interrupted", said)
        return ExitCode.INTERRUPTED
    except RuneError as error:
        if form == "text":
            raise
        output.line(error_line(error))
        return of_error(error)
    return ExitCode.DONE


async def _list(surface: Surface, output: Output, *, as_json: bool) -> None:
    rows, failures = await surface.models.rows()
    for failure in failures:
        output.problem(failure.message, failure.hint)
    if as_json:
        output.line(json.dumps([msgspec.to_builtins(row) for row in rows], ensure_ascii=True))
    else:
        output.line(model_table(rows, output.out_columns) if rows else NO_MODEL)


def _show(details: ModelDetails, output: Output, now_ms: int, *, as_json: bool) -> None:
    output.line(_json(msgspec.to_builtins(details)) if as_json else details_text(details, now_ms))


async def _pull(surface: Surface, name: str, output: Output, form: WorkFormat) -> None:
    show = _PullShow(output, form)
    async with aclosing(surface.models.pull(name)) as rows:
        async for row in rows:
            show(row)


class _PullShow:
    """Says how far a pull is: JSON lines on stdout, a line that rewrites itself on a terminal, else a line a tenth."""

    def __init__(self, output: Output, form: WorkFormat) -> None:
        self._output = output
        self._form: WorkFormat = form
        self._plain = is_plain(os.environ)
        self._said: tuple[str, int] | None = None

    def __call__(self, row: PullRow) -> None:
        """Show one row."""
        self._output.check_reader()
        if row.finished:
            self._finished(row)
        elif self._form != "text":
            if self._form == "stream-json" and self._changed(row, 1):
                self._output.line(_event("progress", **msgspec.to_builtins(row)))
        elif self._output.err_is_terminal:
            # The last cell stays free: some terminals go on to the next line once it is written.
            columns = self._output.err_columns - 1 - len("rune: ")
            self._output.status(f"rune: {pull_line(row, columns, plain=self._plain)}")
        elif self._changed(row, _TENTH):
            self._output.note(f"rune: {pull_line(row, WIDTH, bar=False)}")

    def _changed(self, row: PullRow, step: int) -> bool:
        """Say whether there is something new in steps of so many percent; a pull says sixteen times a second."""
        percent = int(row.done / row.total * 100) // step if row.done is not None and row.total else -1
        # A server has a status of its own for each part: once bytes come, they say more.
        told = ("" if percent >= 0 and percent < 100 // step else row.status), percent
        before, self._said = self._said, told
        return told != before

    def _finished(self, row: PullRow) -> None:
        if self._form != "text":
            self._output.line(_event("done", **msgspec.to_builtins(row)))
        else:
            size = f" ({bytes_text(row.total)})" if row.total else ""
            self._output.line(f"{row.model} is there{size}")


async def _probe(surface: Surface, name: str, output: Output, form: WorkFormat) -> None:
    last: ProbeRow | None = None
    async with aclosing(surface.models.probe(name)) as rows:
        async for row in rows:
            output.check_reader()
            last = row
            if form != "text":
                if form == "stream-json" and row.kept is None:
                    output.line(_event("progress", model=name, **msgspec.to_builtins(row)))
            elif output.err_is_terminal:
                output.status(f"rune: {foreign(probe_line(row), output.err_columns - 1 - len('rune: '))}")
            elif row.outcome is not None:
                output.note(f"rune: {probe_line(row)}")
    if last is None or last.kept is None:
        raise RuntimeError("a probe ended without a result")
    details = await surface.models.show(name)
    if form != "text":
        probe = [msgspec.to_builtins(outcome) for outcome in details.probe]
        output.line(_event("done", model=details.row.name, kept=last.kept, probe=probe))
    else:
        output.line(probe_table(details.probe))
        output.line(f"{details.row.name} acts by the {details.row.protocol} protocol from now on")


def _event(kind: str, **fields: Any) -> str:  # noqa: ANN401 - what json takes
    return _json({"type": kind, **fields})


def _json(value: dict[str, Any]) -> str:
    return json.dumps({"version": VERSION, **value}, ensure_ascii=True)
