"""/diff: all that Rune's tools changed in this conversation, against what is there now."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from rune.surface.commands.command import CommandCall, wrong_usage
from rune.surface.commands.completion import Completion
from rune.surface.results import CommandResult
from rune.surface.views import Views
from rune.turn.changes import ChangedFile, ChangedFiles

MOST_LINES: Final = 400
"""So many lines of differences are shown at once."""
_TAKEN_BACK: Final = "everything that was changed here was taken back: the files are as they were before"


class DiffCommand:
    """Shows it, with or without git. `diff` is `Changes.diff`: it takes a conversation and its folder."""

    name = "diff"
    usage = "/diff [FILE]"
    summary = "what Rune's tools changed in files in this conversation; works without git"

    def __init__(self, diff: Callable[[str, str], Awaitable[ChangedFiles]], views: Views) -> None:
        self._diff = diff
        self._views = views

    async def run(self, call: CommandCall) -> CommandResult:
        """Show it all, or one file of it. Raises UsageError for a file that was not changed, StorageError."""
        files: tuple[ChangedFile, ...] = ()
        if call.conversation_id is not None:
            folder = (await self._views.conversation(call.conversation_id)).folder
            files = (await self._diff(call.conversation_id, folder)).files
        if call.argument:
            files = tuple(file for file in files if file.name == call.argument)
            if not files:
                raise wrong_usage(self, f"Rune's tools have not changed {call.argument!r} in this conversation")
        if not files:
            return CommandResult(text=await self._nothing(call.conversation_id), data={"files": []})
        data = [
            {"name": file.name, "added": file.added, "removed": file.removed, "diff": file.diff, "notes": file.notes}
            for file in files
        ]
        return CommandResult(text=_text(files), data={"files": data})

    async def _nothing(self, conversation_id: str | None) -> str:
        if conversation_id is not None and await self._views.changed_files(conversation_id):
            return _TAKEN_BACK
        return "Rune's tools have changed no file in this conversation"

    async def complete(self, call: CommandCall) -> Sequence[Completion]:
        """Return the files that were changed."""
        if call.conversation_id is None:
            return ()
        folder = (await self._views.conversation(call.conversation_id)).folder
        changed = await self._diff(call.conversation_id, folder)
        return [Completion(text=file.name, note=f"+{file.added} -{file.removed}") for file in changed.files]


def _text(files: Sequence[ChangedFile]) -> str:
    shown = [line for file in files for line in _lines(file)]
    count = "1 file" if len(files) == 1 else f"{len(files)} files"
    added, removed = sum(file.added for file in files), sum(file.removed for file in files)
    text = [f"{count} changed, +{added} -{removed}", *shown[:MOST_LINES]]
    if len(shown) > MOST_LINES:
        text.append(f"... {len(shown) - MOST_LINES:,} more lines; /diff FILE shows one file")
        text += [f"  {file.name} +{file.added} -{file.removed}" for file in files[:MOST_LINES]]
    return "\n".join(text)


def _lines(file: ChangedFile) -> list[str]:
    return [*(f"{file.name}: {note}" for note in file.notes), *file.diff.splitlines()]
