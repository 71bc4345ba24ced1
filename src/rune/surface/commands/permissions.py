"""/permissions: what tools may do without asking: the mode of this conversation, and the rules of its folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from rune.errors import UsageError
from rune.host.clock import Clock
from rune.orchestration.permissions import Permissions
from rune.records.permissions import PermissionMode
from rune.store.rules import StoredRule
from rune.surface.ages import age
from rune.surface.commands.command import CommandCall
from rune.surface.commands.completion import Completion
from rune.surface.results import WIDTH, CommandResult
from rune.surface.views import Views
from rune.text.fitting import foreign
from rune.turn.operator import RuneOperator

MODES: Final[dict[PermissionMode, str]] = {
    "ask": "every change of a file and every command asks",
    "edits": "changes of files in this folder run, commands ask",
    "read": "nothing is changed and no command runs",
}
_REVOKE: Final = "revoke"
_USAGE: Final = "/permissions [ask|edits|read], /permissions revoke ID"
_ID_CHARACTERS: Final = 6  # of the end of an id: its beginning is the time
_INDENT: Final = "          "


class PermissionsCommand:
    """Shows the mode and the rules, changes the one and takes back the others. `configured` is the mode of a
    conversation in which none was chosen.
    """

    name = "permissions"
    usage = "/permissions [MODE]"
    summary = "what tools may do without asking: ask, edits or read, and this folder's rules; revoke ID ends one"

    def __init__(
        self,
        operator: RuneOperator,
        permissions: Permissions,
        views: Views,
        *,
        configured: PermissionMode,
        clock: Clock,
    ) -> None:
        self._operator = operator
        self._permissions = permissions
        self._views = views
        self._configured: PermissionMode = configured
        self._clock = clock

    async def run(self, call: CommandCall) -> CommandResult:
        """Do it. Raises UsageError, NotFoundError (no such rule), LeaseHeldError, StorageError."""
        match call.argument.split():
            case []:
                return await self._show(call)
            case [mode] if mode in MODES:
                return await self._choose(call, mode)
            case [verb, part] if verb == _REVOKE:
                return await self._revoke(part)
            case [verb] if verb == _REVOKE:
                raise _refused("revoke takes the id of a rule, or its end")
            case _:
                raise _refused(f"{call.argument[:40]!r} is none of {', '.join(MODES)}")

    async def complete(self, call: CommandCall) -> Sequence[Completion]:
        """Return the modes, and each rule that can be taken back."""
        now = await self._mode(call)
        modes = tuple(
            Completion(text=mode, note=f"{meaning}{' (as it is now)' if mode == now else ''}")
            for mode, meaning in MODES.items()
        )
        rules = await self._permissions.rules(await self._folder(call))
        return (
            *modes,
            *(Completion(text=f"{_REVOKE} {_end(rule)}", note=f"asks again: {rule.rule}") for rule in rules),
        )

    async def _show(self, call: CommandCall) -> CommandResult:
        now, folder = await self._mode(call), await self._folder(call)
        rules = await self._permissions.rules(folder)
        lines = [f"{'*' if mode == now else ' '} {mode:<6} {meaning}" for mode, meaning in MODES.items()]
        lines += ["", *self._rules_text(rules)]
        data = {
            "permission": now,
            "modes": list(MODES),
            "folder": str(folder),
            "rules": [msgspec.to_builtins(rule) for rule in rules],
        }
        return CommandResult(text="\n".join(lines), data=data)

    async def _choose(self, call: CommandCall, mode: PermissionMode) -> CommandResult:
        previous = await self._mode(call)
        await self._operator.choose_permission(call.conversation_id, mode)
        return CommandResult(
            text=f"permission mode {mode} from now on: {MODES[mode]}",
            data={"permission": mode, "previous": previous},
            permission=mode,
        )

    async def _revoke(self, part: str) -> CommandResult:
        rule = await self._permissions.revoke(part)
        return CommandResult(
            text=f"{rule.rule} asks again in {rule.folder}", data={"revoked": msgspec.to_builtins(rule)}
        )

    def _rules_text(self, rules: Sequence[StoredRule]) -> list[str]:
        if not rules:
            return ['No rules in this folder. Answering "always" to a question makes one.']
        now = self._clock.now_ms()
        lines = ["Allowed in this folder without asking:"]
        for rule in rules:
            lines.append(f"  …{_end(rule)}  {foreign(rule.rule, WIDTH - len(_INDENT))}")
            used = f"last used {age(rule.last_used, now)}" if rule.last_used else "not used yet"
            lines.append(f"{_INDENT} made by you {age(rule.made_at, now)}, answering …{_of(rule.approval_id)}; {used}")
        return [*lines, "", "/permissions revoke ID takes one back."]

    async def _mode(self, call: CommandCall) -> PermissionMode:
        if call.conversation_id is None:
            return call.permission or self._configured
        return await self._operator.permission(call.conversation_id) or self._configured

    async def _folder(self, call: CommandCall) -> Path:
        """Return the folder whose rules hold here: that of the conversation, wherever the person is now."""
        if call.conversation_id is None:
            return Path(call.folder)
        return Path((await self._views.conversation(call.conversation_id)).folder)


def _refused(problem: str) -> UsageError:
    return UsageError(f"/permissions: {problem}", hint=f"Usage: {_USAGE}")


def _end(rule: StoredRule) -> str:
    return _of(rule.id)


def _of(identity: str) -> str:
    return identity[-_ID_CHARACTERS:]
