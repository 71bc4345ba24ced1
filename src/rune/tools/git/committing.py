"""Makes a commit of named files and of nothing else, exactly the one that was approved (docs/decisions/git-tools.md).

What would be committed is put together beside the repository: an index of its own, and, until it is approved, a store
of its own for what is new. So the tree's id is known, and nothing was written. It is put together again to be
committed, and HEAD moves only when the same tree came out and HEAD is where it was. No hook is asked: none runs.
"""

import asyncio
import os
import stat
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from rune.errors import DigestMismatchError, FileUnavailableError, InvalidArgumentsError, ToolError
from rune.text.safe_text import safe_text
from rune.tools.git.changes import Status, read_status
from rune.tools.git.identity import Identity, find_identity
from rune.tools.git.names import empty_tree, is_secret, only, shown
from rune.tools.git.repository import Repository
from rune.tools.git.running import Git
from rune.tools.workplace import Workplace

MOST_FILES: Final = 500

_NAMED: Final = 20
_OBJECTS: Final = "objects"
_SECONDS: Final = 120.0
_HOOKS: Final = ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit")
_UNFILTERED: Final = frozenset({b"unspecified", b"unset"})
_SUBMODULE: Final = b"160000"


class CommittedFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a commit: git's letter, its path, and lines added and removed (None for a binary file)."""

    letter: str
    path: str
    added: int | None
    removed: int | None


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A commit that could be made. `tree` is what the repository holds after it; `head` is None for the first one,
    `branch` the branch that moves, "" for none; what is staged `beside` it stays so.
    """

    message: str
    paths: tuple[str, ...]
    identity: Identity
    head: str | None
    branch: str
    tree: str
    files: tuple[CommittedFile, ...]
    beside: tuple[str, ...]

    @property
    def subject(self) -> str:
        """The first line of the message."""
        return self.message.partition("\n")[0]


async def propose(repository: Repository, place: Workplace, message: str, paths: Sequence[str]) -> Proposal:
    """Put together a commit; writes nothing into the repository. `paths` are from its top.

    Raises ToolError where it cannot be made; InvalidArgumentsError names what is not changed, a folder, or ignored.
    """
    status = await read_status(repository, untracked="no")
    await _check(repository, place, paths, status)
    identity = await find_identity(repository)
    last = status.head
    with _scratch() as folder:
        more = {
            **_index(folder),
            "GIT_OBJECT_DIRECTORY": f"{folder}/{_OBJECTS}",
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(repository.common / "objects"),
        }
        tree = await _tree(repository, last, paths, more)
        words = ("diff", "--raw", "--numstat", "-z", "--no-renames", "--ignore-submodules=dirty", "--no-relative")
        data = await repository.git.get(*words, last or empty_tree(tree), tree, "--", more=more)
    files = _files(data)
    unchanged = [path for path in paths if path not in {file.path for file in files}]
    if unchanged:
        told = ", ".join(shown(path, repository, place) for path in unchanged[:_NAMED])
        raise InvalidArgumentsError(f"nothing to commit in {told}: no change since the last commit. See git_status")
    await _check_new([file.path for file in files if file.letter == "A"], repository, place)
    return Proposal(
        message=message,
        paths=tuple(paths),
        identity=identity,
        head=last,
        branch=status.branch,
        tree=tree,
        files=files,
        beside=tuple(change.path for change in status.of("staged") if change.path not in paths),
    )


async def commit(repository: Repository, proposal: Proposal) -> tuple[str, str]:
    """Make the commit; return its id, and what went wrong after it was made ("" for nothing).

    Raises DigestMismatchError where the repository or a file is not as it was: nothing is committed then.
    """
    if (repository.own / "index.lock").exists():
        hint = "Try again; when it stays, a person can remove that file."
        raise FileUnavailableError("another git works in this repository: there is an index.lock", hint=hint)
    status = await read_status(repository, untracked="no")
    if (status.head, status.branch) != (proposal.head, proposal.branch):
        raise _another("HEAD is another commit or branch by now")
    with _scratch() as folder:
        tree = await _tree(repository, proposal.head, proposal.paths, _index(folder))
    if tree != proposal.tree:
        raise _another("a file changed since the commit was prepared")
    who = proposal.identity.environment
    parents = ("-p", proposal.head) if proposal.head else ()
    made = await repository.git.get(
        "commit-tree", "--no-gpg-sign", *parents, "-m", proposal.message, proposal.tree, more=who
    )
    new = made.decode("ascii").strip()
    # From here on it is ended whatever the person does: half of it would be worse.
    git = Git(folder=repository.root, environment=repository.git.environment)
    kind = "commit" if proposal.head else "commit (initial)"
    before = proposal.head or "0" * len(new)
    moved = await git.ask("update-ref", "-m", f"{kind}: {proposal.subject}", "HEAD", new, before, more=who)
    if moved.exit_code:
        raise _another("HEAD could not be moved to it")
    try:
        # The index of the person: these files are as in the commit, all else stays as it was staged.
        await git.get("reset", "--quiet", "HEAD", "--", *(only(path) for path in proposal.paths), seconds=_SECONDS)
    except ToolError as error:
        return new, f"The commit is made, but the index was not brought up to date: {error.in_one_line}"
    return new, ""


def hooks_of(repository: Repository) -> tuple[str, ...]:
    """Return the names of the hooks that git would run with a commit, and that are not run here."""
    named = repository.setting("core.hookspath")
    if named and named.startswith("~/"):
        named = f"{repository.git.environment.get('HOME', '')}/{named[2:]}"
    folder = repository.root / named if named else repository.common / "hooks"
    return tuple(name for name in _HOOKS if os.access(folder / name, os.X_OK) and (folder / name).is_file())


async def _check(repository: Repository, place: Workplace, paths: Sequence[str], status: Status) -> None:
    """Raise ToolError for what cannot be committed here, before anything is put together."""
    if unfinished := repository.unfinished():
        hint = "A person finishes it or breaks it off first."
        raise FileUnavailableError(f"{unfinished} is not finished in this repository", hint=hint)
    git = repository.git
    if status.of("conflict"):
        raise FileUnavailableError("there are conflicts that are not resolved", hint="See git_status.")
    folders = [path for path in paths if await asyncio.to_thread(_is_folder, repository.root / path)]
    known = await git.get("ls-files", "-z", "--stage", "--", *map(only, folders)) if folders else b""
    submodules = {
        os.fsdecode(entry.partition(b"\t")[2]) for entry in known.split(b"\0") if entry.startswith(_SUBMODULE)
    }
    for folder in folders:
        if folder not in submodules:
            raise await _folder_error(folder, repository, place)
    fields = (await git.get("check-attr", "-z", "filter", "--", *paths)).split(b"\0")
    filtered = [os.fsdecode(fields[at]) for at in range(0, len(fields) - 2, 3) if fields[at + 2] not in _UNFILTERED]
    if filtered:
        told = ", ".join(shown(name, repository, place) for name in filtered[:_NAMED])
        hint = "A person commits it, with git itself."
        raise FileUnavailableError(f"{told}: goes through a filter (as of Git LFS), which is not run here", hint=hint)


async def _check_new(paths: Sequence[str], repository: Repository, place: Workplace) -> None:
    """Raise InvalidArgumentsError for new files that git is told to ignore."""
    words = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--")
    ignored = await repository.git.get(*words, *map(only, paths)) if paths else b""
    if names := [os.fsdecode(name) for name in ignored.split(b"\0") if name]:
        told = ", ".join(shown(name, repository, place) for name in names[:_NAMED])
        raise InvalidArgumentsError(f"git ignores {told} (.gitignore). Leave it out")


async def _folder_error(folder: str, repository: Repository, place: Workplace) -> InvalidArgumentsError:
    status = await read_status(repository, untracked="all")
    below = [
        change.path
        for change in status.changes
        if (not folder or change.path.startswith(f"{folder}/")) and not is_secret(change.path, repository, place)
    ]
    told = ", ".join(shown(path, repository, place) for path in dict.fromkeys(below[:_NAMED])) or "nothing"
    name = shown(folder, repository, place) if folder else "the repository"
    return InvalidArgumentsError(f"{name} is a folder: name each file. Changed in it: {told}")


async def _tree(repository: Repository, last: str | None, paths: Sequence[str], more: Mapping[str, str]) -> str:
    """Return the id of a tree: the last commit's, with the paths as they are in the folder now."""
    git = repository.git
    await git.get("read-tree", last or "--empty", more=more, seconds=_SECONDS)
    await git.get("update-index", "--add", "--remove", "--", *paths, more=more, seconds=_SECONDS)
    return (await git.get("write-tree", "--missing-ok", more=more, seconds=_SECONDS)).decode("ascii").strip()


