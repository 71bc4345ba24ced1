"""What is changed in a repository, as `git status` tells it."""

import os
from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from rune.tools.git.repository import Repository

Group = Literal["staged", "changed", "conflict", "untracked"]

# Submodules are not looked into: git would be run in each, by its own configuration.
_STATUS: Final = ("status", "--porcelain=v2", "-z", "--branch", "--ahead-behind", "--ignore-submodules=dirty")
_ORDINARY_FIELDS: Final = 8
_RENAMED_FIELDS: Final = 9
_CONFLICT_FIELDS: Final = 10
_ID_CHARACTERS: Final = 8


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One file in one group; `letter` is git's (M A D R C T, ? for an untracked one). `was` is its name before a
    rename, "" otherwise. Paths are from the top of the repository.
    """

    group: Group
    letter: str
    path: str
    was: str = ""


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """`head` is None before the first commit; `branch` is "" on none (detached)."""

    head: str | None
    branch: str
    upstream: str
    ahead: int
    behind: int
    changes: tuple[Change, ...]

    def of(self, group: Group) -> tuple[Change, ...]:
        """Return the files of a group."""
        return tuple(change for change in self.changes if change.group == group)

    @property
    def place(self) -> str:
        """Return where one is, in a few words: `main, 2 ahead of origin/main`."""
        if self.head is None:
            return f"{self.branch or 'no branch'}, no commits yet"
        if not self.branch:
            return f"no branch (detached at {self.head[:_ID_CHARACTERS]})"
        counts = [f"{count} {word}" for count, word in ((self.ahead, "ahead of"), (self.behind, "behind")) if count]
        return ", ".join([self.branch, *(f"{each} {self.upstream}" for each in counts)])


async def read_status(repository: Repository, *, untracked: Literal["no", "normal", "all"] = "normal") -> Status:
    """Return how the files differ from the index and the last commit. Raises as `Git.get`."""
    data = await repository.git.get(*_STATUS, f"--untracked-files={untracked}", "--find-renames")
    return _parsed(data)


def _parsed(data: bytes) -> Status:
    facts: dict[str, str] = {}
    changes: list[Change] = []
    entries = iter(os.fsdecode(data).split("\0"))
    for entry in entries:
        if entry.startswith("# "):
            name, _, value = entry[2:].partition(" ")
            facts[name] = value
        elif entry:
            changes += _changes(entry, entries)
    ahead, _, behind = facts.get("branch.ab", "+0 -0").partition(" ")
    oid, branch = facts.get("branch.oid", ""), facts.get("branch.head", "")
    return Status(
        head=None if oid in {"", "(initial)"} else oid,
        branch="" if branch == "(detached)" else branch,
        upstream=facts.get("branch.upstream", ""),
        ahead=int(ahead),
        behind=-int(behind),
        changes=tuple(changes),
    )


def _changes(entry: str, rest: Iterator[str]) -> Iterator[Change]:
    kind = entry[0]
    if kind == "?":
        yield Change(group="untracked", letter="?", path=entry[2:])
        return
    if kind == "u":
        yield Change(group="conflict", letter=entry[2:4], path=entry.split(" ", _CONFLICT_FIELDS)[-1])
        return
    was = next(rest) if kind == "2" else ""
    path = entry.split(" ", _RENAMED_FIELDS if kind == "2" else _ORDINARY_FIELDS)[-1]
    groups: tuple[tuple[str, Group], ...] = ((entry[2], "staged"), (entry[3], "changed"))
    for letter, group in groups:
        if letter != ".":
            yield Change(group=group, letter=letter, path=path, was=was if letter in "RC" else "")
