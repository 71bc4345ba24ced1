"""/fork: branches off this conversation; the original stays as it is."""

from collections.abc import Sequence
from typing import Final

from rune.errors import UsageError
from rune.records.messages import ConversationMessageRecord
from rune.surface.commands.command import CommandCall, wrong_usage
from rune.surface.commands.completion import Completion
from rune.surface.results import CommandResult
from rune.surface.views import Views
from rune.turn.operator import RuneOperator

_OFFERED: Final = 20
_MOST_DIGITS: Final = 4
_NOTE: Final = 60


class ForkCommand:
    """Goes on in a branch that shares everything up to a message: the newest, a named one, or N of the person's
    own messages back, so that the Nth newest can be put in another way.
    """

    name = "fork"
    usage = "/fork [N back|MESSAGE]"
    summary = (
        "go on in a branch of this conversation; N back: without your last N messages; "
        "MESSAGE: up to the message of that id, `rune sessions show` has the ids"
    )

    def __init__(self, operator: RuneOperator, views: Views) -> None:
        self._operator = operator
        self._views = views

    async def run(self, call: CommandCall) -> CommandResult:
        """Branch off. Raises UsageError where there is nothing to branch off from, NotFoundError, StorageError."""
        if call.conversation_id is None:
            raise UsageError("there is no conversation here yet", hint="It begins with your first message.")
        last = await self._last(call.conversation_id, call.argument)
        record = await self._operator.fork(call.conversation_id, last)
        row = await self._views.conversation(record.id)
        title = (await self._views.conversation(call.conversation_id)).title or "untitled"
        shared = "1 message is" if row.messages == 1 else f"{row.messages:,} messages are"
        return CommandResult(
            text=f'a fork of "{title}": {shared} shared, the original stays as it is',
            data={"conversation_id": record.id, "forked_from": record.forked_from, "at": record.fork_msg_id},
            opens=record.id,
        )

    async def complete(self, call: CommandCall) -> Sequence[Completion]:
        """Return how far back one can go: before each of the person's own messages, the newest first."""
        if call.conversation_id is None:
            return ()
        said = [message for message in await self._views.transcript(call.conversation_id) if message.role == "user"]
        # Before the first there is nothing to share.
        back = enumerate(reversed(said[1:][-_OFFERED:]), 1)
        return tuple(Completion(text=f"{number} back", note=f"before: {_short(each)}") for number, each in back)

    async def _last(self, conversation_id: str, argument: str) -> str | None:
        words = argument.split()
        back = words[0] if words and words[1:] in ([], ["back"]) else ""
        if back.isascii() and back.isdecimal() and (len(words) > 1 or len(back) <= _MOST_DIGITS):
            return await self._before(conversation_id, int(back[:_MOST_DIGITS]))
        if len(words) > 1:
            raise wrong_usage(self, f"{argument!r} is neither the id of a message nor a number of messages back")
        return await self._views.resolve_message(argument) if argument else None

    async def _before(self, conversation_id: str, many: int) -> str:
        """Return the message before the person's `many`th newest one."""
        messages = await self._views.transcript(conversation_id)
        own = [place for place, message in enumerate(messages) if message.role == "user"]
        if not 1 <= many < len(own) or own[-many] == 0:
            most = max(len(own) - 1, 0)
            hint = f"Here it can be 1 to {most}." if most else "/new begins another conversation."
            raise UsageError(f"{many} back leaves nothing that could be shared", hint=hint)
        return messages[own[-many] - 1].id


def _short(message: ConversationMessageRecord) -> str:
    line = " ".join(message.content[: _NOTE * 4].split())
    return line if len(line) <= _NOTE else f"{line[: _NOTE - 1].rstrip()}…"
