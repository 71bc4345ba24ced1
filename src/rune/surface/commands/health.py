"""/health: how each part is, what failed, what was recovered, and since when it works again."""

from collections.abc import Sequence

from rune.host.clock import Clock
from rune.observability.health import SubsystemHealth
from rune.records.record import to_builtins
from rune.surface.commands.command import CommandCall
from rune.surface.commands.completion import Completion
from rune.surface.health_parts import HealthParts
from rune.surface.local_times import on_the_clock
from rune.surface.results import CommandResult, table
from rune.surface.sizes import counted
from rune.surface.views import Views


class HealthCommand:
    """Shows a line for each part, and below what failed or was recovered in this process."""

    name = "health"
    usage = "/health"
    summary = "how each part is, what failed or was recovered, and since when it works again"

    def __init__(self, views: Views, parts: HealthParts, clock: Clock) -> None:
        self._views = views
        self._parts = parts
        self._clock = clock

    async def run(self, call: CommandCall) -> CommandResult:
        """Look at the parts, and show the registry's snapshot."""
        del call
        parts = await self._parts.look()
        rows, now_ms = self._views.health(), self._clock.now_ms()
        text = "\n".join(_columns([(part.name, part.state, part.detail) for part in parts]))
        events = [line for row in rows for line in _lines(row, now_ms)]
        since = "\n".join(_columns(events)) if events else "healthy: nothing failed in this session"
        return CommandResult(
            text=f"{text}\n\n{since}",
            data={
                "parts": [to_builtins(part) for part in parts],
                "subsystems": [to_builtins(row) for row in rows],
            },
        )

    async def complete(self, call: CommandCall) -> Sequence[Completion]:
        """Return nothing: it takes no argument."""
        del call
        return ()


def _lines(row: SubsystemHealth, now_ms: int) -> list[tuple[str, ...]]:
    """Return what there is to say of one subsystem: its failures, and each recovery."""
    lines: list[tuple[str, ...]] = []
    if row.failures:
        if row.healthy_since is None:
            state = row.last_error
        else:
            state = f"healthy since {on_the_clock(row.healthy_since, now_ms)} (before: {row.last_error})"
        failed = f"T{row.tier}  {counted(row.failures, 'failure')}"
        lines.append((row.subsystem, failed, on_the_clock(row.last_seen, now_ms), state))
    lines += [(row.subsystem, "recovered", on_the_clock(fact.at, now_ms), fact.what) for fact in row.recovered]
    return lines


def _columns(rows: list[tuple[str, ...]]) -> list[str]:
    first, *rest = rows
    return table(rest, first).splitlines()
