"""`rune sessions`: what a person does with conversations as a whole."""

import argparse
import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from rune.cli.output import Output
from rune.errors import LeaseHeldError
from rune.store.conversations import Conversation
from rune.surface.export_file import exported, write_export
from rune.surface.found_text import found_text
from rune.surface.results import table
from rune.surface.surface import Surface

# What writes a fact about a conversation needs a place in the journal; the rest only reads.
WRITING: Final = frozenset({"rename", "fork", "hide", "unhide"})
_ID_CHARACTERS: Final = 6  # of the end of an id: its beginning is the time


async def run_sessions(
    surface: Surface, options: argparse.Namespace, output: Output, folder: Callable[[], str], now_ms: int
) -> None:
    """Do what `rune sessions` was asked for. `folder` is called only where the current folder matters.

    Raises UsageError, NotFoundError, LeaseHeldError (with who has the conversation open), StorageError.
    """
    match options.action:
        case "list":
            await _list(surface, output, None if options.all else folder(), options)
        case "search":
            await _search(surface, output, folder() if options.here else None, options, now_ms)
        case "show":
            await _show(surface, output, options)
        case "export":
            await _export(surface, output, options)
        case "fork":
            await _fork(surface, output, options)
        case _:
            await _change(surface, output, options)


async def _list(surface: Surface, output: Output, folder: str | None, options: argparse.Namespace) -> None:
    found = await surface.views.conversations(folder=folder, limit=options.limit, with_hidden=options.hidden)
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
            (row.record.id, row.last_active, str(row.messages), row.record.model or "-", _titled(row)) for row in found
        ]
        output.line(table(rows, ("conversation", "last", "messages", "model", "title")))


def _titled(row: Conversation) -> str:
    origin = row.record.forked_from
    fork = f"  (fork of …{origin[-_ID_CHARACTERS:]})" if origin is not None else ""
    return (row.record.title or "(empty)") + fork + ("  (hidden)" if row.hidden else "")


async def _show(surface: Surface, output: Output, options: argparse.Namespace) -> None:
    conversation_id = await surface.views.resolve(options.id)
    messages = await surface.views.transcript(conversation_id)
    if options.json:
        output.line(_json([msgspec.to_builtins(message) for message in messages]))
        return
    ends = await surface.views.ends(conversation_id)
    answered = {message.turn_id for message in messages if message.role == "assistant"}
    for message in messages:
        broken = "" if message.complete else "  [cut off]"
        who = "you" if message.role == "user" else message.model or message.role
        output.line(f"{message.ts}  {who}{broken}  {message.id}")
        output.line(message.content + "\n")
        if message.role == "user" and message.turn_id not in answered:
            end = ends.get(message.turn_id)
            how = end.reason.value if end is not None and end.reason is not None else "the turn is running"
            output.line(f"[no answer: {how}]\n")


async def _search(
    surface: Surface, output: Output, folder: str | None, options: argparse.Namespace, now_ms: int
) -> None:
    text = " ".join(_rejoined(options.text))
    found = await surface.views.search(text, folder=folder, limit=options.limit)
    if options.json:
        output.line(_json([msgspec.to_builtins(each) for each in found]))
    elif found:
        output.line(found_text(found, now_ms))
    else:
        output.line("nothing was found" + (" in conversations of this folder" if folder is not None else ""))


def _rejoined(words: Sequence[str]) -> Sequence[str]:
    """Return the words as they were meant: what the person had quoted for the shell stands together."""
    return [f'"{word}"' if " " in word and '"' not in word and len(words) > 1 else word for word in words]


async def _export(surface: Surface, output: Output, options: argparse.Namespace) -> None:
    whole = await surface.views.whole(await surface.views.resolve(options.id))
    text = await asyncio.to_thread(exported, whole, options.format)
    if options.output is None:
        output.line(text.removesuffix("\n"))
        return
    await asyncio.to_thread(write_export, Path(options.output), text)
    many = len(whole.messages)
    output.note(f"rune: {many:,} message{'' if many == 1 else 's'} written to {options.output}")


async def _fork(surface: Surface, output: Output, options: argparse.Namespace) -> None:
    conversation_id = await surface.views.resolve(options.id)
    last = await surface.views.resolve_message(options.at) if options.at is not None else None
    record = await surface.operator.fork(conversation_id, last)
    output.line(record.id)
    output.note(f"rune: go on with it by `rune -r {record.id}`")


async def _change(surface: Surface, output: Output, options: argparse.Namespace) -> None:
    conversation_id = await surface.views.resolve(options.id)
    try:
        if options.action == "rename":
            title = await surface.operator.rename(conversation_id, options.title)
            output.line(f"{conversation_id}: {title}")
        else:
            hidden = options.action == "hide"
            await surface.operator.hide(conversation_id, hidden=hidden)
            now = "hidden: `rune sessions list --hidden` shows it" if hidden else "listed again"
            output.line(f"{conversation_id} is {now}")
    except LeaseHeldError as error:
        error.hint = f"Close it there, or branch off: `rune sessions fork {conversation_id}`."
        raise


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=True)
