"""The subcommands that read."""

import argparse
import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches

import msgspec

from rune.cli.exit_codes import ExitCode
from rune.cli.output import Output
from rune.errors import UsageError
from rune.host.paths import prepare, resolve_home
from rune.models.model_file import fetch_embedded as fetch_model
from rune.records.envelope import EventEnvelope
from rune.records.events import EVENT_KINDS
from rune.surface.doctor import Check, report
from rune.surface.doctor import examine as run_checks
from rune.surface.results import table
from rune.surface.surface import Surface
from rune.surface.trace_text import trace_list

PREVIEW = 160


def doctor(checks: Sequence[Check], output: Output, *, as_json: bool) -> ExitCode:
    """Run the checks; exit code 1 when anything is broken."""
    result = report(asyncio.run(run_checks(checks)))
    output.line(json.dumps(result.data) if as_json else result.text)
    return ExitCode.DONE if result.ok else ExitCode.FAILED


def fetch_embedded(output: Output, environ: Mapping[str, str]) -> ExitCode:
    """Fetch the built-in model's file unless it is there; its path is what stdout gets."""
    home = resolve_home(environ)
    prepare(home)
    path = fetch_model(home.models, progress=output.note)
    output.line(str(path))
    return ExitCode.DONE


def check_types(names: Sequence[str]) -> None:
    """Raise UsageError for a name that is no event's, with those that could be meant."""
    for name in names:
        if name not in EVENT_KINDS:
            near = get_close_matches(name, EVENT_KINDS, n=3) or sorted(EVENT_KINDS)
            raise UsageError(f"there is no event type {name[:60]!r}", hint=f"There are: {', '.join(near)}.")


async def show(surface: Surface, options: argparse.Namespace, output: Output, folder: Callable[[], str]) -> ExitCode:
    """Run `sessions`, `trace`, `events` or `models list`; only some look at the current folder."""
    match options.command, getattr(options, "action", None):
        case "sessions", "list":
            await _sessions(surface, output, None if options.all else folder(), options)
        case "sessions", _:
            await _session(surface, output, options)
        case "trace", _:
            return await _trace(surface, output, options)
        case "events", _:
            _events(surface, output, options)
        case _:
            await _models(surface, output, as_json=options.json)
    return ExitCode.DONE


async def _sessions(surface: Surface, output: Output, folder: str | None, options: argparse.Namespace) -> None:
    found = await surface.views.conversations(folder=folder, limit=options.limit)
    if options.json:
        output.line(_json([msgspec.to_builtins(row) for row in found]))
    elif not found:
        output.line(
            "no conversation in this folder yet (--all shows those of other folders)"
            if folder
            else "no conversation yet"
        )
    else:
        rows = [
            (row.record.id, row.last_active, str(row.messages), row.record.model or "-", row.record.title or "(empty)")
            for row in found
        ]
        output.line(table(rows, ("conversation", "last", "messages", "model", "title")))


async def _session(surface: Surface, output: Output, options: argparse.Namespace) -> None:
    conversation_id = await surface.views.resolve(options.id)
    messages = await surface.views.transcript(conversation_id)
    if options.json:
        output.line(_json([msgspec.to_builtins(message) for message in messages]))
        return
    ends = await surface.views.ends(conversation_id)
    answered = {message.turn_id for message in messages if message.role == "assistant"}
    for message in messages:
        broken = "" if message.complete else "  [cut off]"
        output.line(f"{message.ts}  {'you' if message.role == 'user' else message.model or message.role}{broken}")
        output.line(message.content + "\n")
        if message.role == "user" and message.turn_id not in answered:
            end = ends.get(message.turn_id)
            how = end.reason.value if end is not None and end.reason is not None else "the turn is running"
            output.line(f"[no answer: {how}]\n")


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
        output.line(_json({"trace": msgspec.to_builtins(trace), "prompts": prompts, "matches": whole}))
    else:
        for number, prompt in enumerate(rebuilt, 1):
            output.line(f"request {number} of {len(rebuilt)}, {len(prompt.messages):,} bytes as sent:")
            output.line(prompt.messages.decode("utf-8"))
            verdict = "rebuilt byte for byte" if prompt.matches else "DOES NOT MATCH: " + "; ".join(prompt.problems)
            output.note(f"rune: {verdict}")
    return ExitCode.DONE if whole else ExitCode.FAILED


def _events(surface: Surface, output: Output, options: argparse.Namespace) -> None:
    for envelope in surface.views.events(types=options.type, limit=options.limit):
        output.line(_event_json(envelope) if options.json else _event_line(envelope))


def _event_line(envelope: EventEnvelope) -> str:
    body = bytes(envelope.body).decode("ascii", errors="backslashreplace")
    short = body if len(body) <= PREVIEW else body[: PREVIEW - 3] + "..."
    where = envelope.partition_key if not envelope.pseq else f"{envelope.partition_key} #{envelope.pseq}"
    return f"{envelope.timestamp}  {envelope.event_type:<22}  {envelope.actor_id:<8}  {where}  {short}"


def _event_json(envelope: EventEnvelope) -> str:
    fields = {name: getattr(envelope, name) for name in envelope.__struct_fields__ if name != "body"}
    return _json({**fields, "body": json.loads(bytes(envelope.body))})


async def _models(surface: Surface, output: Output, *, as_json: bool) -> None:
    found, failures = await surface.views.models()
    for failure in failures:
        output.problem(failure.message, failure.hint)
    if as_json:
        output.line(
            _json([msgspec.to_builtins(model) | {"capabilities": sorted(model.capabilities)} for model in found])
        )
        return
    if not found:
        output.line("no model: start Ollama and pull one, or run `rune models fetch-embedded`")
        return
    rows = [
        (
            model.name,
            model.provider,
            "remote" if model.remote else "local",
            f"{model.context_length:,}" if model.context_length else "unknown",
            f"{model.size / 1e9:.1f} GB" if model.size else "unknown",
            ", ".join(sorted(model.capabilities)),
        )
        for model in found
    ]
    output.line(table(rows, ("model", "from", "where", "window", "size", "can")))


def _json(value: Iterable[object]) -> str:
    return json.dumps(value, ensure_ascii=True)