def _files(data: bytes) -> tuple[CommittedFile, ...]:
    """Parse what git says of each file, once as raw and once in numbers."""
    letters: dict[str, str] = {}
    counts: dict[str, tuple[int | None, int | None]] = {}
    fields = iter(os.fsdecode(data).split("\0"))
    for field in fields:
        if field.startswith(":"):
            letters[next(fields)] = field[-1]
        elif field:
            added, removed, path = field.split("\t", 2)
            counts[path] = (int(added), int(removed)) if added != "-" else (None, None)
    return tuple(
        CommittedFile(letter=letter, path=path, added=counts[path][0], removed=counts[path][1])
        for path, letter in letters.items()
    )


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False  # it is gone: then it is a file that was removed, or git says what is wrong


@contextmanager
def _scratch() -> Generator[str]:
    """Give a folder of our own, with room for objects, and take it away."""
    with tempfile.TemporaryDirectory(prefix="rune-git-") as folder:
        Path(folder, _OBJECTS).mkdir()
        yield folder


def _index(folder: str) -> dict[str, str]:
    return {"GIT_INDEX_FILE": f"{folder}/index"}


def _quoted(path: Path) -> str:
    text = os.fspath(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _another(why: str) -> DigestMismatchError:
    return DigestMismatchError(f"{safe_text(why)}. Nothing was committed", hint="Look with git_status, then try again.")
