"""git_diff: what changed in files."""

import os
from collections.abc import Mapping
from typing import Annotated, Any, Final

from msgspec import Meta

from rune.errors import InvalidArgumentsError
from rune.records.tools import ToolSchema
from rune.text.safe_text import safe_text
from rune.tools.executor import Done, Plan, ToolKind, Watch
from rune.tools.git.changes import read_status
from rune.tools.git.differences import read_difference
from rune.tools.git.names import commit_id, inside
from rune.tools.git.repository import Repository, open_repository
from rune.tools.git.running import GitStoppedError
from rune.tools.schema import Arguments, arguments_of, schema_of
from rune.tools.workplace import Workplace

NAME: Final = "git_diff"

_DESCRIPTION: Final = "Show what changed in files. Use it to see your own changes."


class _Arguments(Arguments, frozen=True, kw_only=True):
    path: Annotated[str, Meta(examples=["src/cart.py"])] = ""
    staged: bool = False
    commit: Annotated[str, Meta(description="Since it, or A..B.", examples=["HEAD"])] = ""


_SCHEMA: Final = schema_of(NAME, _DESCRIPTION, _Arguments)


class GitDiff:
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
        """Check what goes together."""
        given = arguments_of(_Arguments, arguments, NAME)
        if given.staged and ".." in given.commit:
            raise InvalidArgumentsError(f"{NAME}: between two commits nothing is staged. Leave staged out")
        words = ("--staged" if given.staged else "", given.commit, given.path)
        return Plan(effect=safe_text(" ".join(["git diff", *filter(None, words)]), newlines=False), state=given)

    async def execute(self, plan: Plan, place: Workplace, watch: Watch) -> Done:
        """Look."""
        given: _Arguments = plan.state
        try:
            repository = await open_repository(place, watch.stop)
            path = inside(given.path or os.fspath(repository.root), repository, place)
            sides = await _sides(given, repository)
            found = await read_difference(repository, place, sides, path=path)
            text = found.text or await _nothing(given, repository)
        except GitStoppedError as error:
            return Done(text=error.message, summary="stopped", outcome="cancelled")
        count = len({file.path for file in found.files})
        summary = f"{count:,} {'file' if count == 1 else 'files'} differ" if count else "no difference"
        return Done(text=text, summary=summary.replace("1 file differ", "1 file differs"), output=found.output)


async def _sides(given: _Arguments, repository: Repository) -> list[str]:
    first, dots, second = given.commit.partition("..")
    if second.startswith("."):
        raise InvalidArgumentsError(f"{NAME}: give two dots: {safe_text(first, newlines=False)}..{second.lstrip('.')}")
    named = [first or "HEAD", second or "HEAD"] if dots else [first] if first else []
    return [*(["--cached"] if given.staged else []), *[await commit_id(name, repository) for name in named]]


async def _nothing(given: _Arguments, repository: Repository) -> str:
    """Say that nothing differs, and where else there is something."""
    if given.commit:
        return "No difference."
    status = await read_status(repository)
    if given.staged:
        changed = status.of("changed")
        return "Nothing is staged." + (
            f" Changed but not staged: {len(changed):,}. Leave staged out." if changed else ""
        )
    said = ["No difference to what is staged or committed."]
    if staged := status.of("staged"):
        said.append(f"Staged: {len(staged):,}. Use staged=true.")
    if untracked := status.of("untracked"):
        said.append(f"Untracked, which no diff shows: {len(untracked):,}. Read them.")
    return " ".join(said)
