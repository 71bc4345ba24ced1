"""/search: messages in all past conversations."""

from collections.abc import Sequence
from typing import Final

from rune.host.clock import Clock
from rune.records.record import to_builtins
from rune.surface.commands.command import CommandCall, wrong_usage
from rune.surface.commands.completion import Completion
from rune.surface.found_text import OF_EACH, found_text
from rune.surface.results import CommandResult
from rune.surface.views import Views

FOUND: Final = 20


class SearchCommand:
    """Finds messages by their words, in every folder and channel."""

    name = "search"
    usage = "/search WORDS"
    summary = 'find messages in all past conversations; "quoted words" stand together'

    def __init__(self, views: Views, clock: Clock) -> None:
        self._views = views
        self._clock = clock

    async def run(self, call: CommandCall) -> CommandResult:
        """List what was found. Raises UsageError without a word, StorageError."""
        if not call.argument:
            raise wrong_usage(self, "it needs a word to look for")
        found = await self._views.search(call.argument, limit=FOUND, of_each=OF_EACH)
        text = found_text(found, self._clock.now_ms()) or "nothing was found"
        if found:
            text += "\n\n/resume ID goes on with one of them"
        return CommandResult(text=text, data={"found": [to_builtins(each) for each in found]})

    async def complete(self, call: CommandCall) -> Sequence[Completion]:
        """Return nothing: it is the person who knows what is looked for."""
        del call
        return ()
