"""What goes over the wire is what the broker rendered."""

import asyncio
from pathlib import Path

from rune.bootstrap import build
from rune.canaries.claim import alone, expect
from rune.turn.request import TurnRequest

CLAIM = "the bytes that reach the model server are the bytes that the broker rendered"

_SHOW = (
    b'{"capabilities":["completion"],"details":{},'
    b'"model_info":{"general.architecture":"llama","llama.context_length":8192}}'
)
_TAGS = b'{"models":[{"name":"canary:latest","model":"canary:latest","digest":"d1","size":1,"details":{}}]}'
_ANSWER = (
    b'{"model":"canary:latest","message":{"role":"assistant","content":"yes"},"done":false}\n'
    b'{"model":"canary:latest","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}\n'
)


class _Server:
    """The few answers of Ollama that one turn needs; keeps the bodies of chat requests."""

    def __init__(self) -> None:
        self.chats: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer requests on one connection until it is closed."""
        try:
            while request_line := await reader.readline():
                body = await reader.readexactly(await self._length(reader))
                answer = self._answer(request_line.split()[1], body)
                head = f"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nContent-Length: {len(answer)}\r\n\r\n"
                writer.write(head.encode() + answer)
                await writer.drain()
        finally:
            writer.close()

    @staticmethod
    async def _length(reader: asyncio.StreamReader) -> int:
        length = 0
        while (line := await reader.readline()).strip():
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length":
                length = int(value)
        return length

    def _answer(self, path: bytes, body: bytes) -> bytes:
        if path == b"/api/chat":
            self.chats.append(body)
            return _ANSWER
        return {b"/api/tags": _TAGS, b"/api/show": _SHOW}.get(path, b'{"models":[]}')


async def check(folder: Path) -> None:
    """Let a loopback server record a turn's request, and look for the rendered bytes in it."""
    recorder = _Server()
    server = await asyncio.start_server(recorder.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    environ = {"RUNE_HOME": str(folder / "home"), "OLLAMA_HOST": f"127.0.0.1:{port}", "PATH": ""}
    services = build(environ, surface_kind="headless")
    try:
        await services.start()
        request = TurnRequest(text='say "yes" \\ \u2028 \U0001f98a', folder=str(folder))
        async for _ in services.surface.operator.send_task(request):
            pass
        trace = await services.surface.views.trace(None)
        rendered = (await services.surface.views.prompts(trace))[0].messages
    finally:
        await services.close()
        server.close()
    expect(len(recorder.chats) == 1, f"{len(recorder.chats)} chat requests arrived")
    expect(b'"messages":' + rendered in recorder.chats[0], "the rendered bytes are not in what was sent")


if __name__ == "__main__":
    alone(CLAIM, check)
