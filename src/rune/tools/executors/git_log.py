"""git_log: the last commits."""

import os
from collections.abc import Mapping
from typing import Annotated, Any, Final

from msgspec import Meta

from rune.records.tools import ToolSchema
from rune.text.safe_text import safe_text
from rune.tools.executor import Done, Plan, ToolKind, Watch
from rune.tools.git.names import head, inside, only
from rune.tools.git.repository import Repository, open_repository
from rune.tools.git.running import GitStoppedError
from rune.tools.schema import Arguments, arguments_of, schema_of
from rune.tools.workplace import Workplace

NAME: Final = "git_log"
MOST: Final = 100

_DESCRIPTION: Final = "List the last commits, of one path or all. Use it to find a commit's id."
_FIELDS: Final = ("%h", "%as", "%an", "%D", "%s")
_CHARACTERS: Final = 200


class _Arguments(Arguments, frozen=True, kw_only=True):
    limit: Annotated[int, Meta(ge=1, le=MOST)] = 10
    path: Annotated[str, Meta(examples=["src/cart.py"])] = ""


_SCHEMA: Final = schema_of(NAME, _DESCRIPTION, _Arguments)


class GitLog:
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
        """Check the arguments."""
        given = arguments_of(_Arguments, arguments, NAME)
        effect = f"git log -{given.limit} {given.path}".rstrip()
        return Plan(effect=safe_text(effect, newlines=False), state=given)

    async def execute(self, plan: Plan, place: Workplace, watch: Watch) -> Done:
        """Look."""
        given: _Arguments = plan.state
        try:
            repository = await open_repository(place, watch.stop)
            path = inside(given.path or os.fspath(repository.root), repository, place)
            last = await head(repository)
            if last is None:
                return Done(text="The repository has no commits yet.", summary="no commits")
            commits = await _commits(repository, last, given.limit, path)
        except GitStoppedError as error:
            return Done(text=error.message, summary="stopped", outcome="cancelled")
        if not commits:
            return Done(text="No commit changed this path. Check it with git_status.", summary="no commits")
        count = len(commits)
        return Done(text="\n".join(commits), summary=f"{count} {'commit' if count == 1 else 'commits'}")


async def _commits(repository: Repository, last: str, limit: int, path: str) -> list[str]:
    # The words of the format are given: one of the repository's own could have signatures checked, by its program.
    data = await repository.git.get(
        *("log", f"--max-count={limit}", "-z", "--no-patch", "--no-show-signature", "--no-notes", "--no-follow"),
        *(f"--format={'%x00'.join(_FIELDS)}", last, "--", *([only(path)] if path else [])),
    )
    fields = data.decode(errors="replace").split("\0")
    # -z sets a zero byte between two commits, and with a format of its own after each.
    return [_line(*fields[at : at + len(_FIELDS)]) for at in range(0, len(fields) - len(_FIELDS) + 1, len(_FIELDS))]


def _line(short: str, day: str, author: str, names: str, subject: str) -> str:
    where = f" ({names})" if names else ""
    return safe_text(f"{short} {day} {author}: {subject}"[:_CHARACTERS] + where[:_CHARACTERS], newlines=False)
