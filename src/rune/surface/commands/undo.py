"""/undo: take back what the last turn's tools changed in files."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from rune.errors import UsageError
from rune.surface.commands.command import CommandCall, wrong_usage
from rune.surface.commands.completion import Completion
from rune.surface.results import CommandResult
from rune.surface.sizes import counted
from rune.turn.changes import Undone, UndoneFile

_MOST_LINES: Final = 60  # of the difference of one file that was left


class UndoCommand:
    """Takes it back, and says for each file what was done. `undo` is `RuneOperator.undo`."""

    name = "undo"
    usage = "/undo"
    summary = "take back what the last turn's tools changed in files; git is not touched"

    def __init__(self, undo: Callable[[str], Awaitable[Undone]]) -> None:
        self._undo = undo

    async def run(self, call: CommandCall) -> CommandResult:
        """Do it. Raises UsageError where there is nothing to take back or a turn runs, StorageError."""
        if call.argument:
            raise wrong_usage(self, "it takes no argument")
        if call.conversation_id is None:
            raise UsageError("there is nothing to take back", hint="No tool has changed a file here yet.")
        undone = await self._undo(call.conversation_id)
        files = [{"name": file.name, "did": file.did, "why": file.why} for file in undone.files]
        data = {
            "call_id": undone.call_id,
            "turn_id": undone.turn_id,
            "complete": undone.complete,
            "files": files,
            "notes": list(undone.notes),
        }
        # Done in part is done: what was left is said.
        worked = undone.complete or any(file.did != "left" for file in undone.files)
        return CommandResult(text=_text(undone), data=data, ok=worked)

    async def complete(self, call: CommandCall) -> Sequence[Completion]:
        """Return nothing: it takes no argument."""
        del call
        return ()


def _text(undone: Undone) -> str:
    done = [f"{file.name}: {_DID[file.did]}" for file in undone.files if file.did != "left"]
    left = [part for file in undone.files if file.did == "left" for part in _left(file)]
    if not done:
        left.insert(0, "nothing was taken back")
    elif left:
        kept = sum(file.did == "left" for file in undone.files)
        done.insert(0, f"{counted(len(done), 'file')} taken back, {kept:,} left")
    return "\n".join([*done, *left, *undone.notes])


def _left(file: UndoneFile) -> list[str]:
    """Say why a file was left, and show what taking it back would do to it now."""
    said = [f"{file.name}: left as it is: {file.why}"]
    lines = file.diff.splitlines()
    if lines:
        said += ["what taking it back would change:", *lines[:_MOST_LINES]]
    if len(lines) > _MOST_LINES:
        said.append(f"... {len(lines) - _MOST_LINES:,} more lines of the difference")
    return said


_DID: Final = {
    "restored": "as it was before",
    "removed": "removed; it was new",
    "made again": "there again; it had been removed",
}
