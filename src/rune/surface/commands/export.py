"""/export: this conversation as a file."""

import asyncio
from collections.abc import Sequence

from rune.errors import UsageError
from rune.host.paths import storable_path
from rune.surface.commands.command import CommandCall
from rune.surface.commands.completion import Completion
from rune.surface.export_file import default_name, exported, kind_of, path_in, write_export
from rune.surface.results import CommandResult
from rune.surface.views import Views


class ExportCommand:
    """Writes the conversation into a new file."""

    name = "export"
    usage = "/export [FILE]"
    summary = "write this conversation into a new file: Markdown, or JSON for a name that ends in .json"

    def __init__(self, views: Views) -> None:
        self._views = views

    async def run(self, call: CommandCall) -> CommandResult:
        """Write it. Raises UsageError where nothing was said and when the file exists, StorageUnavailableError when it
        cannot be written.
        """
        if call.conversation_id is None:
            raise UsageError("there is no conversation here yet", hint="It begins with your first message.")
        whole = await self._views.whole(call.conversation_id)
        if not whole.messages:
            raise UsageError("nothing was said in this conversation yet", hint="It begins with your first message.")
        kind = kind_of(call.argument)
        named = call.argument or default_name(whole.conversation.record)
        path = await asyncio.to_thread(path_in, call.folder, named)
        await asyncio.to_thread(lambda: write_export(path, exported(whole, kind)))
        many = len(whole.messages)
        return CommandResult(
            text=f"{many:,} message{'' if many == 1 else 's'} written to {storable_path(path)}",
            data={"conversation_id": call.conversation_id, "file": storable_path(path), "format": kind},
        )

    async def complete(self, call: CommandCall) -> Sequence[Completion]:
        """Return the names that it would have by itself; nothing once another one is being typed."""
        if call.conversation_id is None or call.argument:
            return ()
        record = (await self._views.whole(call.conversation_id)).conversation.record
        return (
            Completion(text=default_name(record), note="Markdown, to read"),
            Completion(text=default_name(record, "json"), note="JSON, with every field"),
        )
