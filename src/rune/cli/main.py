"""Reads the command line, builds what it needs, and lets it go in order."""

import argparse
import asyncio
import os
import traceback
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rune.cli.arguments import HelpAskedError, parse
from rune.cli.exit_codes import ExitCode, of_error
from rune.cli.first_frame import FirstFrame
from rune.cli.interrupts import Interrupts
from rune.cli.output import Output, StdoutLostError
from rune.cli.signals import raise_on_signals
from rune.cli.stdin import is_terminal, read_piped
from rune.cli.streams import PATIENCE_SECONDS, StandardStreams
from rune.errors import RuneError, UsageError
from rune.host.paths import storable_path
from rune.text.invocation import command_of
from rune.version import __version__

if TYPE_CHECKING:
    from rune.bootstrap import Services
    from rune.store.view_pass import Pass


def run(arguments: Sequence[str], closed: frozenset[int], frame: FirstFrame) -> int:
    """Run one command line and write all it says; returns the exit code.

    `arguments` as Python gives them; `closed` are the numbers of the standard streams that were closed; `frame`
    is on the screen when the arguments looked like the app's.
    """
    streams = StandardStreams(closed)
    output = Output(streams.out, streams.err, command_of(os.environ))
    code = _run([_as_text(argument) for argument in arguments], output, Interrupts(streams), frame)
    return int(_written(code, streams, output))


def _run(arguments: Sequence[str], output: Output, interrupts: Interrupts, frame: FirstFrame) -> ExitCode:
    try:
        output.check()
        with frame:
            return _dispatch(parse(arguments), output, interrupts, frame)
    except HelpAskedError as asked:
        output.line(asked.text)
        return ExitCode.DONE
    except RuneError as error:
        output.problem(error.message, error.hint)
        return of_error(error)
    except StdoutLostError:
        return ExitCode.FAILED  # `_written` says why
    except (KeyboardInterrupt, asyncio.CancelledError):
        interrupts.hurry()
        output.problem("interrupted")
        return ExitCode.INTERRUPTED
    except Exception as error:  # noqa: BLE001  # the last door: a bug too is shown, and lets the streams go in order
        for line in "".join(traceback.format_exception(error)).splitlines():
            output.note(line)
        return ExitCode.FAILED


def _written(code: ExitCode, streams: StandardStreams, output: Output) -> ExitCode:
    """Wait until readers have taken what was said, and return the exit code that this leaves."""
    raise_on_signals()  # the event loop had them
    try:
        streams.drain()
    except KeyboardInterrupt:
        streams.out.give_up()
        code = ExitCode.INTERRUPTED
    streams.hurry()
    try:
        output.check()
    except StdoutLostError as lost:
        if lost.message or not output.enough:
            code = code or ExitCode.FAILED
        if lost.message:
            output.problem(lost.message)
    else:
        if streams.out.unwritten:
            code = ExitCode.INTERRUPTED
            output.problem("stdout was given up: the rest of the answer was not written there")
    streams.err.drain(PATIENCE_SECONDS)
    return code


def _dispatch(options: argparse.Namespace, output: Output, interrupts: Interrupts, frame: FirstFrame) -> ExitCode:
    if options.version:
        output.line(f"rune {__version__}")
        return ExitCode.DONE
    if options.command is not None:
        if options.prompt is not None:
            raise UsageError(f"-p and the command {options.command!r} cannot be used together")
        run_command = _approve if options.command == "approve" else _command
        return run_command(options, output, interrupts)
    if options.prompt is None and is_terminal():
        return _app(options, output, frame)
    return _prompt(options, output, interrupts)


def _app(options: argparse.Namespace, output: Output, frame: FirstFrame) -> ExitCode:
    hint = 'Ask with `rune -p "..."`; `rune --help` shows more.'
    _check_one_conversation(options)
    if options.output_format != "text":
        raise UsageError("--output-format is for an answer on stdout", hint=hint)
    if not output.out_is_terminal:
        raise UsageError("the app needs a terminal, and stdout is none", hint=hint)
    if os.environ.get("TERM") == "dumb":
        raise UsageError("the app needs a terminal with a screen, and this one has none (TERM=dumb)", hint=hint)
    from rune.cli.app import run_app
    from rune.tui.app_start import AppStart

    def build(told: Callable[[str], None]) -> "Services":
        from rune.bootstrap import build
        from rune.cli.rebuild_progress import opening_line

        def rebuilding(done: "Pass") -> None:
            told(opening_line(done))

        return build(os.environ, surface_kind="app", on_rebuild=rebuilding)

    start = AppStart(
        folder=_here(),
        channel=options.channel,
        resume=options.resume,
        carry_on=options.carry_on,
        model=options.model,
        thinking=options.think,
        permission=options.permission,
        max_steps=options.max_steps,
    )
    return run_app(start, build, frame, output)


def _check_one_conversation(options: argparse.Namespace) -> None:
    if options.carry_on and options.resume is not None:
        raise UsageError("-c and -r cannot be used together", hint="-r names the conversation; -c takes the newest.")


