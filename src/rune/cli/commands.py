"""The subcommands; what is larger than a few lines has a module of its own."""

import argparse
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches

import msgspec

from rune.cli.events import follow_events, show_events
from rune.cli.exit_codes import ExitCode
from rune.cli.models import run_models
from rune.cli.output import Output
from rune.cli.sessions import run_sessions
from rune.errors import UsageError
from rune.host.clock import SystemClock
from rune.host.paths import prepare, resolve_home
from rune.models.embedded.model_file import fetch_embedded as fetch_model
from rune.records.events import EVENT_KINDS
from rune.surface.surface import Surface
from rune.surface.trace_text import trace_list


def fetch_embedded(output: Output, environ: Mapping[str, str], *, as_json: bool) -> ExitCode:
    """Fetch the built-in model's file unless it is there; its path is what stdout gets."""
    home = resolve_home(environ)
    prepare(home)
    path = fetch_model(home.models, progress=output.note)
    output.line(json.dumps({"version": 1, "path": str(path)}, ensure_ascii=True) if as_json else str(path))
    return ExitCode.DONE


def check_types(names: Sequence[str]) -> None:
    """Raise UsageError for a name that is no event's, with at most three that are near."""
    for name in names:
        if name not in EVENT_KINDS:
            near = get_close_matches(name[:60], EVENT_KINDS, n=3) or get_close_matches(
                name[:60], EVENT_KINDS, n=3, cutoff=0
            )
            raise UsageError(
                f"there is no event type {name[:60]!r}",
                hint=f"Near to it: {', '.join(near)}; `rune events --help` names all {len(EVENT_KINDS)}.",
            )


async def show(surface: Surface, options: argparse.Namespace, output: Output, folder: Callable[[], str]) -> ExitCode:
    """Run `sessions`, `trace`, `events` or `models`; only some look at the current folder."""
    match options.command, getattr(options, "action", None):
        case "sessions", _:
            await run_sessions(surface, options, output, folder, SystemClock().now_ms())
        case "trace", _:
            return await _trace(surface, output, options)
        case "events", _ if options.follow:
            return await follow_events(surface, options, output)
        case "events", _:
            show_events(surface, options, output)
        case _:
            return await run_models(surface, options, output, SystemClock().now_ms())
    return ExitCode.DONE


async def _trace(surface: Surface, output: Output, options: argparse.Namespace) -> ExitCode:
    if options.show is None:
        traces = await surface.views.traces(limit=options.limit)
        shown = _json([msgspec.to_builtins(trace) for trace in traces]) if options.json else trace_list(traces)
        output.line(shown)
        return ExitCode.DONE
    trace = await surface.views.trace(None if options.show == "last" else options.show)
    rebuilt = await surface.views.prompts(trace)
    whole = all(prompt.matches for prompt in rebuilt)
    if options.json:
        prompts = [json.loads(prompt.messages) for prompt in rebuilt]
        formats = [json.loads(prompt.format) if prompt.format else None for prompt in rebuilt]
        shown = {"trace": msgspec.to_builtins(trace), "prompts": prompts, "formats": formats, "matches": whole}
        output.line(_json(shown))
    else:
        for number, prompt in enumerate(rebuilt, 1):
            output.line(f"request {number} of {len(rebuilt)}, {len(prompt.messages):,} bytes as sent:")
            output.line(prompt.messages.decode("utf-8"))
            if prompt.format:
                output.line(f"its answer was held to this schema:\n{prompt.format.decode('utf-8')}")
            verdict = "rebuilt byte for byte" if prompt.matches else "DOES NOT MATCH: " + "; ".join(prompt.problems)
            output.note(f"rune: {verdict}")
    return ExitCode.DONE if whole else ExitCode.FAILED


def _json(value: Iterable[object]) -> str:
    return json.dumps(value, ensure_ascii=True)
