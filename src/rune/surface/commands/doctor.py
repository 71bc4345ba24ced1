"""/doctor: every part looked at for real, from within the app."""

from collections.abc import Callable, Sequence

from rune.surface.commands.command import CommandCall, wrong_usage
from rune.surface.commands.completion import Completion
from rune.surface.doctor import Check, examine, report
from rune.surface.results import CommandResult


class DoctorCommand:
    """Runs the checks of `rune doctor`; what takes time runs off the event loop. `checks` makes them anew each time."""

    name = "doctor"
    usage = "/doctor"
    summary = "check each part for real: places, journal, evidence, views, models"

    def __init__(self, checks: Callable[[], Sequence[Check]]) -> None:
        self._checks = checks

    async def run(self, call: CommandCall) -> CommandResult:
        """Look at everything. Mending is for the command line: `rune doctor --mend`."""
        if call.argument:
            raise wrong_usage(self, "it takes no argument; `rune doctor --mend` mends, once no Rune runs")
        return report(await examine(self._checks()))

    async def complete(self, call: CommandCall) -> Sequence[Completion]:
        """Return nothing: it takes no argument."""
        del call
        return ()
