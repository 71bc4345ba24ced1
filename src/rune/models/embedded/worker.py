"""The process that holds the embedded model: llama.cpp's own HTTP server on a unix socket.

Started by `embedded.process` as `python -P -m rune.models.embedded.worker` and by nobody else. The first line
on stdin is a WorkerOrder as JSON: the key must stand neither in the arguments nor in the environment,
where other processes can read it. stdin then stays open as the life line: its end means that the
parent is gone. One line on stdout answers: `ready`, or `missing` where the extra is not installed. All that
llama.cpp prints goes to stderr, which is the model log.

It binds no TCP port: llama.cpp takes a host name that ends in `.sock` for a unix socket.
"""

import contextlib
import ctypes
import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypedDict

if TYPE_CHECKING:
    from xllamacpp import CommonParams

_PR_SET_PDEATHSIG = 1
_MOST_THREADS = 8
_BATCH = 64
_WARNINGS = 2


class WorkerOrder(TypedDict):
    """What a worker is told. `num_ctx` in tokens; `parent` is the process id that it dies with; `threads`
    None means: one for every two cores that it may use, at most 8.
    """

    model: str
    socket: str
    key: str
    num_ctx: int
    parent: int
    threads: int | None


def main() -> int:
    """Load the model, serve until stdin ends or SIGTERM comes. Returns an exit code when it cannot load."""
    answer = os.dup(1)
    os.dup2(2, 1)
    order: WorkerOrder = json.loads(sys.stdin.buffer.readline())
    _die_with(order["parent"])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.umask(0o077)
    socket = Path(order["socket"])
    try:
        import xllamacpp  # noqa: PLC0415 - the extra may be missing, and that is an answer
    except ImportError as error:
        sys.stderr.write(f"{error}\n")
        os.write(answer, b"missing\n")
        return 3
    try:
        server = xllamacpp.Server(_parameters(xllamacpp.CommonParams(), order))
    except RuntimeError as error:
        sys.stderr.write(f"{error}\n")
        return 4
    try:
        signal.signal(signal.SIGTERM, _leave)
        with contextlib.suppress(BrokenPipeError):  # the parent is gone; stdin says so next
            os.write(answer, b"ready\n")
        sys.stdin.buffer.read()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        socket.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # the parent may have removed it, or put something there
            socket.parent.rmdir()
        del server
        os._exit(0)  # llama.cpp's threads would hold an orderly exit up in mid-answer


def _leave(_signal: int, _frame: object) -> NoReturn:
    raise SystemExit(0)


def _die_with(parent: int) -> None:
    # The end of stdin is noticed by Python only, which stands still while a model loads; this is not.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        sys.exit(5)


def _parameters(params: "CommonParams", order: WorkerOrder) -> "CommonParams":
    threads = order["threads"] or min(max(1, _usable_cores() // 2), _MOST_THREADS)
    params.model.path = order["model"]
    params.hostnames = [order["socket"]]
    params.api_keys = [order["key"]]
    params.n_ctx = order["num_ctx"]
    # Small batches: progress is heard between two of them, and a cancel takes effect there.
    params.n_batch = _BATCH
    params.n_ubatch = _BATCH
    params.n_parallel = 1
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.n_threads_http = 4
    params.fit_params = False  # never another window than the one that was asked for
    params.ctx_shift = False  # never forgets the beginning in silence
    params.cache_ram_mib = 0  # else up to 8 GB of other prompts' caches
    params.cache_idle_slots = False
    params.warmup = False
    params.endpoint_slots = True
    params.ui = False
    params.verbosity = _WARNINGS
    return params


def _usable_cores() -> int:
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


if __name__ == "__main__":
    sys.exit(main())
