"""git_show: one commit and what it changed."""

import os
from collections.abc import Mapping
from typing import Annotated, Any, Final

from msgspec import Meta

from rune.records.tools import ToolSchema
from rune.text.safe_text import safe_text
from rune.tools.executor import Done, Plan, ToolKind, Watch
from rune.tools.git.differences import read_difference
from rune.tools.git.names import commit_id, empty_tree, inside
from rune.tools.git.repository import Repository, open_repository
from rune.tools.git.running import GitStoppedError
from rune.tools.schema import Arguments, arguments_of, schema_of
from rune.tools.workplace import Workplace

NAME: Final = "git_show"

_DESCRIPTION: Final = "Show one commit: message, author and changes. Use it with an id of git_log."
_FIELDS: Final = ("%H", "%an", "%ad", "%P", "%B")
_MESSAGE_CHARACTERS: Final = 4_000


class _Arguments(Arguments, frozen=True, kw_only=True):
    commit: Annotated[str, Meta(examples=["3f9c2ab"])]
    path: Annotated[str, Meta(examples=["src/cart.py"])] = ""


_SCHEMA: Final = schema_of(NAME, _DESCRIPTION, _Arguments)


class GitShow:
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
        return Plan(effect=safe_text(f"git show {given.commit} {given.path}".rstrip(), newlines=False), state=given)

    async def execute(self, plan: Plan, place: Workplace, watch: Watch) -> Done:
        """Look."""
        given: _Arguments = plan.state
        try:
            repository = await open_repository(place, watch.stop)
            path = inside(given.path or os.fspath(repository.root), repository, place)
            commit = await commit_id(given.commit, repository)
            about, parents = await _about(repository, commit)
            sides = [parents[0] if parents else empty_tree(commit), commit]
            found = await read_difference(repository, place, sides, path=path)
        except GitStoppedError as error:
            return Done(text=error.message, summary="stopped", outcome="cancelled")
        if len(parents) > 1:
            about += "\nA merge; shown is what it brought into its first parent."
        count = len({file.path for file in found.files})
        return Done(
            text=f"{place.masker.mask(about)}\n\n{found.text or 'It changes nothing here.'}",
            summary=f"{commit[:8]}, {count:,} {'file' if count == 1 else 'files'}",
            output=found.output,
        )


async def _about(repository: Repository, commit: str) -> tuple[str, list[str]]:
    """Return a commit's head as text, and the ids of its parents."""
    data = await repository.git.get(
        *("log", "--max-count=1", "--no-patch", "--no-show-signature", "--no-notes", "--date=iso"),
        *(f"--format={'%x00'.join(_FIELDS)}", commit, "--"),
    )
    full, author, day, parents, message = data.decode(errors="replace").split("\0", len(_FIELDS) - 1)
    message = message.strip("\n")
    if len(message) > _MESSAGE_CHARACTERS:
        message = f"{message[:_MESSAGE_CHARACTERS]} [+{len(message) - _MESSAGE_CHARACTERS:,} characters]"
    head = safe_text(f"commit {full}\nauthor {author}\ndate {day}")
    return f"{head}\n\n{safe_text(message)}", parents.split()
