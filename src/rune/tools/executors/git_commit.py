"""git_commit: named files and a message."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from msgspec import Meta

from rune.errors import InvalidArgumentsError
from rune.host.paths import storable_path
from rune.records.tools import ToolSchema
from rune.text.safe_text import safe_text
from rune.tools.executor import Done, Plan, ToolKind, Watch
from rune.tools.git.committing import (
    MOST_FILES,
    CommittedFile,
    Proposal,
    commit,
    hooks_of,
    propose,
)
from rune.tools.git.names import inside, shown
from rune.tools.git.repository import Repository, open_repository
from rune.tools.git.running import GitStoppedError
from rune.tools.schema import Arguments, arguments_of, schema_of
from rune.tools.workplace import Workplace

NAME: Final = "git_commit"

_DESCRIPTION: Final = "Commit the named files. Use it only when the person asked for a commit."
_MESSAGE_CHARACTERS: Final = 10_000
_NAMED: Final = 20
_SHORT: Final = 8


class _Arguments(Arguments, frozen=True, kw_only=True):
    message: Annotated[str, Meta(examples=["Fix empty cart"])]
    paths: Annotated[
        list[str],
        Meta(min_length=1, max_length=MOST_FILES, examples=[["src/cart.py"]]),
    ]


_SCHEMA: Final = schema_of(NAME, _DESCRIPTION, _Arguments)


class GitCommit:
    """The tool (tools.executor.Tool)."""

    @property
    def kind(self) -> ToolKind:
        """It runs a program that changes the repository."""
        return "run"

    @property
    def schema(self) -> ToolSchema:
        """How it is offered."""
        return _SCHEMA

    async def prepare(self, arguments: Mapping[str, Any], place: Workplace) -> Plan:
        """Put the commit together, beside the repository."""
        given = arguments_of(_Arguments, arguments, NAME)
        message = _message(given.message)
        repository = await open_repository(place)
        paths = tuple(dict.fromkeys(inside(path, repository, place) for path in given.paths))
        proposal = await propose(repository, place, message, paths)
        hooks = hooks_of(repository)
        identity = proposal.identity
        where = storable_path(repository.root)
        facts = [
            f"repository: {safe_text(where, newlines=False, tabs=False)}",
            f"branch: {safe_text(_branch(proposal), newlines=False)}",
            f"author: {safe_text(f'{identity.name} <{identity.email}>', newlines=False)} (from {identity.source})",
        ]
        if hooks:
            facts.append(f"not run: the repository's hooks {', '.join(hooks)}")
        if proposal.beside:
            facts.append(f"staged, and stays so uncommitted: {_some(proposal.beside, repository, place)}")
        files = [_file(file, repository, place) for file in proposal.files]
        return Plan(
            effect=f"commit {safe_text(proposal.subject, newlines=False)} ({_counts(proposal.files)})",
            detail="\n".join([*facts, "", message, "", *files]),
            preconditions={
                "repository": where,
                "branch": proposal.branch,
                "head": proposal.head or "",
                "tree": proposal.tree,
                "message": message,
                "author": f"{identity.name} <{identity.email}>",
            },
            state=proposal,
        )

    async def execute(self, plan: Plan, place: Workplace, watch: Watch) -> Done:
        """Commit what was prepared, when nothing of it changed."""
        proposal: Proposal = plan.state
        try:
            repository = await open_repository(place, watch.stop)
            made, problem = await commit(repository, proposal)
        except GitStoppedError as error:
            return Done(text=f"{error.message}. Nothing was committed.", summary="stopped", outcome="cancelled")
        said = [f"Committed {made[:_SHORT]} on {_branch(proposal)}: {_counts(proposal.files)}."]
        if hooks := hooks_of(repository):
            said.append(f"The hooks of this repository were not run: {', '.join(hooks)}.")
        if problem:
            said.append(problem)
        return Done(
            text=safe_text("\n".join(said)),
            summary=safe_text(f"{made[:_SHORT]} {proposal.subject}", newlines=False),
        )


def _message(given: str) -> str:
    """Return a message as it is committed: without spaces round it. Raises InvalidArgumentsError."""
    message = "\n".join(line.rstrip() for line in given.strip().splitlines())
    if not message:
        raise InvalidArgumentsError(f"{NAME}: the message is empty")
    if "\0" in message or len(message) > _MESSAGE_CHARACTERS:
        raise InvalidArgumentsError(f"{NAME}: the message holds a zero byte or over {_MESSAGE_CHARACTERS:,} characters")
    try:
        message.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentsError(f"{NAME}: the message is no text that can be written") from error
    return message


def _branch(proposal: Proposal) -> str:
    return proposal.branch or "no branch (HEAD is detached)"


def _some(paths: Sequence[str], repository: Repository, place: Workplace) -> str:
    told = ", ".join(shown(path, repository, place) for path in paths[:_NAMED])
    return f"{told} and {len(paths) - _NAMED} more" if len(paths) > _NAMED else told


def _file(file: CommittedFile, repository: Repository, place: Workplace) -> str:
    lines = "binary" if file.added is None else f"+{file.added} -{file.removed}"
    return f"{file.letter} {shown(file.path, repository, place)} {lines}"


def _counts(files: Sequence[CommittedFile]) -> str:
    added, removed = sum(file.added or 0 for file in files), sum(file.removed or 0 for file in files)
    return f"{len(files)} {'file' if len(files) == 1 else 'files'}, +{added} -{removed}"