def _prompt(options: argparse.Namespace, output: Output, interrupts: Interrupts) -> ExitCode:
    from rune.cli.headless import HeadlessRequest, run_headless
    from rune.surface.commands.registry import Commands

    _check_one_conversation(options)
    typed: str = options.prompt or ""
    # A command takes nothing from stdin: in a script that is the script's own.
    piped = "" if Commands.is_command(typed) else read_piped(output.note)
    text = "\n\n".join(part for part in (typed, piped) if part.strip())
    if not text:
        raise UsageError("there is no message", hint='Say what you want: rune -p "..."')
    request = HeadlessRequest(
        text=text,
        folder=_here(),
        provenance="piped" if piped.strip() else "owner",
        output_format=options.output_format,
        resume=options.resume,
        carry_on=options.carry_on,
        model=options.model,
        thinking=options.think,
        max_steps=options.max_steps,
        channel=options.channel,
        permission=options.permission,
    )
    from rune.bootstrap import Services

    async def answer(services: Services) -> ExitCode:
        return await run_headless(services.surface, request, output, interrupts)

    return _with_services(answer, "headless", interrupts, output)


def _approve(options: argparse.Namespace, output: Output, interrupts: Interrupts) -> ExitCode:
    from rune.bootstrap import Services
    from rune.cli import approving
    from rune.host.clock import SystemClock

    approving.check(options)

    async def work(services: Services) -> ExitCode:
        if approving.answering(options):
            return await approving.answer(services.surface, options, output, interrupts)
        _note_health(services, output)
        return await approving.look(services.surface, options, output, SystemClock().now_ms())

    return _with_services(work, "headless" if approving.answering(options) else "command", interrupts, output)


def _command(options: argparse.Namespace, output: Output, interrupts: Interrupts) -> ExitCode:
    from rune.cli import commands

    match options.command:
        case "canary":
            from rune.canaries.runner import run_canaries

            return ExitCode.DONE if run_canaries(options.name, output.line) else ExitCode.FAILED
        case "doctor":
            from rune.bootstrap import examine, mend
            from rune.cli.doctor import run_doctor

            return run_doctor(
                lambda told: examine(os.environ, told=told),
                partial(mend, os.environ) if options.mend else None,
                output,
                as_json=options.json,
            )
        case "erase":
            from rune.bootstrap.erasing import open_erasure
            from rune.cli.erasing import erase
            from rune.cli.rebuild_progress import RebuildProgress

            progress = RebuildProgress(output, os.environ)
            try:
                return erase(open_erasure(os.environ, on_rebuild=progress), options, output)
            finally:
                progress.end()
        case "import":
            from rune.bootstrap.importing import open_import
            from rune.cli.importing import run_import
            from rune.cli.rebuild_progress import RebuildProgress
            from rune.host.clock import SystemClock

            rebuilding = RebuildProgress(output, os.environ)
            opening = partial(open_import, os.environ, on_rebuild=rebuilding)
            try:
                return run_import(opening, options, output, interrupts, SystemClock())
            finally:
                rebuilding.end()
        case "models" if options.action == "fetch-embedded":
            return commands.fetch_embedded(output, os.environ, as_json=options.json)
        case "events":
            commands.check_types(options.type)
        case _:
            pass
    from rune.bootstrap import Services
    from rune.cli.models import WRITING as PROBING
    from rune.cli.sessions import WRITING

    async def show(services: Services) -> ExitCode:
        _note_health(services, output)
        return await commands.show(services.surface, options, output, _here)

    writing = {"sessions": WRITING, "models": PROBING}.get(options.command, frozenset[str]())
    writes = bool(writing) and options.action in writing
    return _with_services(show, "headless" if writes else "command", interrupts, output)


def _note_health(services: "Services", output: Output) -> None:
    """Say what is wrong: where nothing can be written, why, and of what follows from that nothing."""
    from rune.surface.reading_mode import notice

    why = services.surface.refusal()
    if why is not None:
        output.note(f"rune: {notice(why)}")
    for row in services.health.snapshot():
        for recovery in row.recovered:
            output.note(f"rune: {row.subsystem}: {recovery.what}")
        follows = why is not None and (row.subsystem == "journal" or row.tier == 2)  # noqa: PLR2004  # T2 is its name
        if row.failures and not follows:
            output.note(f"rune: {row.subsystem}: {row.last_error}")


def _as_text(argument: str) -> str:
    """Return an argument as text that can be stored: read as UTF-8, whatever the locale, with U+FFFD for the rest."""
    return os.fsencode(argument).decode("utf-8", "replace")


def _here() -> str:
    try:
        return storable_path(Path.cwd().resolve())
    except OSError as error:
        gone = isinstance(error, FileNotFoundError)
        problem = "does not exist any more" if gone else f"cannot be used: {error.strerror or error}"
        raise UsageError(f"the current folder {problem}", hint="Go to another one with cd.") from error


def _with_services(
    work: Callable[..., Awaitable[ExitCode]], kind: str, interrupts: Interrupts, output: Output
) -> ExitCode:
    from rune.bootstrap import Services, build
    from rune.cli.rebuild_progress import RebuildProgress

    rebuilding = RebuildProgress(output, os.environ)

    async def main() -> ExitCode:
        services: Services | None = None
        try:
            with interrupts.work():
                surface_kind = "headless" if kind == "headless" else "command"
                services = build(os.environ, surface_kind=surface_kind, on_rebuild=rebuilding)
                await services.start()
                rebuilding.end()
                return await work(services)
        finally:
            if services is not None:
                await services.close()
            rebuilding.end()

    return asyncio.run(main())
