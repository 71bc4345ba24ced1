"""`rune events`: what happened, from the journal, and with --follow what happens."""

import argparse
import asyncio
import contextlib
import json
from typing import Final

from rune.cli.exit_codes import ExitCode
from rune.cli.output import Output, StdoutLostError
from rune.records.envelope import EventEnvelope
from rune.surface.surface import Surface

_PREVIEW: Final = 160
# A reader that is slower than the journal is waited for: nothing piles up in memory, and nothing is left out.
_MOST_UNREAD: Final = 1 << 20
_PAUSE_SECONDS: Final = 0.05


def show_events(surface: Surface, options: argparse.Namespace, output: Output) -> None:
    """Print the newest events, in order."""
    for envelope in surface.views.events(types=options.type, limit=options.limit):
        output.line(_shown(envelope, as_json=options.json))


async def follow_events(surface: Surface, options: argparse.Namespace, output: Output) -> ExitCode:
    """Print the newest events and then what any process appends, until Ctrl-C or until nobody reads any more.

    Ctrl-C is how this ends, so nothing is said about it; the exit code is 130 all the same, as of `tail -f`, which
    the signal ends: a script in which a person presses Ctrl-C stops there instead of going on.

    A reader that goes away (`| head -2`) is done: it has all it wanted of what has no end, so the exit code is 0.
    `tail -f` dies of SIGPIPE there, which a shell passes over as well, unless it is told to count it (`pipefail`). An
    answer whose reader went away (`rune -p`) is another thing: it has an end, was cut short, and says 1. Raises
    StdoutLostError when stdout takes nothing for another reason, StorageError.
    """
    output.enough = True
    try:
        async with contextlib.aclosing(surface.views.follow(types=options.type, limit=options.limit)) as pieces:
            async for piece in pieces:
                for envelope in piece:
                    output.line(_shown(envelope, as_json=options.json))
                await _taken(output)
    except asyncio.CancelledError:
        return ExitCode.INTERRUPTED
    except StdoutLostError as lost:
        if lost.message:
            raise
    return ExitCode.DONE


async def _taken(output: Output) -> None:
    output.check_reader()
    while output.unread > _MOST_UNREAD:
        await asyncio.sleep(_PAUSE_SECONDS)
        output.check_reader()


def _shown(envelope: EventEnvelope, *, as_json: bool) -> str:
    return _as_json(envelope) if as_json else _as_line(envelope)


def _as_line(envelope: EventEnvelope) -> str:
    body = bytes(envelope.body).decode("ascii", errors="backslashreplace")
    short = body if len(body) <= _PREVIEW else body[: _PREVIEW - 3] + "..."
    where = envelope.partition_key if not envelope.pseq else f"{envelope.partition_key} #{envelope.pseq}"
    return f"{envelope.timestamp}  {envelope.event_type:<22}  {envelope.actor_id:<8}  {where}  {short}"


def _as_json(envelope: EventEnvelope) -> str:
    fields = {name: getattr(envelope, name) for name in envelope.__struct_fields__ if name != "body"}
    return json.dumps({**fields, "body": json.loads(bytes(envelope.body))}, ensure_ascii=True)
