"""Finds the repository of a folder, and makes sure that git may be run in it.

A `.git` may be a file or hold links that lead anywhere. What lies outside the places that may be read is followed only
where the other side says so too: git's own worktrees name the file that names them. git is asked in the end where it
would work: when it sees another repository than the one that was checked, nothing is run.
"""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from rune.errors import AccessDeniedError, FileUnavailableError
from rune.host.paths import storable_path
from rune.tools.git.configuration import Setting, last_value, read_settings, refuse_programs
from rune.tools.git.running import Git
from rune.tools.workplace import Workplace

_MOST_BYTES: Final = 4096
_INSTEAD: Final = "Use run_command with git instead: a person is asked."
_PARTS: Final = ("HEAD", "objects", "refs", "packed-refs", "index", "info", "logs", "config")
_UNFINISHED: Final = (
    ("MERGE_HEAD", "a merge"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
)


class Repository(msgspec.Struct, frozen=True, kw_only=True):
    """A checked repository; all paths are real. `git` runs in `root`, the top of the working tree. `own` is where HEAD
    and the index are, `common` where objects and branches are: the same but for a worktree.
    """

    root: Path
    own: Path
    common: Path
    settings: tuple[Setting, ...]
    git: Git

    def unfinished(self) -> str:
        """Return what was begun in it and waits to be ended ("a merge"), "" for nothing."""
        return next((words for name, words in _UNFINISHED if (self.own / name).exists()), "")

    def setting(self, key: str) -> str | None:
        """Return what its configuration holds for a key."""
        return last_value(self.settings, key)


async def open_repository(place: Workplace, stop: asyncio.Event | None = None) -> Repository:
    """Return the repository in which the conversation's folder lies, its configuration checked.

    Raises FileUnavailableError where there is none, AccessDeniedError where git is not run in it,
    CommandNotStartedError without a git that can be used.
    """
    root, own, common = await asyncio.to_thread(_find, place)
    git = Git(folder=root, environment=place.environment, stop=stop)
    await git.check_version()
    files = (common / "config", *dict.fromkeys((common / "config.worktree", own / "config.worktree")))
    settings = await read_settings(git, files)
    refuse_programs(settings)
    tree = last_value(settings, "core.worktree")
    if tree is not None and await asyncio.to_thread(_real, own / tree) != root:
        raise _refused(f"its configuration sets core.worktree to another folder: {tree}")
    words = ("--show-toplevel", "--absolute-git-dir", "--git-common-dir")
    said = os.fsdecode(await git.get("rev-parse", "--path-format=absolute", *words)).removesuffix("\n")
    theirs = await asyncio.to_thread(lambda: [_real(Path(each)) for each in said.split("\n")])
    if theirs != [root, own, common]:
        raise _refused("git would work in another one than the `.git` here says")
    return Repository(root=root, own=own, common=common, settings=settings, git=git)


def _find(place: Workplace) -> tuple[Path, Path, Path]:
    for root in _upwards(place):
        entry = root / ".git"
        if not os.path.lexists(entry):
            continue
        own = _own(root, entry, place)
        common = _common(own, place)
        _check_parts(own, common, place)
        return root, own, common
    raise FileUnavailableError(
        f"{storable_path(place.folder)} is not in a git repository that may be read",
        hint="Use the tools for files instead.",
        retryable=False,
    )


def _upwards(place: Workplace) -> Iterator[Path]:
    for folder in (place.folder, *place.folder.parents):
        if folder == place.folder or _may_be_read(folder, place):
            yield folder


def _own(root: Path, entry: Path, place: Workplace) -> Path:
    """Return the real folder that `.git` is, or names."""
    own = _real(entry)
    if own.is_file():
        named = _line(own)
        if not named.startswith("gitdir: "):
            raise FileUnavailableError("the `.git` here is neither a repository nor the name of one")
        own = _real(own.parent / named.removeprefix("gitdir: "))
    if not (own / "HEAD").exists() and not (own / "HEAD").is_symlink():
        raise FileUnavailableError("the `.git` here is no repository: it has no HEAD, or its place is gone")
    if not _may_be_read(own, place) and not _names_back(own, root):
        raise _refused(f"its `.git` leads to {storable_path(own)}, outside the folders that may be read")
    return own


def _names_back(own: Path, root: Path) -> bool:
    """Say whether what a `.git` file leads to is a worktree of git's own making that names this file in turn, or a
    submodule whose files are here.
    """
    if (named := _line(own / "gitdir")) and _real(own / named) == root / ".git":
        return own.parent.name == "worktrees"
    return "modules" in own.parts and any(_real(own / tree) == root for tree in _worktree_lines(own / "config"))


def _worktree_lines(config: Path) -> Iterator[str]:
    # Only whether it agrees; what the whole says is read by git.
    for line in _text(config, 1 << 20).splitlines():
        key, _, value = line.strip().partition(" = ")
        if key == "worktree":
            yield value


def _common(own: Path, place: Workplace) -> Path:
    named = _line(own / "commondir")
    if not named:
        return own
    common = _real(own / named)
    if own.parent != common / "worktrees" and not _may_be_read(common, place):
        raise _refused(f"its commondir leads to {storable_path(common)}, outside the folders that may be read")
    return common


def _check_parts(own: Path, common: Path, place: Workplace) -> None:
    """Raise AccessDeniedError where history would come from a place outside: then git would be a way to read it."""
    for folder in dict.fromkeys((own, common)):
        for part in _PARTS:
            real = _real(folder / part)
            if not (real.is_relative_to(own) or real.is_relative_to(common) or _may_be_read(real, place)):
                raise _refused(f"its {part} leads to {storable_path(real)}, outside the folders that may be read")
    objects = common / "objects"
    for line in _text(objects / "info" / "alternates", 1 << 16).splitlines():
        if not line or line.startswith("#"):
            continue
        real = _real(objects / line)
        if line.startswith('"') or not _may_be_read(real, place):
            raise _refused(
                f"it borrows objects from {storable_path(real)}, outside the folders that may be read",
                "A person can take them in: git repack -a -d && rm .git/objects/info/alternates",
            )


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _may_be_read(path: Path, place: Workplace) -> bool:
    return place.places.ruling("read", path).verdict != "deny"


def _line(file: Path) -> str:
    """Return what a small file holds, "" where there is none."""
    return _text(file, _MOST_BYTES).rstrip("\r\n")


def _text(file: Path, most: int) -> str:
    try:
        # A pipe would be waited for.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""  # what it would have led to is not followed
    try:
        data = os.read(descriptor, most + 1)
    except OSError:
        return ""  # a folder
    finally:
        os.close(descriptor)
    if len(data) > most:
        raise _refused(f"{storable_path(file)} has more than {most:,} bytes")
    if b"\0" in data:
        raise _refused(f"{storable_path(file)} holds a zero byte")
    return os.fsdecode(data)


def _refused(why: str, hint: str = _INSTEAD) -> AccessDeniedError:
    return AccessDeniedError(f"The git tools refuse this repository: {why}", hint=hint, retryable=False)
