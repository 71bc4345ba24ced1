"""Which permission rules hold where a call wants to act, and what an answer adds to them (tools.md, Policy)."""

from pathlib import Path
from typing import Final

from rune.host.paths import storable_path
from rune.records.approvals import PendingApprovalRecord
from rune.records.permissions import PermissionMode, RuleAdded
from rune.store.ledger import Draft, once
from rune.store.rules import RuleRepository, StoredRule
from rune.tools import policy
from rune.tools.executor import Plan, ToolKind
from rune.tools.policy import Rule, Verdict

_REPAIRED: Final = "the call was mended before it could be read: look whether it is what was meant"
_ASKS_NEVER: Final = frozenset({"read", "session"})


class Permissions:
    """Decides about prepared calls, and keeps the rules that "always" makes."""

    def __init__(self, rules: RuleRepository) -> None:
        self._rules = rules

    async def judge(self, kind: ToolKind, plan: Plan, *, mode: PermissionMode, folder: Path, repaired: bool) -> Verdict:
        """Decide about one call in a workspace. `repaired`: the model's own words had to be mended to be read, so
        that no rule and no mode allows it without a look. Raises StorageError where the rules cannot be read.
        """
        if kind in _ASKS_NEVER or mode == "read":
            return policy.judge(kind, plan, mode=mode, rules=(), folder=folder)
        held = await self._rules.rules(storable_path(folder))
        rules = [Rule(id=each.id, text=each.rule) for each in held]
        verdict = policy.judge(kind, plan, mode=mode, rules=rules, folder=folder)
        if repaired and verdict.decision == "allow":
            return Verdict(decision="ask", reason=_REPAIRED)
        return verdict

    def always(self, approval: PendingApprovalRecord, folder: Path) -> list[Draft]:
        """Return the rules that "always" makes of a question: those that it offered, each once, and nothing wider.

        Their ids follow from the question: the same answer given twice makes them once.
        """
        texts = dict.fromkeys(call.rule for call in approval.calls if call.rule)
        return [
            self._rules.draft_add(
                RuleAdded(
                    id=f"rul_{once(f'{approval.id}.{text}').partition('_')[2]}",
                    folder=storable_path(folder),
                    rule=text,
                    approval_id=approval.id,
                )
            )
            for text in texts
        ]

    async def rules(self, folder: Path | None = None) -> list[StoredRule]:
        """Return the rules that hold in a folder, in all of them for None; oldest first."""
        return await (self._rules.all() if folder is None else self._rules.rules(storable_path(folder)))

    async def revoke(self, part: str) -> StoredRule:
        """Take back the one rule whose id is, begins or ends with `part`, and return it.

        Raises NotFoundError, StorageUnavailableError.
        """
        rule = await self._rules.get(await self._rules.resolve(part))
        await self._rules.revoke(rule.id)
        return rule
