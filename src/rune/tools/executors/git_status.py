"""git_status: branch and changed files."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rune.records.tools import ToolSchema
from rune.tools.executor import Done, Plan, ToolKind, Watch
from rune.tools.git.changes import Change, Group, Status, read_status
from rune.tools.git.names import shown
from rune.tools.git.repository import Repository, open_repository
from rune.tools.git.running import GitStoppedError
from rune.tools.schema import Arguments, arguments_of, schema_of
from rune.tools.workplace import Workplace

NAME: Final = "git_status"

_DESCRIPTION: Final = "Show the git branch and which files are changed. Use it before a commit."
_NAMED: Final = 60  # of each group
_TITLES: Final[dict[Group, str]] = {
    "conflict": "Conflicts",
    "staged": "Staged",
    "changed": "Changed, not staged",
    "untracked": "Untracked",
}


class _Arguments(Arguments, frozen=True, kw_only=True):
    pass


_SCHEMA: Final = schema_of(NAME, _DESCRIPTION, _Arguments)


class GitStatus:
    """The tool (tools.executor.Tool)."""

    @property
    def kind(self) -> ToolKind:
        """It only looks."""
        return "read"

    @property
    def schema(self) -> ToolSchema:
        """How it is offered."""
        return _SCHEMA

    async def prepare(self, arguments: Mapping[str, Any], place: Workplace) -> Plan:
        """Check that nothing else was given."""
        arguments_of(_Arguments, arguments, NAME)
        return Plan(effect="git status")

    async def execute(self, plan: Plan, place: Workplace, watch: Watch) -> Done:
        """Look."""
        try:
            repository = await open_repository(place, watch.stop)
            status = await read_status(repository)
        except GitStoppedError as error:
            return Done(text=error.message, summary="stopped", outcome="cancelled")
        unfinished = repository.unfinished()
        lines = [f"On {status.place}." + (f" {unfinished.capitalize()} is not finished." if unfinished else "")]
        for group, title in _TITLES.items():
            lines += _group(title, status.of(group), repository, place)
        if not status.changes:
            lines.append("Nothing is changed.")
        return Done(text="\n".join(lines), summary=_summary(status))


def _group(title: str, changes: Sequence[Change], repository: Repository, place: Workplace) -> list[str]:
    if not changes:
        return []
    lines = [f"{title} ({len(changes):,}):"]
    for change in changes[:_NAMED]:
        was = f" (was {shown(change.was, repository, place)})" if change.was else ""
        slash = "/" if change.path.endswith("/") else ""
        lines.append(f"  {change.letter} {shown(change.path, repository, place)}{slash}{was}")
    if len(changes) > _NAMED:
        lines.append(f"  ... {len(changes) - _NAMED:,} more")
    return lines


def _summary(status: Status) -> str:
    files = len({change.path for change in status.changes})
    return f"{files:,} {'file' if files == 1 else 'files'} changed" if files else "nothing changed"
