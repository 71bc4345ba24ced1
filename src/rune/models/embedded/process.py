"""A worker's life as its parent sees it: start, is it there, what does it weigh, end."""

import asyncio
import contextlib
import os
import secrets
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import msgspec

from rune.errors import ModelUnavailableError, StorageUnavailableError
from rune.host.paths import runtime_dir
from rune.models.embedded.worker import WorkerOrder

INSTALL_HINT = 'Run `pip install "rune-local[embedded]"`.'

_GRACE = 1.0
_LOG_BYTES = 10 * 1024 * 1024
_LOG_FILES = 3
_TAIL = 64 * 1024


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """What it takes to start one. `num_ctx` in tokens; `log_path` is appended to, `environ` only read;
    `threads` None: one for two cores.
    """

    model: Path
    num_ctx: int
    log_path: Path
    environ: Mapping[str, str]
    threads: int | None = None


class EmbeddedWorker:
    """One worker that runs or has run. `key` opens its server; `num_ctx` is the window that was asked for."""

    def __init__(self, process: asyncio.subprocess.Process, *, socket: Path, key: str, num_ctx: int) -> None:
        self._process = process
        self.socket = socket
        self.key = key
        self.num_ctx = num_ctx

    @property
    def pid(self) -> int:
        """Return the process id; it means nothing once the worker has ended."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Say whether it has not ended, as far as is known: its end is noticed a moment after it came."""
        return self._process.returncode is None

    def memory(self) -> int | None:
        """Return its resident memory in bytes; None where the system does not tell it this way."""
        try:
            pages = int(Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1])
        except (OSError, IndexError):
            return None
        return pages * os.sysconf("SC_PAGE_SIZE")

    async def end(self, *, within: float) -> str:
        """Wait for an end that must be near and say how it came; "" when it does not come."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                return _manner(await self._process.wait())
        return ""

    async def stop(self) -> None:
        """Ask it to end, kill it after a second, and remove what it leaves behind. May be called twice."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()
            if not await self.end(within=_GRACE):
                await self.kill()
        _remove(self.socket)

    async def kill(self) -> None:
        """End it at once."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        _remove(self.socket)


async def start_worker(launch: Launch) -> EmbeddedWorker:
    """Start a worker and wait until its model is loaded.

    Cancelling this kills it. Raises ModelUnavailableError: the extra is missing, or the model cannot be
    loaded, with the first error of the log as the reason.
    """
    socket = _new_socket(launch.environ)
    try:
        process, began = await _spawn(launch.log_path)
    except BaseException as error:  # also a cancel: the folder must not stay
        _remove(socket)
        if isinstance(error, OSError):
            raise ModelUnavailableError(f"the embedded model's worker cannot be started: {error}") from error
        raise
    worker = EmbeddedWorker(process, socket=socket, key=secrets.token_urlsafe(32), num_ctx=launch.num_ctx)
    try:
        answer = await _give_order(process, launch, worker)
        if answer == b"ready\n":
            return worker
        manner = _manner(await process.wait())
    except BaseException:  # also a cancel: no way out of here may leave the child behind
        await asyncio.shield(worker.kill())
        raise
    await worker.kill()
    reason = _reason(launch.log_path, began) or manner
    if answer == b"missing\n":
        raise ModelUnavailableError(f"the embedded model's library cannot be loaded: {reason}", hint=INSTALL_HINT)
    raise ModelUnavailableError(
        f"the embedded model {launch.model.name!r} cannot be loaded: {reason}",
        hint=f"Is the file whole? Fetch it again where it came from, or name another. The log is {launch.log_path}.",
    )


async def _spawn(log_path: Path) -> tuple[asyncio.subprocess.Process, int]:
    """Start the process, and return it with the place where its part of the log begins."""
    with _open_log(log_path) as log:
        began = log.tell()  # now: parent and child share one offset
        # -P: the folder in which Rune was started must not be able to put its own modules in the way.
        # A session of its own: Ctrl-C in the terminal is for Rune, not for the worker.
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "rune.models.embedded.worker",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
        return process, began


async def _give_order(process: asyncio.subprocess.Process, launch: Launch, worker: EmbeddedWorker) -> bytes:
    if process.stdin is None or process.stdout is None:
        raise AssertionError("both were asked for as pipes")
    order = WorkerOrder(
        model=str(launch.model.absolute()),
        socket=str(worker.socket),
        key=worker.key,
        num_ctx=launch.num_ctx,
        parent=os.getpid(),
        threads=launch.threads,
    )
    with contextlib.suppress(ConnectionError):  # it has ended already; its silence on stdout says so next
        process.stdin.write(msgspec.json.encode(order) + b"\n")
        await process.stdin.drain()
    return await process.stdout.readline()


def _new_socket(environ: Mapping[str, str]) -> Path:
    """Return a socket's path in a fresh folder of this user's own, short enough to be bound."""
    try:
        return runtime_dir(environ) / "llm.sock"
    except StorageUnavailableError as error:
        raise ModelUnavailableError(
            f"no folder can be made for the embedded model's socket: {error.message}", hint=error.hint
        ) from error


def _remove(socket: Path) -> None:
    socket.unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):
        socket.parent.rmdir()


def _open_log(path: Path) -> IO[bytes]:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if path.exists() and path.stat().st_size > _LOG_BYTES:
        for number in range(_LOG_FILES - 1, 0, -1):
            older = path.with_name(f"{path.name}.{number}")
            newer = path.with_name(f"{path.name}.{number - 1}") if number > 1 else path
            if newer.exists():
                newer.replace(older)
    log = os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab")
    log.seek(0, os.SEEK_END)
    return log


def _reason(log_path: Path, began: int) -> str:
    """Return the first error that llama.cpp logged since `began`, else the last line: later ones say less."""
    try:
        with log_path.open("rb") as log:
            log.seek(began)
            lines = log.read(_TAIL).decode("utf-8", "replace").splitlines()
    except OSError as error:
        return f"and its log cannot be read: {error.strerror}"
    for line in lines:
        _, error, said = line.partition(" E ")
        if error:
            return said.strip()
    return lines[-1].strip() if lines else ""


def _manner(code: int) -> str:
    if code >= 0:
        return f"it ended with exit code {code}"
    try:
        return f"it was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"it was ended by signal {-code}"
