"""/sessions: the conversations of every folder."""

from collections.abc import Sequence
from typing import Final

from rune.host.clock import Clock
from rune.records.record import to_builtins
from rune.surface.commands.command import CommandCall
from rune.surface.commands.completion import Completion
from rune.surface.conversation_text import conversation_line
from rune.surface.results import CommandResult
from rune.surface.rows import ConversationRow
from rune.surface.views import Views

_LISTED: Final = 20
_SEARCHED: Final = 1_000


class SessionsCommand:
    """Lists the conversations of all folders and channels, those that a text fits when one is given."""

    name = "sessions"
    usage = "/sessions [TEXT]"
    summary = "list the conversations of all folders; TEXT: only where title, folder or id has it"

    def __init__(self, views: Views, clock: Clock) -> None:
        self._views = views
        self._clock = clock

    async def run(self, call: CommandCall) -> CommandResult:
        """List them, the one that was active last first."""
        words = call.argument.casefold().split()
        rows = await self._views.rows(limit=_SEARCHED if words else _LISTED + 1)
        fitting = [row for row in rows if _fits(row, words)]
        shown = fitting[:_LISTED]
        data = {"conversations": [to_builtins(row) for row in shown]}
        if not shown:
            text = f"no conversation has {call.argument!r} in its title, folder or id" if words else "none yet"
            return CommandResult(text=text, data=data)
        now = self._clock.now_ms()
        lines = [line for row in shown for line in _lines(row, now, here=row.id == call.conversation_id)]
        if len(fitting) > _LISTED:
            lines.append("`rune sessions list --all --limit N` shows more")
        return CommandResult(text="\n".join(lines), data=data)

    async def complete(self, call: CommandCall) -> Sequence[Completion]:
        """Return the folders that there are conversations of; nothing once a text is being typed: it may be any."""
        if call.argument:
            return ()
        rows = await self._views.rows(limit=_SEARCHED)
        folders = dict.fromkeys(row.folder for row in rows)
        return tuple(Completion(text=folder) for folder in folders)


def _lines(row: ConversationRow, now_ms: int, *, here: bool) -> tuple[str, str]:
    return conversation_line(row, now_ms, here=here), f"    {row.folder}"


def _fits(row: ConversationRow, words: Sequence[str]) -> bool:
    text = f"{row.title} {row.folder} {row.id} {row.channel}".casefold()
    return all(word in text for word in words)
