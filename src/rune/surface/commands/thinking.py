"""/thinking: whether and how much the model thinks before it answers."""

from collections.abc import Sequence
from typing import Final

from rune.records.models import Thinking
from rune.surface.commands.command import CommandCall, wrong_usage
from rune.surface.commands.completion import Completion
from rune.surface.results import CommandResult
from rune.turn.operator import RuneOperator

LEVELS: Final[dict[Thinking, str]] = {
    "auto": "it is left to the model: most that can think do",
    "off": "answer at once",
    "on": "think first",
    "low": "think a little, where the model knows levels; else as on",
    "medium": "think more",
    "high": "think long",
}


class ThinkingCommand:
    """Shows how much the model of a conversation thinks, or has it changed from the next message on."""

    name = "thinking"
    usage = "/thinking [LEVEL]"
    summary = f"show or choose how much the model thinks: {', '.join(LEVELS)}"

    def __init__(self, operator: RuneOperator) -> None:
        self._operator = operator

    async def run(self, call: CommandCall) -> CommandResult:
        """Show it, or choose. Raises UsageError, CapabilityMissingError (the model cannot think), what choosing a model
        for a turn raises, LeaseHeldError.
        """
        now = await self._now(call)
        if not call.argument:
            lines = [f"{'*' if level == now else ' '} {level:<7} {meaning}" for level, meaning in LEVELS.items()]
            return CommandResult(text="\n".join(lines), data={"thinking": now, "levels": list(LEVELS)})
        if call.argument not in LEVELS:
            raise wrong_usage(self, f"{call.argument[:40]!r} is none of {', '.join(LEVELS)}")
        wanted: Thinking = call.argument
        await self._operator.choose_thinking(call.conversation_id, wanted, requested=call.model)
        begins = "first" if call.conversation_id is None else "next"
        return CommandResult(
            text=f"thinking {wanted} from the {begins} message on: {LEVELS[wanted]}",
            data={"thinking": wanted, "previous": now},
            thinking=wanted,
        )

    async def complete(self, call: CommandCall) -> Sequence[Completion]:
        """Return the levels, with what each means."""
        now = await self._now(call)
        return tuple(
            Completion(text=level, note=f"{meaning}{' (as it is now)' if level == now else ''}")
            for level, meaning in LEVELS.items()
        )

    async def _now(self, call: CommandCall) -> Thinking:
        if call.conversation_id is None:
            return call.thinking or "auto"
        return await self._operator.thinking(call.conversation_id)
