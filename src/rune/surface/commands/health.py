"""/health: what failed, and since when it works again."""

from collections.abc import Sequence

from rune.records.record import to_builtins
from rune.surface.commands.command import CommandCall
from rune.surface.commands.completion import Completion
from rune.surface.results import CommandResult, table
from rune.surface.views import Views


class HealthCommand:
    """Shows each subsystem that failed in this process, and where things are."""

    name = "health"
    usage = "/health"
    summary = "what failed, how badly, and since when it works again"

    def __init__(self, views: Views) -> None:
        self._views = views

    async def run(self, call: CommandCall) -> CommandResult:
        """Show the registry's snapshot."""
        del call
        rows = self._views.health()
        if not rows:
            return CommandResult(text="healthy: nothing failed in this session", data={"subsystems": []})
        lines = [
            (
                row.subsystem,
                f"T{row.tier}",
                str(row.failures),
                row.last_seen,
                f"healthy since {row.healthy_since}" if row.healthy_since else row.last_error,
            )
            for row in rows
        ]
        text = table(lines, ("subsystem", "tier", "failures", "last seen", "state"))
        return CommandResult(text=text, data={"subsystems": [to_builtins(row) for row in rows]})

    async def complete(self, call: CommandCall) -> Sequence[Completion]:
        """Return nothing: it takes no argument."""
        del call
        return ()
