"""Checks each part for real and says how to mend it; shows no content, only states."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

import msgspec

from rune.errors import RuneError
from rune.surface.results import CommandResult

State = Literal["ok", "warning", "broken"]
_MARKS: dict[State, str] = {"ok": "ok      ", "warning": "warning ", "broken": "BROKEN  "}


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What a check found. `mend` is what a person can do; empty when nothing is to be done. `lines` say it part by
    part, `counts` are for programs: never content, only states and numbers.
    """

    name: str
    state: State
    detail: str
    mend: str = ""
    lines: tuple[str, ...] = ()
    counts: dict[str, int] = {}


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One part to look at. `look` raises RuneError when it is broken."""

    name: str
    look: Callable[[], Awaitable[Finding]]


async def examine(checks: Sequence[Check]) -> tuple[Finding, ...]:
    """Run the checks one after another; what one raises is its finding."""
    return tuple([await _look(check) for check in checks])


async def _look(check: Check) -> Finding:
    try:
        return await check.look()
    except RuneError as error:
        return Finding(name=check.name, state="broken", detail=error.message, mend=error.hint)
    except OSError as error:
        return Finding(name=check.name, state="broken", detail=str(error), mend="")


def _in_short(findings: Sequence[Finding]) -> str:
    named = {state: [each.name for each in findings if each.state == state] for state in ("broken", "warning")}
    counts = [
        f"{len(names):,} {state if len(names) == 1 or state == 'broken' else state + 's'}"
        for state, names in named.items()
        if names
    ]
    return f"{', '.join(counts)}: {', '.join(named['broken'] + named['warning'])}" if counts else "all is well"


def report(findings: Sequence[Finding]) -> CommandResult:
    """Return the findings for a person, with what they come to in the last line, and for a program; not ok when
    anything is broken.
    """
    lines: list[str] = []
    for finding in findings:
        lines.append(f"{_MARKS[finding.state]}{finding.name}: {finding.detail}")
        lines += [f"          {line}" for line in finding.lines]
        if finding.mend:
            lines.append(f"          {finding.mend}")
    lines.append(_in_short(findings))
    return CommandResult(
        text="\n".join(lines),
        data={"version": 1, "findings": [msgspec.to_builtins(finding) for finding in findings]},
        ok=all(finding.state != "broken" for finding in findings),
    )
