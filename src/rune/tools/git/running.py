"""Runs git itself, with nothing of a person's configuration and nothing of a repository's that starts a program.

What a repository sets is weaker than what is given here (`host.environment.git_environment`, the words in front of each
command). What nothing is stronger than is refused before git is run in it (`configuration`).
"""

import asyncio
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from rune.errors import CommandNotStartedError, FileUnavailableError, ToolError, ToolTimeoutError
from rune.host.environment import git_environment
from rune.host.process_group import Stream, run
from rune.text.safe_text import safe_text

OLDEST: Final = (2, 32)
"""What earlier versions do not know: settings and an empty global configuration by way of the environment."""

_BEFORE: Final = (
    "--no-pager",
    *("-c", "core.quotePath=false"),
    *("-c", "color.ui=false"),
    *("-c", "i18n.commitEncoding=UTF-8"),
    *("-c", "i18n.logOutputEncoding=UTF-8"),
    *("-c", "diff.orderFile=/dev/null"),  # one that is not there would make each comparison fail
    *("-c", "diff.autoRefreshIndex=false"),  # it would write the index, whatever GIT_OPTIONAL_LOCKS says
)
_WITHOUT_PROGRAMS: Final = ("--no-ext-diff", "--no-textconv", "--no-color")
_COMPARING: Final = frozenset({"diff", "log", "show"})
_MEBIBYTE: Final = 1 << 20
_SECONDS: Final = 30.0
_VERSION: Final = re.compile(rb"git version (\d+)\.(\d+)")
_ELSEWHERE: Final = "Use run_command with git instead: a person is asked."
_SAID_CHARACTERS: Final = 300
_GOOD: Final[set[tuple[str, int]]] = set()  # programs that said their version
# What git says, and what that means here. The first that is found holds.
_MEANINGS: Final = (
    ("dubious ownership", "the repository belongs to another user, so git does not work in it", _ELSEWHERE),
    ("index.lock", "another git works in this repository, or one was broken off and left its index.lock", "Try later."),
    ("promisor", "this is a partial clone and part of what was asked is not here; nothing is fetched", _ELSEWHERE),
    ("unable to read", "an object of the repository is missing or damaged", "A person can look with: git fsck"),
    ("not a git repository", "there is no valid git repository here", ""),
    ("must be run in a work tree", "the repository has no files to work on (it is bare)", ""),
)


class GitStoppedError(ToolError):
    """The person stopped the call while git ran."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What one git wrote. `is_whole` is False where it would have written more than was taken."""

    exit_code: int
    output: bytes
    said: str
    is_whole: bool


class Git(msgspec.Struct, frozen=True, kw_only=True):
    """git in one folder. `environment` is a command's (`host.environment`); `stop` ends what runs."""

    folder: Path
    environment: Mapping[str, str]
    stop: asyncio.Event | None = None

    async def ask(
        self,
        *words: str,
        seconds: float = _SECONDS,
        most_bytes: int = 16 * _MEBIBYTE,
        more: Mapping[str, str] | None = None,
    ) -> Answer:
        """Run git to its end, or until it wrote `most_bytes`. `more` is added to its environment.

        Raises CommandNotStartedError without git, ToolTimeoutError after `seconds`, GitStoppedError.
        """
        output, said = bytearray(), bytearray()
        enough = asyncio.Event()

        def take(stream: Stream, data: bytes) -> None:
            kept, most = (output, most_bytes) if stream == "stdout" else (said, _MEBIBYTE)
            kept.extend(data[: most - len(kept)])
            if stream == "stdout" and len(output) >= most_bytes:
                enough.set()

        # English, so that what it says can be understood; names and texts are UTF-8 whatever the language.
        environment = {**git_environment(self.environment), "LC_ALL": "C", "LANGUAGE": "", **(more or {})}
        handing_on = asyncio.create_task(_hand_on(self.stop, enough))
        try:
            ended = await run(
                _argv(words), cwd=self.folder, environment=environment, timeout=seconds, on_output=take, stop=enough
            )
        except CommandNotStartedError as error:
            if shutil.which("git", path=self.environment.get("PATH")) is None:
                hint = "A person can install it; until then use the tools for files."
                raise CommandNotStartedError("git is not installed", hint=hint, retryable=False) from error
            raise
        finally:
            handing_on.cancel()
        if self.stop is not None and self.stop.is_set():
            raise GitStoppedError("Stopped by the person")
        is_whole = len(output) < most_bytes
        if ended.timed_out:
            hint = f"The repository may be very large: ask about one path. {_ELSEWHERE}"
            raise ToolTimeoutError(f"git {words[0]} was ended after {seconds:.0f} s", hint=hint)
        code = ended.exit_code if ended.exit_code is not None else 128 + (ended.signal or 0)
        return Answer(
            exit_code=code if is_whole else 0,
            output=bytes(output),
            said=said.decode(errors="replace"),
            is_whole=is_whole,
        )

    async def get(self, *words: str, more: Mapping[str, str] | None = None, seconds: float = _SECONDS) -> bytes:
        """Run git and return all that it wrote. Raises what `ask` raises, and FileUnavailableError where it fails."""
        answer = await self.ask(*words, more=more, seconds=seconds)
        if answer.exit_code:
            raise failed(words[0], answer.said)
        if not answer.is_whole:
            hint = f"Ask about one path. {_ELSEWHERE}"
            raise FileUnavailableError(f"git {words[0]} says more than can be taken in", hint=hint)
        return answer.output

    async def check_version(self) -> None:
        """Raise CommandNotStartedError for a git that does not know how to be kept from the repository's programs."""
        which = await asyncio.to_thread(_which, self.environment.get("PATH"))
        if which in _GOOD:
            return
        said = await self.get("version")
        found = _VERSION.match(said)
        if found is None or (int(found[1]), int(found[2])) < OLDEST:
            shown = safe_text(said.decode(errors="replace").strip(), newlines=False)
            needed = ".".join(map(str, OLDEST))
            raise CommandNotStartedError(
                f"the git tools need git {needed} or later, and here is: {shown}", hint=_ELSEWHERE, retryable=False
            )
        if which is not None:
            _GOOD.add(which)


def failed(command: str, said: str) -> ToolError:
    """Return what a git that failed comes to: its reason made plain, or its own first line."""
    for sign, meaning, hint in _MEANINGS:
        if sign in said:
            return FileUnavailableError(meaning, hint=hint)
    lines = [line for line in said.splitlines() if line.startswith(("fatal:", "error:"))] or said.splitlines()[:1]
    shown = safe_text(lines[0] if lines else "nothing", newlines=False)[:_SAID_CHARACTERS]
    return FileUnavailableError(f"git {command} failed and says: {shown}", hint=_ELSEWHERE)


def _argv(words: tuple[str, ...]) -> tuple[str, ...]:
    command, *rest = words
    programs = _WITHOUT_PROGRAMS if command in _COMPARING else ()
    return ("git", *_BEFORE, command, *programs, *rest)


def _which(path: str | None) -> tuple[str, int] | None:
    """Return the program and when it was written: another one has to be asked anew."""
    found = shutil.which("git", path=path)
    return (found, Path(found).stat().st_mtime_ns) if found else None


async def _hand_on(stop: asyncio.Event | None, enough: asyncio.Event) -> None:
    if stop is not None:
        await stop.wait()
        enough.set()
