"""What a repository's configuration sets, and what of it is refused (threats T5; docs/decisions/git-tools.md).

It is read by git itself, file by file, which runs nothing; so there is no second reader that could see another thing
than git does. Included files are read whatever their condition says.
"""

import asyncio
import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from rune.errors import AccessDeniedError
from rune.host.paths import storable_path
from rune.tools.git.running import Git

_MOST_BYTES: Final = 1 << 20
_MOST_FILES: Final = 20
_INSTEAD: Final = "Use run_command with git instead: a person is asked."


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a configuration: where it stands, `section.sub.name` with section and name in small letters."""

    file: Path
    key: str
    value: str

    @property
    def section(self) -> str:
        """What the key begins with."""
        return self.key.partition(".")[0]

    @property
    def name(self) -> str:
        """What the key ends with."""
        return self.key.rpartition(".")[2]

    @property
    def starts_program(self) -> bool:
        """Whether git would start a program that nothing keeps it from: a filter when it compares a file or takes it
        up, a hook that the configuration itself holds, Microsoft's virtual file system. An empty value starts none.
        """
        if not self.value:
            return False
        if self.section == "filter":
            return self.name in {"clean", "smudge", "process"}
        return (self.section == "hook" and self.name == "command") or self.key == "core.virtualfilesystem"


async def read_settings(git: Git, files: Sequence[Path]) -> tuple[Setting, ...]:
    """Return all that the files and what they include set, in order. A file that is not there sets nothing.

    Raises AccessDeniedError for one that cannot be read or understood.
    """
    found: list[Setting] = []
    waiting, known = list(files), set(files)
    while waiting:
        file = waiting.pop(0)
        if not await asyncio.to_thread(_is_there, file):
            continue
        settings = await _read(git, file)
        found += settings
        for included in _included(settings, git.environment.get("HOME", "")):
            if included not in known:
                known.add(included)
                waiting.append(included)
        if len(known) > _MOST_FILES:
            raise _unreadable(file, f"it includes more than {_MOST_FILES} files")
    return tuple(found)


def refuse_programs(settings: Iterable[Setting]) -> None:
    """Raise AccessDeniedError for a configuration by which git would start a program."""
    bad = [setting for setting in settings if setting.starts_program]
    if not bad:
        return
    keys = ", ".join(dict.fromkeys(setting.key for setting in bad))
    raise AccessDeniedError(
        f"The git tools refuse this repository: its configuration ({storable_path(bad[0].file)}) would make git run a"
        f" program, by {keys}",
        hint=f"{_INSTEAD} Who trusts it not can remove it: git config --unset-all {bad[0].key}",
        retryable=False,
    )


def last_value(settings: Iterable[Setting], key: str) -> str | None:
    """Return what holds for a key: the last that was set; None where nothing was."""
    return next((setting.value for setting in reversed(tuple(settings)) if setting.key == key), None)


def _is_there(file: Path) -> bool:
    try:
        info = file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise _unreadable(file, error.strerror or str(error)) from error
    if not stat.S_ISREG(info.st_mode):
        raise _unreadable(file, "it is no regular file")
    if info.st_size > _MOST_BYTES:
        raise _unreadable(file, f"it has more than {_MOST_BYTES:,} bytes")
    return True


async def _read(git: Git, file: Path) -> list[Setting]:
    # Away from every repository: nothing but this one file is read.
    away = Git(folder=Path("/"), environment=git.environment, stop=git.stop)
    answer = await away.ask("config", "--file", os.fspath(file), "--list", "-z", "--no-includes")
    if answer.exit_code or not answer.is_whole:
        raise _unreadable(file, answer.said.splitlines()[0] if answer.said else "git cannot read it")
    pairs = (os.fsdecode(entry).partition("\n") for entry in answer.output.split(b"\0") if entry)
    return [Setting(file=file, key=key, value=value) for key, _, value in pairs]


def _included(settings: Iterable[Setting], home: str) -> list[Path]:
    found: list[Path] = []
    for setting in settings:
        if setting.name != "path" or setting.section not in {"include", "includeif"} or not setting.value:
            continue
        path = setting.value
        if path.startswith("~/") and home:
            path = os.path.join(home, path[2:])  # noqa: PTH118 - as git puts it together
        if path.startswith(("~", "%")):
            raise _unreadable(setting.file, f"it includes {path}, and where that is cannot be told")
        found.append(setting.file.parent / path)  # as git does: links in the way of the file are not followed
    return found


def _unreadable(file: Path, why: str) -> AccessDeniedError:
    return AccessDeniedError(
        f"The git tools refuse this repository: its configuration {storable_path(file)} cannot be checked: {why}",
        hint=_INSTEAD,
        retryable=False,
    )
