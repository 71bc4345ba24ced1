"""Names of files and commits: what a model gives becomes words for git that are nothing else, and back."""

import os
import re
from pathlib import Path
from typing import Final

from rune.errors import AccessDeniedError, FileUnavailableError, InvalidArgumentsError
from rune.host.paths import real_path, storable_path
from rune.text.safe_text import SafeText, safe_text
from rune.tools.git.repository import Repository
from rune.tools.workplace import Workplace

_LONGEST: Final = 250
_ID: Final = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_EMPTY_TREES: Final = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}


def shown(path: str, repository: Repository, place: Workplace) -> SafeText:
    """Return a path of git's (from the top of the repository) as a model is told it."""
    name = place.named(repository.root / path)
    return safe_text(storable_path(Path(name)), newlines=False, tabs=False)


def inside(given: str, repository: Repository, place: Workplace) -> str:
    """Return a path that a model gave as git names it, from the top of the repository; "" for the whole of it.

    The file need not be there. Raises InvalidArgumentsError for what is no path here, AccessDeniedError for one that
    may not be read.
    """
    if "\0" in given:
        raise InvalidArgumentsError("a path holds a zero byte")
    try:
        found = _below(given, repository, place)
        if found is None or (found and not os.path.lexists(repository.root / found)):
            # As `shown` wrote a name that is no text.
            found = _below(os.fspath(real_path(given)), repository, place) if "%" in given else found
    except ValueError as error:  # a name that no file can have
        raise InvalidArgumentsError(f"{given!r}: no file can have this name") from error
    if found is None:
        where = storable_path(repository.root)
        raise InvalidArgumentsError(f"{safe_text(given, newlines=False)} is not in the repository, which is {where}")
    ruling = place.places.ruling("read", repository.root / found)
    if ruling.verdict == "deny":
        raise AccessDeniedError(ruling.reason)
    return found


def is_secret(path: str, repository: Repository, place: Workplace) -> bool:
    """Say whether what a path of git's held or holds may not be shown."""
    return place.places.ruling("read", repository.root / path).verdict == "deny"


def only(path: str) -> str:
    """Return the words by which git takes a path for itself and nothing else; "" is the whole repository."""
    return f":(top,literal){path}"


def without(path: str) -> str:
    """Return the words by which git leaves a path out."""
    return f":(top,exclude,literal){path}"


async def commit_id(given: str, repository: Repository) -> str:
    """Return the whole id of the commit that a model named.

    Raises InvalidArgumentsError for an option, for what names a file, and where there is no such commit.
    """
    name = given.strip()
    told = safe_text(name[:_LONGEST], newlines=False)
    if not name or name.startswith("-") or len(name) > _LONGEST or not name.isprintable():
        raise InvalidArgumentsError(f"{told!r} names no commit. Give an id, a branch, a tag or HEAD~1")
    if ":" in name or ".." in name:
        raise InvalidArgumentsError(f"{told!r} is not one commit. Give its id, a branch or a tag, and a file as path")
    answer = await repository.git.ask("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    found = answer.output.strip()
    if answer.exit_code or not _ID.fullmatch(found):
        if name == "HEAD" and await head(repository) is None:
            raise FileUnavailableError("the repository has no commits yet")
        raise InvalidArgumentsError(f"there is no commit {told!r} here. Find ids with git_log")
    return found.decode("ascii")


async def head(repository: Repository) -> str | None:
    """Return the id of the last commit, None where there is none yet."""
    answer = await repository.git.ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    found = answer.output.strip()
    return found.decode("ascii") if not answer.exit_code and _ID.fullmatch(found) else None


def empty_tree(like: str) -> str:
    """Return the id of a tree with nothing in it, of the kind of an id of the same repository."""
    return _EMPTY_TREES[len(like)]


def _below(given: str, repository: Repository, place: Workplace) -> str | None:
    os.fsencode(given)
    full = os.path.normpath(place.folder / given)
    for spelling in (full, os.path.join(os.path.realpath(os.path.dirname(full)), os.path.basename(full))):  # noqa: PTH118, PTH119, PTH120 - a name as it was given, which need not be there
        if Path(spelling).is_relative_to(repository.root):
            rest = os.fspath(Path(spelling).relative_to(repository.root))
            return "" if rest == "." else rest
    return None
