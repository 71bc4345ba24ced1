"""/resume: the conversations here, and going on with one."""

from collections.abc import Sequence
from typing import Final

from rune.errors import NotFoundError
from rune.host.clock import Clock
from rune.records.record import to_builtins
from rune.surface.ages import age
from rune.surface.commands.command import CommandCall
from rune.surface.commands.completion import Completion
from rune.surface.conversation_text import conversation_line, held, messages, waits
from rune.surface.results import CommandResult
from rune.surface.rows import ConversationRow
from rune.surface.views import Views

_LISTED: Final = 20
_OFFERED: Final = 50
_HINT: Final = "/resume lists the conversations of this folder; as much of an id as is clear is enough."


class ResumeCommand:
    """Lists the conversations of this folder and channel, or goes to one, wherever it began."""

    name = "resume"
    usage = "/resume [ID]"
    summary = "list the conversations here, or go on with one"

    def __init__(self, views: Views, clock: Clock) -> None:
        self._views = views
        self._clock = clock

    async def run(self, call: CommandCall) -> CommandResult:
        """List or open. Raises NotFoundError for an id that is none, or could be several."""
        return await self._open(call.argument) if call.argument else await self._list(call)

    async def complete(self, call: CommandCall) -> Sequence[Completion]:
        """Return the ids of the conversations here, their titles beside them."""
        rows = await self._views.rows(call.folder, call.channel, limit=_OFFERED)
        now = self._clock.now_ms()
        return tuple(
            Completion(text=row.id, note=f"{row.title or '(empty)'}, {age(row.last_active, now)}{_more(row)}")
            for row in rows
            if row.id != call.conversation_id
        )

    async def _open(self, named: str) -> CommandResult:
        try:
            row = await self._views.conversation(await self._views.resolve(named))
        except NotFoundError as error:
            raise NotFoundError(error.message, hint=_HINT) from error
        text = f"{row.id}: {row.title or '(empty)'}, {messages(row)}{_more(row)}"
        return CommandResult(text=text, data=to_builtins(row), opens=row.id)

    async def _list(self, call: CommandCall) -> CommandResult:
        rows = await self._views.rows(call.folder, call.channel, limit=_LISTED)
        data = {"conversations": [to_builtins(row) for row in rows]}
        if not rows:
            return CommandResult(text="no conversation in this folder yet", data=data)
        now = self._clock.now_ms()
        lines = [conversation_line(row, now, here=row.id == call.conversation_id) for row in rows]
        if len(rows) == _LISTED:
            lines.append("`rune sessions list` shows more")
        return CommandResult(text="\n".join(lines), data=data)


def _more(row: ConversationRow) -> str:
    return waits(row) + held(row)
