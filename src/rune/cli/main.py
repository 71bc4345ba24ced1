"""Reads the command line, builds what it needs, and lets it go in order."""

import argparse
import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from rune.cli.arguments import parser
from rune.cli.exit_codes import ExitCode, of_error
from rune.cli.output import Output
from rune.cli.stdin import read_piped
from rune.errors import RuneError, UsageError
from rune.version import __version__


def run(arguments: list[str]) -> int:
    """Run one command line; returns the exit code."""
    output = Output()
    options = parser().parse_args(arguments)
    try:
        return int(_dispatch(options, output))
    except RuneError as error:
        output.problem(error.message, error.hint)
        return int(of_error(error))


def _dispatch(options: argparse.Namespace, output: Output) -> ExitCode:
    if options.version:
        output.line(f"rune {__version__}")
        return ExitCode.DONE
    if options.command is not None:
        if options.prompt is not None:
            raise UsageError(f"-p and the command {options.command!r} cannot be used together")
        return _command(options, output)
    if options.prompt is None and sys.stdin is not None and sys.stdin.isatty():
        parser().print_usage(sys.stderr)
        output.note('rune: the app does not exist yet; ask with `rune -p "..."` (`rune --help` shows more)')
        return ExitCode.USAGE
    return _prompt(options, output)


def _prompt(options: argparse.Namespace, output: Output) -> ExitCode:
    from rune.cli.headless import HeadlessRequest, run_headless

    if options.carry_on and options.resume:
        raise UsageError("-c and -r cannot be used together", hint="-r names the conversation; -c takes the newest.")
    typed: str = options.prompt or ""
    piped = read_piped(output.note)
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
        max_steps=options.max_steps,
        channel=options.channel,
    )
    from rune.bootstrap import Services

    async def answer(services: Services) -> ExitCode:
        return await run_headless(services.surface, request, output)

    return _with_services(answer, "headless")


def _command(options: argparse.Namespace, output: Output) -> ExitCode:
    from rune.cli import commands

    match options.command:
        case "canary":
            from rune.canaries.runner import run_canaries

            return ExitCode.DONE if run_canaries(options.name, output.line) else ExitCode.FAILED
        case "doctor":
            from rune.bootstrap import examine

            return commands.doctor(examine(os.environ), output, as_json=options.json)
        case "models" if options.action == "fetch-embedded":
            return commands.fetch_embedded(output, os.environ)
        case _:
            pass
    from rune.bootstrap import Services

    async def show(services: Services) -> ExitCode:
        return await commands.show(services.surface, options, output, _here())

    return _with_services(show, "command")


def _here() -> str:
    try:
        return str(Path.cwd().resolve())
    except FileNotFoundError as error:
        raise UsageError("the current folder does not exist any more", hint="Go to another one with cd.") from error


def _with_services(work: Callable[..., Awaitable[ExitCode]], kind: str) -> ExitCode:
    from rune.bootstrap import build

    async def main() -> ExitCode:
        services = build(os.environ, surface_kind="headless" if kind == "headless" else "command")
        try:
            await services.start()
            return await work(services)
        finally:
            await services.close()

    return asyncio.run(main())
