"""`rune sessions`: what a person does with conversations as a whole."""

import argparse
import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from rune.cli.listing import listing
from rune.cli.output import Output
from rune.errors import UsageError
from rune.records.messages import ConversationMessageRecord
from rune.surface.export_file import exported, kind_of, write_export
from rune.surface.found_text import OF_EACH, found_text
from rune.surface.remarks import remarks
from rune.surface.rows import CallRow
from rune.surface.shared_messages import missing_share
from rune.surface.surface import Surface
from rune.surface.tool_text import line_of

# What writes a fact about a conversation needs a place in the journal; the rest only reads.
WRITING: Final = frozenset({"rename", "fork", "hide", "unhide"})


async def run_sessions(
    surface: Surface, options: argparse.Namespace, output: Output, folder: Callable[[], str], now_ms: int
) -> None:
    """Do what `rune sessions` was asked for. `folder` is called only where the current folder matters.

    Raises UsageError, NotFoundError, LeaseHeldError (with who has the conversation open), StorageError.
    """
    match options.action:
        case "list":
            await _list(surface, output, None if options.all else folder(), options, now_ms)
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


async def _list(surface: Surface, output: Output, folder: str | None, options: argparse.Namespace, now_ms: int) -> None:
    found = await surface.views.conversations(
        folder=folder, limit=options.limit, with_hidden=options.hidden, with_empty=options.all
    )
    waiting = await surface.views.waiting_conversations()
    if options.json:
        output.line(_json([{**msgspec.to_builtins(row), "waits": row.record.id in waiting} for row in found]))
    elif not found:
        output.line(
            "no conversation in this folder yet (--all shows those of other folders)"
            if folder
            else "no conversation yet"
        )
    else:
        output.line(listing(found, now_ms, output.out_columns, waiting))


async def _show(surface: Surface, output: Output, options: argparse.Namespace) -> None:
    conversation_id = await surface.views.resolve(options.id)
    whole = await surface.views.whole(conversation_id)
    if options.json:
        output.line(_json([msgspec.to_builtins(message) for message in whole.messages]))
        return
    if gone := missing_share(whole.conversation.record, whole.messages):
        output.line(gone + "\n")
    said = remarks(conversation_id, whole.messages, whole.ends)
    calls, folded = whole.calls_of, whole.folded
    for message in whole.messages:
        if message.id not in folded:  # what came of a call stands in the line of the call
            _show_message(output, message, calls.get(message.id, ()))
        for remark in said.get(message.id, ()):
            foreign = f": {' '.join(remark.foreign.split())}" if remark.foreign else ""
            output.line(f"[{remark.text}{foreign}]\n")


def _show_message(output: Output, message: ConversationMessageRecord, calls: Sequence[CallRow]) -> None:
    broken = "" if message.complete else "  [cut off]"
    who = "you" if message.role == "user" else message.model or message.role
    output.line(f"{message.ts}  {who}{broken}  {message.id}")
    if message.content.strip() or not calls:
        output.line(message.content + "\n")
    if calls:
        output.line("".join(f"  {line_of(call)}\n" for call in calls))


async def _search(
    surface: Surface, output: Output, folder: str | None, options: argparse.Namespace, now_ms: int
) -> None:
    text = " ".join(_rejoined(options.text))
    each = None if options.json else OF_EACH
    found = await surface.views.search(text, folder=folder, limit=options.limit, of_each=each)
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
    if options.output == "":
        raise UsageError("'' is no name for a file", hint="Without -o it is written to stdout.")
    whole = await surface.views.whole(await surface.views.resolve(options.id))
    text = await asyncio.to_thread(exported, whole, options.format or kind_of(options.output or ""))
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
    if options.action == "rename":
        # A title is one line: what was typed in several is all of it.
        words = " ".join(" ".join(options.title).split())
        title = await surface.operator.rename(conversation_id, words)
        output.line(f"{conversation_id}: {title}")
    else:
        hidden = options.action == "hide"
        await surface.operator.hide(conversation_id, hidden=hidden)
        now = "hidden: `rune sessions list --hidden` shows it" if hidden else "listed again"
        output.line(f"{conversation_id} is {now}")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=True)
