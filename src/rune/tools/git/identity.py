"""Who a commit is by: the name and address that a person gave git themselves."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from rune.errors import FileUnavailableError
from rune.text.safe_text import safe_text
from rune.tools.git.repository import Repository

_VALUES = ("name", "email")


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """A name and an address; `source` says where they stand, in words."""

    name: str
    email: str
    source: str

    @property
    def environment(self) -> Mapping[str, str]:
        """What git takes it from, for author and committer."""
        return {
            f"GIT_{role}_{value.upper()}": getattr(self, value) for role in ("AUTHOR", "COMMITTER") for value in _VALUES
        }


async def find_identity(repository: Repository) -> Identity:
    """Return who commits here: what the repository's configuration says, else the person's own, as git does.

    Of the person's configuration nothing is taken but these two values. Raises FileUnavailableError where one lacks.
    """
    local_values = {value: _plain(repository.setting(f"user.{value}") or "") for value in _VALUES}
    theirs = {} if all(local_values.values()) else await _personal(repository)
    found: dict[str, str] = {}
    sources: dict[str, None] = {}
    for value in _VALUES:
        local = local_values[value]
        found[value] = local or _plain(theirs.get(value, ""))
        sources[".git/config" if local else "your own configuration"] = None
    if not all(found.values()):
        raise FileUnavailableError(
            "git does not know whose commits these are",
            hint='A person says it once: git config --global user.name "Your Name";'
            " git config --global user.email you@example.com",
            retryable=False,
        )
    return Identity(name=found["name"], email=found["email"], source=" and ".join(sources))


async def _personal(repository: Repository) -> dict[str, str]:
    """Return the two values of the person's own files, those later read first; conditions see the repository."""
    home = repository.git.environment.get("HOME", "")
    base = repository.git.environment.get("XDG_CONFIG_HOME") or (os.path.join(home, ".config") if home else "")  # noqa: PTH118 - may be ""
    files = [Path(base, "git", "config")] if base else []
    files += [Path(home, ".gitconfig")] if home else []
    found: dict[str, str] = {}
    for file in files:
        if not await asyncio.to_thread(file.is_file):
            continue
        answer = await repository.git.ask(
            *("config", "--file", os.fspath(file), "--includes", "-z", "--get-regexp", r"^user\.(name|email)$")
        )
        # 1: nothing there. What cannot be read names nobody, and the caller says so.
        if answer.exit_code == 0:
            for entry in answer.output.decode(errors="replace").split("\0"):
                key, _, value = entry.partition("\n")
                found[key.removeprefix("user.")] = value
    return found


def _plain(value: str) -> str:
    """Return a value without what git would take out, or a screen could not show."""
    return "".join(each for each in safe_text(value, newlines=False) if each not in "<>\n").strip()
