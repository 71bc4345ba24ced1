"""Repositories that real git makes for tests, and programs that must not run."""

import asyncio
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from rune.errors import ToolError
from rune.tools.executor import Done, Plan, Tool
from rune.tools.executors.git_commit import GitCommit
from rune.tools.executors.git_diff import GitDiff
from rune.tools.executors.git_log import GitLog
from rune.tools.executors.git_show import GitShow
from rune.tools.executors.git_status import GitStatus
from rune.tools.workplace import Workplace
from tests.tools.executors import places

STATUS, DIFF, LOG, SHOW, COMMIT = GitStatus(), GitDiff(), GitLog(), GitShow(), GitCommit()

_IDENTITY = "[user]\n\tname = Anna Example\n\temail = anna@example.com\n"


def git(folder: Path, *words: str, code: int = 0, more: Mapping[str, str] | None = None) -> str:
    """Run git as a person would, with an identity and nothing else of anybody's configuration."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": os.fspath(folder),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{role}_NAME": "Bert" for role in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{role}_EMAIL": "bert@example.com" for role in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{role}_DATE": "2026-01-02T03:04:05+00:00" for role in ("AUTHOR", "COMMITTER")},
        **(more or {}),
    }
    ran = subprocess.run(
        ["git", "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main", *words],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode == code, (words, ran.stderr)
    return os.fsdecode(ran.stdout)


def workplace(base: Path, **how: Any) -> Workplace:
    """Return a workplace on `base`/work whose person has a name."""
    person = base / "person"
    person.mkdir(exist_ok=True)
    (person / ".gitconfig").write_text(_IDENTITY)
    return at_home(places.workplace(base, **how), person)


def at_home(place: Workplace, person: Path) -> Workplace:
    """Return the same workplace with that home, and no other place for a configuration."""
    kept = {name: value for name, value in place.environment.items() if name != "XDG_CONFIG_HOME"}
    return msgspec.structs.replace(place, environment={**kept, "HOME": os.fspath(person)})


def repository(base: Path, *, name: str = "work") -> Path:
    """Make a repository of two commits at `base`/work: a.txt and src/b.txt; a.txt is changed since."""
    folder = base / name
    (folder / "src").mkdir(parents=True)
    git(folder, "init", "-q")
    (folder / "a.txt").write_text("one\n")
    git(folder, "add", "a.txt")
    git(folder, "commit", "-qm", "first")
    (folder / "src" / "b.txt").write_text("b\n")
    git(folder, "add", "src/b.txt")
    git(folder, "commit", "-qm", "second: b")
    (folder / "a.txt").write_text("two\n")
    return folder


class Trap:
    """A program that leaves a trace when it is run."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.trace = folder / "it-ran"
        self.program = folder / "trap.sh"
        self.program.write_text(f'#!/bin/sh\necho "$0 $*" >> {self.trace}\ncat 2>/dev/null\nexit 0\n')
        self.program.chmod(0o755)

    @property
    def ran(self) -> str:
        return self.trace.read_text() if self.trace.exists() else ""


def kept(place: Workplace, name: str | None) -> str:
    """Return what was kept as evidence, as text."""
    assert name is not None
    return asyncio.run(_fetched(place, name)).decode()


async def _fetched(place: Workplace, name: str) -> bytes:
    return await place.fetch(name)


def call(tool: Tool, place: Workplace, **arguments: Any) -> Done:
    """Prepare a call and carry it out."""
    return asyncio.run(places.done(tool, place, **arguments))


def prepared(tool: Tool, place: Workplace, **arguments: Any) -> Plan:
    """Prepare a call."""
    return asyncio.run(places.plan(tool, place, **arguments))


def carried_out(tool: Tool, plan: Plan, place: Workplace) -> Done:
    """Carry a prepared call out."""
    return asyncio.run(tool.execute(plan, place, places.watch()))


async def use_all(place: Workplace, path: str = "a.txt", *, looks: int = 7) -> list[Done | ToolError]:
    """Use every tool (of those that look, the first calls), commit last, and return what came of each."""
    calls: tuple[tuple[Tool, dict[str, Any]], ...] = (
        (STATUS, {}),
        (DIFF, {}),
        (DIFF, {"staged": True}),
        (DIFF, {"commit": "HEAD~1..HEAD"}),
        (LOG, {}),
        (LOG, {"path": path}),
        (SHOW, {"commit": "HEAD"}),
        (COMMIT, {"message": "Third", "paths": [path]}),
    )
    found: list[Done | ToolError] = []
    for tool, arguments in (*calls[:looks], calls[-1]):
        try:
            found.append(await places.done(tool, place, **arguments))
        except ToolError as error:
            found.append(error)
    return found
