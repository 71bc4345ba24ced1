"""No Rune process listens on a network port, the embedded worker's included."""

import os
from pathlib import Path

from rune.canaries.claim import alone, expect
from rune.host.paths import resolve_home
from rune.host.sockets import listening
from rune.models.embedded.model_file import embedded_model_path
from rune.models.embedded.transport import EmbeddedTransport, embedded_installed
from rune.models.transport import ChatRequest, LoadOptions

CLAIM = "no Rune process listens on a network port"


async def check(folder: Path) -> None:
    """Let the embedded worker answer, where its model is there, and look at the kernel's list of listeners."""
    _look(os.getpid(), "this process")
    model = embedded_model_path(resolve_home(os.environ).models, os.environ, "")
    if model is None or not embedded_installed():
        return  # there is no worker on this machine that could listen
    transport = EmbeddedTransport(model, log_path=folder / "worker.log")
    try:
        request = ChatRequest(
            model=(await transport.models())[0].name,
            messages=b'[{"role":"user","content":"hi"}]',
            tools=b"[]",
            options=LoadOptions(num_ctx=1024),
            estimated=8,
            max_tokens=4,
        )
        async for _ in transport.chat(request):
            pass
        worker = transport.worker_pid()
        expect(worker is not None, "the embedded worker did not start")
        if worker is not None:
            _look(worker, "the embedded worker")
    finally:
        await transport.close()


def _look(pid: int, who: str) -> None:
    ports = listening(pid)
    expect(not ports, f"{who} listens on {', '.join(map(str, ports))}")


if __name__ == "__main__":
    alone(CLAIM, check)
