"""A program of Rune's own choice that is given something and is read until it ends, or until that is enough."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from rune.errors import CommandNotStartedError

_PROC: Final = Path("/proc/self/fd").exists()
_CHUNK: Final = 1 << 18
_MOST_SAID: Final = 8_000  # of what it complains about


class ChildEnded(msgspec.Struct, frozen=True, kw_only=True):
    """`complaint` is the beginning of what it wrote to stderr. `code` is None when it was ended from here."""

    code: int | None
    complaint: str
    enough: bool
    stopped: bool
    timed_out: bool


async def run_child(
    argv: Sequence[str | bytes],
    *,
    folder: int,
    named: Path,
    environment: Mapping[str, str],
    given: bytes,
    take: Callable[[bytes], bool],
    stop: asyncio.Event,
    seconds: float,
) -> ChildEnded:
    """Run a program that starts no others, without a shell, in an open folder, and see it gone. `named` is the folder's
    real path, for systems that have none for what is open.

    `take` gets its output as it comes, and says whether it wants more. Raises CommandNotStartedError.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            cwd=f"/proc/self/fd/{folder}" if _PROC else named,
            env=dict(environment),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except (OSError, ValueError) as error:
        raise CommandNotStartedError(f"{os.fsdecode(argv[0])} could not be started: {error}") from error
    reading = asyncio.ensure_future(_talk(process, given, take))
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((reading, stopping), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        done = reading.done()
        more, complaint = reading.result() if done else (True, "")
        if done and more:
            await process.wait()
    finally:
        stopping.cancel()
        reading.cancel()
        with suppress(ProcessLookupError):  # it ended by itself in that moment
            if process.returncode is None:
                process.kill()
        await asyncio.wait((reading,))
        await _drained(process)
    ended = done and more
    return ChildEnded(
        code=process.returncode if ended else None,
        complaint=complaint,
        enough=done and not more,
        stopped=not done and stop.is_set(),
        timed_out=not done and not stop.is_set(),
    )


async def _talk(process: asyncio.subprocess.Process, given: bytes, take: Callable[[bytes], bool]) -> tuple[bool, str]:
    """Give and read at once; return whether it ended by itself, and its complaint."""
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise ValueError("a child without pipes")
    writing = asyncio.ensure_future(_give(process.stdin, given))
    hearing = asyncio.ensure_future(_hear(process.stderr))
    try:
        while chunk := await process.stdout.read(_CHUNK):
            if not take(chunk):
                return False, ""
        await writing
        return True, await hearing
    finally:
        writing.cancel()
        hearing.cancel()
        await asyncio.wait((writing, hearing))  # nobody else reads these pipes from here on


async def _drained(process: asyncio.subprocess.Process) -> None:
    """See a process gone that was killed: the loop tells of it only when its pipes are read to their end."""
    for stream in (process.stdout, process.stderr):
        while stream is not None and await stream.read(_CHUNK):
            pass
    await process.wait()


async def _give(stdin: asyncio.StreamWriter, given: bytes) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # it has what it needs
        stdin.write(given)
        await stdin.drain()
        stdin.close()
        await stdin.wait_closed()


async def _hear(stderr: asyncio.StreamReader) -> str:
    said = b""
    while chunk := await stderr.read(_CHUNK):
        said = (said + chunk)[:_MOST_SAID]
    return said.decode("utf-8", "replace")
