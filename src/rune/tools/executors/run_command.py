"""run_command: a line for the shell, as a person would type it."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from rune.errors import InvalidArgumentsError
from rune.host.paths import storable_path
from rune.text.safe_text import safe_text
from rune.tools.executor import Done, Plan, ToolKind, Watch
from rune.tools.schema import Arguments, arguments_of, schema_of
from rune.tools.watched_run import watched_run
from rune.tools.working_folder import entered, find_folder
from rune.tools.workplace import Workplace

NAME: Final = "run_command"
LONGEST_SECONDS: Final = 1800

_DESCRIPTION: Final = "Run a shell command; returns exit code and output. Use it for what no other tool does."
_SHELLS: Final = (Path("/bin/bash"), Path("/bin/sh"))
_EFFECT_CHARACTERS: Final = 100
_UNSEEN: Final = "It holds characters that are invisible or control a terminal: shown by name"


class _Arguments(Arguments, frozen=True, kw_only=True):
    command: Annotated[str, Meta(examples=["ls -l src"])]
    cwd: Annotated[str, Meta(description="Folder.", examples=["src"])] = "."
    timeout: Annotated[int, Meta(description="Seconds.")] = 120


class _Ready(Struct, frozen=True):
    argv: tuple[str, ...]
    folder: Path
    seconds: int


class RunCommand:
    """The tool (tools.executor.Tool)."""

    schema = schema_of(NAME, _DESCRIPTION, _Arguments)
    kind: ToolKind = "run"  # it may do anything

    async def prepare(self, arguments: Mapping[str, Any], place: Workplace) -> Plan:
        """Check command and folder."""
        given = arguments_of(_Arguments, arguments, NAME)
        if not given.command.strip():
            raise InvalidArgumentsError(f"{NAME}: the command is empty")
        if "\0" in given.command:
            raise InvalidArgumentsError(f"{NAME}: the command holds a zero byte")
        if not 1 <= given.timeout <= LONGEST_SECONDS:  # not in the schema, which stands in every prompt
            raise InvalidArgumentsError(f"{NAME}: timeout is 1 to {LONGEST_SECONDS} seconds, not {given.timeout}")
        try:
            given.command.encode()
        except UnicodeEncodeError as error:
            raise InvalidArgumentsError(f"{NAME}: the command is no text that can be written") from error
        folder = await asyncio.to_thread(find_folder, given.cwd, place)
        shell = next((str(shell) for shell in _SHELLS if shell.exists()), str(_SHELLS[-1]))
        where = storable_path(folder)
        facts = [
            f"folder: {safe_text(where, newlines=False, tabs=False)}",
            f"shell: {shell} -c",
            f"time limit: {given.timeout} s",
        ]
        if safe_text(given.command) != given.command:
            facts.append(_UNSEEN)
        return Plan(
            effect=_effect(given.command, "" if folder == place.folder else place.named(folder)),
            detail="\n".join([*facts, "", given.command]),
            preconditions={
                "command": given.command,
                "cwd": where,
                "shell": shell,
                "seconds": str(given.timeout),
            },
            # `--`: a command that begins with a dash is one, too.
            state=_Ready((shell, "-c", "--", given.command), folder, given.timeout),
        )

    async def execute(self, plan: Plan, place: Workplace, watch: Watch) -> Done:
        """Run it."""
        ready: _Ready = plan.state
        with entered(ready.folder, place) as folder:
            ran = await watched_run(
                ready.argv,
                folder=folder,
                environment=place.environment,
                seconds=ready.seconds,
                masker=place.masker,
                keep=place.keep,
                watch=watch,
            )
        return Done(
            text=ran.text(),
            summary=ran.verdict,
            outcome=ran.outcome,
            output=ran.output,
            exit_code=ran.ended.exit_code,
        )


def _effect(command: str, folder: str) -> str:
    """Return a command in one line; what is cut is counted."""
    first, *others = command.strip().splitlines()
    more = f" [+{len(others)} {'line' if len(others) == 1 else 'lines'}]" if others else ""
    if len(first) > _EFFECT_CHARACTERS:
        first, more = first[:_EFFECT_CHARACTERS], f" [+{len(first) - _EFFECT_CHARACTERS} characters]{more}"
    return f"{first}{more}{f' (in {folder})' if folder else ''}"
