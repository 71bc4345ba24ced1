"""/trust: whether the files of this folder may instruct Rune."""

from collections.abc import Sequence

from rune.config.trust import TrustStatus
from rune.host.paths import storable_path
from rune.surface.commands.command import CommandCall, wrong_usage
from rune.surface.commands.completion import Completion
from rune.surface.results import CommandResult
from rune.turn.trust import FolderTrust


class TrustCommand:
    """Shows what would instruct Rune here, and lets the person say yes or no."""

    name = "trust"
    usage = "/trust [yes|no]"
    summary = "show, allow or stop this folder's AGENTS.md as instructions"

    def __init__(self, trust: FolderTrust) -> None:
        self._trust = trust

    async def run(self, call: CommandCall) -> CommandResult:
        """Show the state, or change it."""
        status = self._trust.status(call.folder)
        match call.argument:
            case "":
                pass
            case "yes" if not status.instructions.everything:
                return CommandResult(
                    text=_text(status), data={"folder": _folder(status), "state": status.state}, ok=False
                )
            case "yes":
                await self._trust.grant(status)
            case "no":
                await self._trust.revoke(call.folder)
            case _:
                raise wrong_usage(self, f"{call.argument!r} is neither yes nor no")
        status = self._trust.status(call.folder)
        files = [file.path for file in status.instructions.everything]
        return CommandResult(
            text=_text(status), data={"folder": _folder(status), "state": status.state, "files": files}
        )

    async def complete(self, call: CommandCall) -> Sequence[Completion]:
        """Return yes and no."""
        del call
        return (
            Completion(text="yes", note="what these files say counts as your own instructions"),
            Completion(text="no", note="these files are not read"),
        )


def _folder(status: TrustStatus) -> str:
    return storable_path(status.instructions.root)


def _text(status: TrustStatus) -> str:
    lines = [f"{_folder(status)}: {_STATES[status.state]}"]
    lines += [f"  {file.path}" for file in status.instructions.everything]
    lines += [f"  {left.path} is left out: {left.reason}" for left in status.left_out]
    lines += [f"  {line}" for line in status.changes]
    return "\n".join(lines)


_STATES = {
    "trusted": "trusted; these files instruct Rune",
    "untrusted": "not trusted; these files are not read (`/trust yes` allows them)",
    "changed": "changed since you trusted it; not read until you allow it again (`/trust yes`)",
    "nothing_to_trust": "there is no file here that would instruct Rune",
}
