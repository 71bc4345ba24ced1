"""Whether a prepared call runs, asks or is refused: pure, out of its plan, the mode and the rules (tools.md, Policy).

Where a path may be read or written at all was decided before (`places`): here it is about asking. Deny wins over ask
over allow. Commands have no rules yet, so each of them asks.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal

import msgspec

from rune.records.permissions import PermissionMode
from rune.tools.executor import Plan, ToolKind

EDITS: Final = "edit_file"
"""The tool whose name stands in rules for edits; such a rule holds for every tool that edits files."""

_RULE: Final = re.compile(rf"{EDITS}\((?P<glob>[^()\n]+)\)")
_BELOW: Final = "/**"
_READ_ONLY: Final = (
    "The permission mode is `read`: nothing may be changed and no command run. Say what you would do instead."
)
_EVERY_COMMAND: Final = "every command asks: there is no sandbox yet that would hold it"
_EVERY_CHANGE: Final = "the permission mode is `ask`: every change asks"


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One that a person made: `edit_file(src/**)` or `edit_file(setup.cfg)`, below the folder in which it was made."""

    id: str
    text: str


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """`reason` is a sentence for the person, or for the model where it is refused. `by` is the authorization of an
    allowed call as the journal writes it: `owner` or `rule:<id>`, None for a call that needs none.
    """

    decision: Literal["allow", "ask", "deny"]
    reason: str = ""
    by: str | None = None


def judge(kind: ToolKind, plan: Plan, *, mode: PermissionMode, rules: Sequence[Rule], folder: Path) -> Verdict:
    """Decide about one prepared call. `folder` is the workspace in which the rules were made."""
    if kind in {"read", "session"}:
        return Verdict(decision="allow")
    if mode == "read":
        return Verdict(decision="deny", reason=_READ_ONLY)
    if plan.asks:
        return Verdict(decision="ask", reason=plan.asks)
    if kind == "run":
        return Verdict(decision="ask", reason=_EVERY_COMMAND)
    if plan.touches and all(path.is_relative_to(folder) for path in plan.touches):
        rule = next((rule for rule in rules if _covers(rule, plan.touches, folder)), None)
        if rule is not None or mode == "edits":
            return Verdict(decision="allow", by="owner" if rule is None else f"rule:{rule.id}")
    return Verdict(decision="ask", reason=_EVERY_CHANGE)


def rule_for(path: Path, folder: Path) -> str:
    """Return the rule that "always" offers for an edit: the file's folder and what is below it, the file alone where it
    lies in the workspace itself; "" where no rule can say it.
    """
    if not path.is_relative_to(folder):
        return ""
    inside = path.relative_to(folder)
    place = f"{inside.parent.as_posix()}{_BELOW}" if len(inside.parts) > 1 else inside.as_posix()
    text = f"{EDITS}({place})"
    return text if _RULE.fullmatch(text) and "*" not in place.removesuffix(_BELOW) else ""


def _covers(rule: Rule, touches: Sequence[Path], folder: Path) -> bool:
    place = _place(rule.text)
    if place is None:
        return False
    if place.endswith(_BELOW):
        below = folder / place.removesuffix(_BELOW)
        return all(path != below and path.is_relative_to(below) for path in touches)
    return all(path == folder / place for path in touches)


@lru_cache(maxsize=1024)
def _place(text: str) -> str | None:
    """Return the place of a rule; None for one that this version does not read: it then allows nothing."""
    found = _RULE.fullmatch(text)
    if found is None:
        return None
    place = found["glob"]
    parts = place.removesuffix(_BELOW).split("/")
    return place if all(part not in {"", ".", ".."} and "*" not in part for part in parts) else None
