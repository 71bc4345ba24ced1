"""How tests call the embedded transport, and look at its worker from outside."""

import contextlib
import json
import os
import select
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from rune.models.embedded.transport import SMOLLM2_NAME, EmbeddedTransport
from rune.models.transport import ChatChunk, ChatRequest, Completed, LoadOptions, Progress, TextDelta

WINDOW = 1024
ORDER: list[type[ChatChunk]] = [Progress, TextDelta, Completed]
STORY = "Tell me a very long story about a fox."
LONG = "The quick brown fox jumps over the lazy dog. " * 60


def transport_for(model: Path, runtime_dir: Path, tmp_path: Path, **timeouts: float) -> EmbeddedTransport:
    environ = {"XDG_RUNTIME_DIR": str(runtime_dir)}
    log = tmp_path / "logs" / "model.log"
    # One thread: tests run side by side, and threads that wait for each other on busy cores crawl.
    return EmbeddedTransport(model, log_path=log, environ=environ, threads=1, **timeouts)


def messages(*texts: str) -> bytes:
    roles = ("user", "assistant")
    return json.dumps([{"role": roles[n % 2], "content": text} for n, text in enumerate(texts)]).encode()


def ask(*texts: str, num_ctx: int = WINDOW, **changes: Any) -> ChatRequest:
    fields: dict[str, Any] = {"model": SMOLLM2_NAME, "tools": b"[]", "estimated": 10, **changes}
    return ChatRequest(messages=messages(*texts), options=LoadOptions(num_ctx=num_ctx), **fields)


async def all_of(answer: AsyncIterator[ChatChunk]) -> list[ChatChunk]:
    return [chunk async for chunk in answer]


async def until(kind: type[ChatChunk], answer: AsyncIterator[ChatChunk]) -> ChatChunk:
    async for chunk in answer:
        if isinstance(chunk, kind):
            return chunk
    raise AssertionError(f"no {kind.__name__} came")


async def completed(answer: AsyncIterator[ChatChunk]) -> Completed:
    chunk = await until(Completed, answer)
    assert isinstance(chunk, Completed)
    return chunk


async def text_of(answer: AsyncIterator[ChatChunk]) -> str:
    return "".join(chunk.text for chunk in await all_of(answer) if isinstance(chunk, TextDelta))


def pid_of(transport: EmbeddedTransport) -> int:
    pid = transport.worker_pid()
    assert pid is not None
    return pid


def ends(pid: int, within: float) -> bool:
    """Wait for the end of a process that need not be a child of this one."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], within)[0])
    finally:
        os.close(process)


def sockets_of(pid: int) -> set[str]:
    found: set[str] = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            target = str(descriptor.readlink())
            if target.startswith("socket:["):
                found.add(target.removeprefix("socket:[").removesuffix("]"))
    return found


def left_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def worker_children() -> set[int]:
    """Return the workers among this process's children."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        for pid in map(int, task.joinpath("children").read_text(encoding="ascii").split()):
            if b"embedded_worker" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.add(pid)
    return found


def inodes(table: Path, column: int) -> set[str]:
    if not table.exists():
        return set()
    return {line.split()[column] for line in table.read_text(encoding="ascii", errors="replace").splitlines()[1:]}
