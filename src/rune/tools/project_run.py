"""How run_tests, lint and format_code run what `project_commands` found: in the project's folder, without a shell."""

import asyncio
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from rune.errors import AccessDeniedError, FileUnavailableError
from rune.host.paths import storable_path
from rune.text.safe_text import safe_text
from rune.tools.executor import Done, Plan, Watch
from rune.tools.places import outside
from rune.tools.project_commands import ProjectCommand, Purpose, detect
from rune.tools.project_facts import read_project
from rune.tools.runner_totals import nothing_ran, totals_of
from rune.tools.watched_run import Ran, watched_run
from rune.tools.working_folder import entered
from rune.tools.workplace import Workplace

SECONDS: Final = 600
"""After that a runner is ended."""


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """What is run. `path` is the file or folder that was named, as a runner is given it."""

    command: ProjectCommand
    argv: tuple[str, ...]
    path: str
    state: Any = None


async def planned(purpose: Purpose, place: Workplace, target: str, *, also: Mapping[str, str]) -> Plan:
    """Return the plan for the project's own program. `target` is relative to the folder, "" for all of it; `also` are
    more facts for the person, by name.

    Raises ToolError when there is no such program, InvalidArgumentsError for a target that it cannot take.
    """
    facts = await asyncio.to_thread(read_project, place)
    command = detect(purpose, facts, target)
    argv = command.words(target)
    where = storable_path(place.folder)
    line = shlex.join(argv)
    told = {"found by": command.why, "folder": where, "time limit": f"{SECONDS} s", **also}
    lines = (f"{name}: {safe_text(told[name], newlines=False, tabs=False)}" for name in told)
    return Plan(
        effect=f"{command.name}{f' {target}' if target else ''}",
        detail="\n".join([*lines, "", line]),
        preconditions={"command": line, "cwd": where, "seconds": str(SECONDS)},
        state=Ready(command=command, argv=argv, path=target),
    )


async def ran(ready: Ready, place: Workplace, watch: Watch) -> Ran:
    """Run what was planned. Raises as `watched_run`."""
    with entered(place.folder, place) as folder:
        return await watched_run(
            ready.argv,
            folder=folder,
            environment=place.environment,
            seconds=SECONDS,
            masker=place.masker,
            keep=place.keep,
            watch=watch,
        )


def told(this: Ran, ready: Ready, *notes: str) -> Done:
    """Return what came of it: totals where the runner is known, what ran and why it was that, and the output."""
    totals = totals_of(this.kept.text)
    outcome = "failed" if this.outcome == "ok" and nothing_ran(totals) else this.outcome
    return Done(
        text=this.text(f"ran: {shlex.join(ready.argv)} ({ready.command.why})", *notes),
        summary=f"{totals} ({ready.command.name}, {this.verdict})"
        if totals
        else f"{ready.command.name}: {this.verdict}",
        outcome=outcome,
        output=this.output,
        exit_code=this.ended.exit_code,
    )


def target_of(given: str, place: Workplace) -> str:
    """Return a target (`tests/test_a.py::test_b`, a name) as a runner is given it: relative to the folder, and nothing
    outside of it. "" for all. Raises AccessDeniedError.
    """
    path, colons, rest = given.strip().partition("::")
    if not path or path == ".":
        return ""
    full = Path(os.path.normpath(place.folder / path))
    if not full.is_relative_to(place.folder):
        raise AccessDeniedError(outside(full, (place.folder,), "read"))
    if Path(path).is_absolute():
        path = str(full.relative_to(place.folder))
    return "" if path == "." else f"{path}{colons}{rest}"


def existing(given: str, place: Workplace, *, writing: bool) -> str:
    """Return a path to check or to format, relative to the folder, links followed; "" for all of the folder. Blocks.

    Raises AccessDeniedError, FileUnavailableError as `tools.files`.
    """
    path = given.strip()
    if path in {"", ".", "./"}:
        return ""
    try:
        real = place.files.list(path).path
    except FileUnavailableError:  # no folder; then it is a file, or the next line says what is wrong
        real = place.files.read(path).facts.path
        if writing:
            place.files.target(str(real))
    if not real.is_relative_to(place.folder):
        raise AccessDeniedError(outside(real, (place.folder,), "write" if writing else "read"))
    relative = real.relative_to(place.folder).as_posix()
    if relative == ".":
        return ""
    return f"./{relative}" if relative.startswith("-") else relative
